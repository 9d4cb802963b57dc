package messages

import (
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/credentials"
)

// CapturedChannels returns the channels whose messages the service keeps for
// listOutbox instead of sending them: e-mail without a relay, and channels for which
// the account has set up no provider.
func (a *API) CapturedChannels(v *resolver.View) []string {
	out := []string{}
	if a.opts.Captured == nil {
		return out
	}
	if a.opts.CapturesEmail {
		out = append(out, "email")
	}
	for _, channel := range [...]string{"sms", "whatsapp", "im"} {
		if _, ok := v.Credentials().Get(credentials.Message, channel); !ok {
			out = append(out, channel)
		}
	}
	if len(v.Credentials().Of(credentials.Push)) == 0 {
		out = append(out, "push")
	}
	return out
}
