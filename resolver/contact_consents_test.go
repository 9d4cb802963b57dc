package resolver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestContactUpdateConsents: consents in a change of a contact do what the command of
// consents does, whatever was said before; and a subscription that changes nothing for
// the contact is refused where that is asked for, with all that stands beside it.
func TestContactUpdateConsents(t *testing.T) {
	t.Parallel()
	name := "Ada"
	for i, before := range append(sayings(), sayings()...) {
		for _, status := range []string{"subscribed", "unsubscribed"} {
			doubleOptIn := i >= len(sayings())
			t.Run(fmt.Sprintf("%t/%s, then %s", doubleOptIn, before.name, status), func(t *testing.T) {
				made := func() (*recorder, string) {
					settings := DefaultSettings()
					settings.DoubleOptIn = doubleOptIn
					r := newRecorder(t, settings)
					id := r.events(ev("email", "anna@x.io")).Events[0].Profile.String()
					before.do(r, id, "email")
					return r, id
				}
				one, id := made()
				one.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: status, Source: "api"})
				two, id2 := made()
				two.must(contacts.CommandUpdate, contacts.Update{ID: id2, FirstName: &name, Consents: []contacts.ConsentChange{{Channel: "email", Status: status, Source: "api"}}})
				x, y := one.profile(id), two.profile(id2)
				if !reflect.DeepEqual(x.Consents, y.Consents) || !reflect.DeepEqual(x.Suppressions, y.Suppressions) || y.FirstName != name {
					t.Errorf("consent.set leaves %+v %+v, contact.update %+v %+v", x.Consents, x.Suppressions, y.Consents, y.Suppressions)
				}
				three, id3 := made()
				was := three.profile(id3)
				update := contacts.Update{ID: id3, FirstName: &name, Consents: []contacts.ConsentChange{{Channel: "email", Status: status, Source: "api", Effective: true}}}
				if before.blocked == "" || status == "unsubscribed" {
					three.must(contacts.CommandUpdate, update)
					if is := three.profile(id3).Subscribed(); is != (status == "subscribed") {
						t.Errorf("subscribed is %t", is)
					}
					return
				}
				three.refuses("subscribed: the contact is "+before.blocked+" on email; lift the suppression first", contacts.CommandUpdate, update)
				if now := three.profile(id3); !reflect.DeepEqual(now, was) {
					t.Errorf("it was refused and has changed the contact:\n%+v\n%+v", was, now)
				}
			})
		}
	}
}

// TestContactUpdateBadConsents: what cannot be understood is refused, and nothing is
// changed.
func TestContactUpdateBadConsents(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.contact(contacts.Create{Email: "ann@x.io"})
	for says, list := range map[string][]contacts.ConsentChange{
		"consents: channel Input should be":              {{Channel: "sms", Status: "unsubscribed"}, {Channel: "post", Status: "subscribed"}},
		"consents: status Input should be subscribed or": {{Channel: "sms", Status: "pending"}},
		"consents: source must have at most 100 bytes":   {{Channel: "sms", Status: "subscribed", Source: fmt.Sprintf("%101d", 1)}},
		"consents: sms is given twice":                   {{Channel: "sms", Status: "subscribed"}, {Channel: "sms", Status: "unsubscribed"}},
	} {
		r.refuses(says, contacts.CommandUpdate, contacts.Update{ID: id, Consents: list})
	}
	if p := r.profile(id); p.Consent("sms").Status != "never_subscribed" {
		t.Errorf("%+v", p.Consents)
	}
}

// TestRedactedContactUpdate: where a consent came from is taken out with the person,
// and the log replays to the same state.
func TestRedactedContactUpdate(t *testing.T) {
	t.Parallel()
	w := &redactWorld{recorder: &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}, rng: rand.New(rand.NewPCG(1, 1)), account: testAccount}
	w.do(CommandBootstrap, testBootstrap(DefaultSettings()))
	made := func(email string) string {
		var reply contacts.Reply
		if err := json.Unmarshal(w.do(contacts.CommandCreate, contacts.Create{Email: email}).Reply, &reply); err != nil {
			t.Fatal(err)
		}
		return reply.ID
	}
	gone, stays := made("ann@x.io"), made("bob@x.io")
	for _, id := range []string{gone, stays} {
		for _, source := range []string{"Secret-source", strings.Repeat("Secret-source", 9)} {
			w.do(contacts.CommandUpdate, contacts.Update{ID: id, Consents: []contacts.ConsentChange{{Channel: "email", Status: "unsubscribed", Source: source}, {Channel: "push", Status: "subscribed", Source: source}}})
		}
	}
	w.do(CommandContactErase, ContactErase{ID: gone})
	w.redact()
	if found := strings.Count(string(bytes.Join(w.log, nil)), "Secret-source"); found != 2+2*9 { // those of the contact that stays
		t.Errorf("%d sources are left in the log", found)
	}
	replayed := testMachine(t)
	var rows query.Batch
	var out Outcome
	for offset, rec := range w.log {
		if err := replayed.Apply(int64(offset), rec, &rows, &out); err != nil {
			t.Fatal(err)
		}
	}
	if x, y := hashOf(t, w.m), hashOf(t, replayed); x != y {
		t.Error("the state differs after a replay")
	}
}
