package api

import "github.com/musterhq/muster/resolver"

// capturedChannels returns the channels whose messages the service keeps for
// listOutbox instead of sending them: e-mail without a relay, and channels for which
// the account has set up no provider.
func (a *API) capturedChannels(v *resolver.View) []string {
	out := []string{}
	if a.opts.Captured == nil {
		return out
	}
	if a.opts.CapturesEmail {
		out = append(out, "email")
	}
	for _, channel := range [...]string{"sms", "whatsapp", "im"} {
		if _, ok := v.Credential(resolver.CredentialMessage, channel); !ok {
			out = append(out, channel)
		}
	}
	if len(v.Credentials(resolver.CredentialPush)) == 0 {
		out = append(out, "push")
	}
	return out
}
