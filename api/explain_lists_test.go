package api

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestS1ExplainOfListsAndConsent (S1): an explanation says of list and consent
// conditions what the members say: consent dates are those of the subscription,
// not of the refusal after it.
func TestS1ExplainOfListsAndConsent(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	account, isAccount := resolver.ParseAppID([]byte(s.creds.AppID))
	if !isAccount {
		t.Fatal("no account")
	}
	command := func(name string, args, v any) {
		t.Helper()
		b, err := s.node.Command(t.Context(), account, name, args)
		ok(t, err)
		if v != nil {
			ok(t, json.Unmarshal(b, v))
		}
	}
	var l contacts.List
	command(contacts.CommandListCreate, contacts.ListSave{Name: "vip"}, &l)
	var on, off contacts.Reply
	command(contacts.CommandCreate, contacts.Create{Email: "on@x.io", ListID: l.ID}, &on)
	command(contacts.CommandCreate, contacts.Create{Email: "off@x.io"}, &off)
	s.clock.Advance(48 * time.Hour)
	command(contacts.CommandConsentSet, contacts.ConsentSet{ID: on.ID, Channel: "email", Status: "unsubscribed", Source: "form"}, nil)
	for _, definition := range []string{
		fmt.Sprintf(`{"kind":"list","list_id":%q}`, l.ID),
		fmt.Sprintf(`{"kind":"list","list_id":%q,"member":false}`, l.ID),
		fmt.Sprintf(`{"kind":"consent","channel":"email","status":"unsubscribed","until":%q}`, record.Time(s.clock.Now().Add(-24*time.Hour).UnixMilli())),
	} {
		var r struct {
			ID string `json:"_id"`
		}
		s.want("POST", "/segments", fmt.Sprintf(`{"name":"s","definition":%s}`, definition), &r)
		var m struct{ Members []string }
		s.live(r.ID)
		s.want("GET", "/segments/"+r.ID+"/members", "", &m)
		if len(m.Members) != 1 {
			t.Errorf("%s has %v", definition, m.Members)
		}
		for _, id := range []string{on.ID, off.ID} {
			is := len(m.Members) > 0 && m.Members[0] == id
			if x, _ := s.explain(r.ID, id); x.Member != is || x.Definition.Holds != is {
				t.Errorf("%s: %s is a member %v, explained as %v", definition, id, is, x.Member)
			}
		}
	}
}
