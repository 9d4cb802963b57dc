package api

import (
	"strings"
	"testing"
)

// TestSessionNamesCapturedChannels: the session names the channels whose messages
// are not sent, and no more once the account has a provider.
func TestSessionNamesCapturedChannels(t *testing.T) {
	t.Parallel()
	captured := func(s *service) string {
		var d struct {
			Channels []string `json:"captured_channels"`
		}
		s.want("GET", "/session", "", &d)
		if d.Channels == nil {
			t.Error("no list")
		}
		return strings.Join(d.Channels, " ")
	}
	if have := captured(newService(t, &memHistory{}, nil)); have != "" {
		t.Errorf("without a store of captured messages: %q", have)
	}
	if have := captured(newService(t, &memHistory{}, func(o *Options) { o.Captured.Messages = noneCaptured{} })); have != "sms whatsapp im push" {
		t.Errorf("with a relay: %q", have)
	}
	s := newService(t, &memHistory{}, func(o *Options) { o.Captured.Messages, o.Captured.Email = noneCaptured{}, true })
	if have := captured(s); have != "email sms whatsapp im push" {
		t.Errorf("without a relay: %q", have)
	}
	s.want("PUT", "/message-providers/sms", `{"preset":"twilio","account_sid":"AC0123456789abcdef0123456789abcdef","auth_token":"tw-secret-0123456789abcdef012345","from":"+4930123"}`, nil)
	s.want("PUT", "/push-credentials/webpush", `{"generate":true,"subject":"mailto:a@b.example"}`, nil)
	if have := captured(s); have != "email whatsapp im" {
		t.Errorf("with providers of SMS and push: %q", have)
	}
}
