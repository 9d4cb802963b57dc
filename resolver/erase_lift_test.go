package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
)

// TestC1RefusalsOutliveAnErasure: what a person had refused holds again when the
// erasure was lifted and the person is stored again, by whatever way and after a
// restart; a person without refusals has none afterwards (C1, R1).
func TestC1RefusalsOutliveAnErasure(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	again := map[string]func(r *recorder) string{
		"an event": func(r *recorder) string {
			return r.events(ev("email", "anna@x.io")).Events[0].Profile.String()
		},
		"contact.create": func(r *recorder) string { return r.contact(contacts.Create{Email: "Anna@x.io"}) },
		"contact.create with the phone": func(r *recorder) string {
			return r.contact(contacts.Create{Email: "bert@x.io", Phone: "+491"})
		},
		"contact.update": func(r *recorder) string {
			id := r.contact(contacts.Create{Email: "bert@x.io"})
			r.must(contacts.CommandUpdate, contacts.Update{ID: id, ExternalID: text("anna")})
			return id
		},
		"contact.update with the phone": func(r *recorder) string {
			id := r.contact(contacts.Create{Email: "bert@x.io"})
			r.must(contacts.CommandUpdate, contacts.Update{ID: id, Phone: text("+49 1")})
			return id
		},
	}
	tries := 0
	for _, channel := range []string{"email", "sms", "push"} {
		for _, s := range sayings() {
			for name, store := range again {
				if tries++; tries%testlevel.Count(4, 1) != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", channel, s.name, name), func(t *testing.T) {
					d := newDurable(t, DefaultSettings())
					r := d.recorder
					id := r.events(ev("email", "anna@x.io", "external_id", "anna", "phone", "+49 1")).Events[0].Profile.String()
					s.do(r, id, channel)
					r.must(CommandContactErase, ContactErase{ID: id})
					r.refuses(erasure.Message, contacts.CommandCreate, contacts.Create{Email: "anna@x.io"})
					d.reload()
					for _, lift := range []erasure.Lift{{Value: "anna@x.io"}, {Kind: "external_id", Value: "anna"}, {Value: "+49 1"}} {
						r.must(erasure.CommandLift, lift)
					}
					if n := len(r.view().Erasures().List("", 10)); n != 0 {
						t.Fatalf("%d identifiers are still kept out", n)
					}
					d.reload()
					r.now += 1000
					p := r.profile(store(r))
					if got := p.Consent(channel).Status; (got == "unsubscribed") != (s.status == "unsubscribed") {
						t.Errorf("the consent is %s, before the erasure it was %s", got, s.status)
					}
					if got := p.SuppressionReason(channel); got != s.blocked {
						t.Errorf("the block is %q, before the erasure it was %q", got, s.blocked)
					}
					d.reload()
				})
			}
		}
	}
}
