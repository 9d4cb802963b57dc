package links

import (
	"testing"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/inapp"
)

// FuzzInboxCursor: the cursor of a message leads back to its place, and what is none is refused.
func FuzzInboxCursor(f *testing.F) {
	m := inapp.Message{ID: "01000000070000002a60000000000000", CreatedMs: 1769850000000, Card: card.Card{Options: card.Options{Priority: 7}}}
	for _, s := range []string{inboxCursor(&m), "", ".", "..", "0.0.", "-1.-1.x", "1.2.3.4", "9223372036854775808.0.x", "+1.1.x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := parseInboxCursor(text)
		if !ok {
			return
		}
		again, ok := parseInboxCursor(inboxCursor(&m))
		if !ok || inapp.First(m, again) != 0 || len(m.ID) > 64 {
			t.Fatalf("%q is %+v, and that is %+v", text, m, again)
		}
	})
}
