package api

import (
	"testing"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestReachableKnowsRefusedNumbers: a preview does not count those as reachable by text
// whose number another contact refused, in the same spelling or another.
func TestReachableKnowsRefusedNumbers(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	command := func(name string, args any) {
		t.Helper()
		_, err := s.node.Command(t.Context(), s.account(), name, args)
		ok(t, err)
	}
	for _, c := range []contacts.Create{
		{Email: "holder@x.io", Phone: "+49 30 1"}, {Email: "shares@x.io", Phone: "+49301"}, {Email: "spells@x.io", Phone: "0049301"},
		{Email: "own@x.io", Phone: "+49302"}, {Email: "another@x.io", Phone: "0049303"},
	} {
		command(contacts.CommandCreate, c)
	}
	reachable := func(want uint64) {
		t.Helper()
		var p struct {
			Count     uint64
			Reachable map[string]uint64
		}
		s.want("POST", "/segments/preview", `{"definition":{"match":"all","conditions":[{"kind":"attribute","field":"phone","op":"exists"}]}}`, &p)
		if p.Count != 5 || p.Reachable["sms"] != want || p.Reachable["email"] != 5 {
			t.Errorf("%+v, want %d reachable by SMS", p, want)
		}
	}
	reachable(5)
	idOf := func(address string) (id string) {
		ok(t, s.node.Read(t.Context(), s.account(), func(v *resolver.View) error {
			o, _ := v.Profiles().Find(resolver.IdentityEmail, address)
			p, err := v.Profiles().Get(o)
			id = p.ID.String()
			return err
		}))
		return id
	}
	id := idOf("holder@x.io")
	command(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "sms", Status: "unsubscribed"})
	reachable(2)
	command(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "sms", Status: "subscribed"})
	reachable(5)
	// The refusal of the contact with the number without a plus sign holds for the
	// others, too, also when that is not the newest number of theirs.
	spells := idOf("spells@x.io")
	command(contacts.CommandConsentSet, contacts.ConsentSet{ID: spells, Channel: "sms", Status: "unsubscribed"})
	reachable(2)
	newer := "+49304"
	command(contacts.CommandUpdate, contacts.Update{ID: spells, Phone: &newer})
	reachable(2)
}
