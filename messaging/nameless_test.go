package messaging

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
)

// TestNameless: what a relay or provider repeats of a recipient is taken out of its answer,
// and nothing else.
func TestNameless(t *testing.T) {
	t.Parallel()
	p := &view.Profile{FirstName: "Zqann Marie", LastName: "Zqdoe", Identities: []view.Identity{
		{Kind: resolver.IdentityEmail, Value: "zqv@p.example"}, {Kind: resolver.IdentityExternalID, Value: "zq-17"}, {Kind: resolver.IdentityPhone, Value: "+49305551222"},
	}}
	p.Devices = []view.Device{{Kind: "webpush", Address: `{"endpoint":"https://push.example/send/zq-subscription?v=2","keys":{}}`}, {Kind: "fcm", Address: "zq:token"}}
	for text, want := range map[string]string{
		"550 5.1.1: <ZQV@p.example>: no such user":                   "550 5.1.1: <(recipient)>: no such user",
		"550 5.1.1 unknown user zqv":                                 "550 5.1.1 unknown user (recipient)",
		"mailbox=zqv@p.example is full":                              "mailbox=(recipient) is full",
		"GET /?to=zqv%40p.example: refused":                          "GET /?to=(recipient): refused",
		"21211: to 49305551222 (Zqann Zqdoe)":                        "21211: to (recipient) ((recipient) (recipient))",
		"customer zq-17, not zq-170":                                 "customer (recipient), not zq-170",
		"410: https://push.example/send/zq-subscription?v=2 is gone": "410: (recipient) is gone",
		"410: no device at /send/zq-subscription?v=2":                "410: no device at (recipient)",
		"410: zq-subscription and zq:token":                          "410: (recipient) and (recipient)",
		"554 5.7.1 rejected by policy":                               "554 5.7.1 rejected by policy",
	} {
		if have := nameless(text, p); have != want {
			t.Errorf("%q becomes %q, want %q", text, have, want)
		}
	}
	if have := nameless("554 no", nil); have != "554 no" || strings.Contains(nameless("zqv", p), "zq") {
		t.Errorf("%q", have)
	}
}
