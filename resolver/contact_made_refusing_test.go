package resolver

import (
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

// TestContactMadeRefusing: a contact made with refusals has them on record and is not
// asked to confirm anything; other channels get the usual assumption.
func TestContactMadeRefusing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name       string
		create     contacts.Create
		email, sms string
	}{
		{"both", contacts.Create{Email: "a@x.io", Phone: "+49 1", Unsubscribed: []string{"email", "sms"}}, view.StatusUnsubscribed, view.StatusUnsubscribed},
		{"e-mail", contacts.Create{Email: "b@x.io", Phone: "+49 2", Unsubscribed: []string{"email"}}, view.StatusUnsubscribed, view.StatusSubscribed},
		{"without an e-mail", contacts.Create{ExternalID: "c", Unsubscribed: []string{"email"}}, view.StatusUnsubscribed, ""},
		{"neither", contacts.Create{Email: "d@x.io", Phone: "+49 4"}, view.StatusPending, view.StatusSubscribed},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := DefaultSettings()
			s.DoubleOptIn = true
			r := newRecorder(t, s)
			p := r.profile(r.contact(x.create))
			if email, sms := p.Status("email", r.now), p.Status("sms", r.now); email != x.email || sms != x.sms {
				t.Errorf("%q and %q, want %q and %q", email, sms, x.email, x.sms)
			}
		})
	}
	r := newRecorder(t, DefaultSettings())
	r.refuses("consents: channel Input should be", contacts.CommandCreate, contacts.Create{Email: "x@x.io", Unsubscribed: []string{"fax"}})
	r.refuses("consents: email is given twice", contacts.CommandCreate, contacts.Create{Email: "x@x.io", Unsubscribed: []string{"email", "email"}})

	// The record of a contact without them is as it was.
	if b, err := json.Marshal(contacts.Create{Email: "a@x.io"}); err != nil || string(b) != `{"email":"a@x.io"}` {
		t.Errorf("%s, %v", b, err)
	}
}
