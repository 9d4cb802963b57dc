package providers

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/messaging/inbound"
)

// TestKeysOfTextsHideNumbers: providers write numbers into their ids, and keys stay in the log
// after an erasure.
func TestKeysOfTextsHideNumbers(t *testing.T) {
	s := &source{name: "whatsapp", key: [32]byte{1}}
	e := &inbound.Event{ID: "whatsapp:491701234567:stop:2", Channel: inbound.ChannelWhatsApp}
	key := s.keyOf(e)
	if strings.Contains(key, "1701234567") || !strings.HasPrefix(key, "whatsapp/") || key != s.keyOf(e) {
		t.Errorf("%q", key)
	}
	if other := (&source{name: "whatsapp", key: [32]byte{2}}).keyOf(e); other == key {
		t.Error("two accounts have the same key, which can be guessed")
	}
	if got := s.keyOf(&inbound.Event{ID: "whatsapp:491701234567:stop:3", Channel: inbound.ChannelWhatsApp}); got == key {
		t.Error("two texts have the same key")
	}
}
