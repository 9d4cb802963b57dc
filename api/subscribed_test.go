package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/musterhq/muster/resolver/contacts"
)

// TestSubscribedAreThoseWhoAreMailed: a segment of the subscribed has those to whom an
// e-mail of a campaign goes, in its count, its preview and a step of a flow. People who
// became contacts without ever having subscribed are not among them.
func TestSubscribedAreThoseWhoAreMailed(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	command := func(name string, args any, reply any) {
		t.Helper()
		out, err := s.node.Command(t.Context(), s.account(), name, args)
		ok(t, err)
		if reply != nil {
			ok(t, json.Unmarshal(out, reply))
		}
	}
	var list contacts.List
	command(contacts.CommandListCreate, contacts.ListSave{Name: "l"}, &list)
	contact := func(c contacts.Create) string {
		t.Helper()
		var made contacts.Reply
		command(contacts.CommandCreate, c, &made)
		return made.ID
	}
	contact(contacts.Create{Email: "asked@x.io"})
	left := contact(contacts.Create{Email: "left@x.io"})
	s.want("POST", "/profiles/"+left+"/consent", `{"channel":"email","status":"unsubscribed"}`, nil)
	suppressed := contact(contacts.Create{Email: "suppressed@x.io"})
	s.want("POST", "/profiles/"+suppressed+"/suppression", `{"channel":"email"}`, nil)
	contact(contacts.Create{ExternalID: "number-only"})
	// A visitor that a list makes a contact, and one that stays a visitor.
	s.event(`{"event_type":"seen","user":{"email":"listed@x.io"}}`)
	command(contacts.CommandListAdd, contacts.ListAdd{ListID: list.ID, Create: contacts.Create{Email: "listed@x.io"}}, nil)
	s.event(`{"event_type":"seen","user":{"email":"visitor@x.io"}}`)
	// A pending contact: not confirmed yet.
	settings := map[string]any{}
	s.want("GET", "/settings", "", &settings)
	settings["double_opt_in"] = true
	body, err := json.Marshal(settings)
	ok(t, err)
	s.want("PUT", "/settings", string(body), nil)
	contact(contacts.Create{Email: "pending@x.io"})

	for _, x := range []struct {
		condition string
		want      uint64
	}{
		{`"op":"=","value":true`, 1}, {`"op":"!=","value":false`, 1}, {`"op":"=","value":false`, 6}, {`"op":"!=","value":true`, 6},
	} {
		definition := fmt.Sprintf(`{"kind":"attribute","field":"subscribed",%s}`, x.condition)
		var preview struct {
			Count     uint64
			Reachable map[string]uint64
		}
		s.want("POST", "/segments/preview", `{"definition":`+definition+`}`, &preview)
		var saved segmentAnswer
		s.want("POST", "/segments", fmt.Sprintf(`{"name":%q,"definition":{"match":"all","conditions":[%s]}}`, x.condition, definition), &saved)
		s.want("PUT", "/segments/"+saved.ID, fmt.Sprintf(`{"name":%q,"definition":%s}`, x.condition, definition), nil)
		s.want("GET", "/segments/"+saved.ID, "", &saved)
		if saved.Count == nil {
			t.Fatalf("subscribed %s: %+v", x.condition, saved)
		}
		if preview.Count != x.want || uint64(*saved.Count) != x.want {
			t.Errorf("subscribed %s: a preview has %d, the segment %d, want %d", x.condition, preview.Count, *saved.Count, x.want)
		}
		// Exactly these contacts are mailed.
		if reach := preview.Reachable["email"]; (x.want == 1) != (reach == 1) {
			t.Errorf("subscribed %s: %d are mailed", x.condition, reach)
		}
	}

	var flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"ask","trigger":{"type":"event","event":"go"},"steps":[
		{"id":"ask","type":"condition","if":{"kind":"attribute","field":"subscribed","op":"=","value":true},"yes":"tag","no":null},
		{"id":"tag","type":"tag","add":["mailed"],"next":null}]}`, &flow)
	for email, want := range map[string]string{"asked@x.io": "ask yes, tag", "listed@x.io": "ask no", "pending@x.io": "ask no"} {
		var p struct {
			ID string `json:"profile_id"`
		}
		s.want("GET", "/profiles?email="+email, "", &p)
		var d dryAnswer
		s.want("POST", "/flows/"+flow.ID+"/dry-run", fmt.Sprintf(`{"profile_id":%q}`, p.ID), &d)
		if have := d.path(); len(have) < len(want) || have[:len(want)] != want {
			t.Errorf("the step of a flow takes %s %q, want %q", email, have, want)
		}
	}
}
