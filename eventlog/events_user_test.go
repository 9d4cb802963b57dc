package eventlog

import (
	"bytes"
	"testing"
)

// TestUserOfEvent: what an event says of its user reads alike if and only if it is the same,
// whatever else the event has.
func TestUserOfEvent(t *testing.T) {
	full := Event{
		Type: []byte("bought"), Email: []byte("a@x.io"), ExternalID: []byte("u-1"), Phone: []byte("+4930123456"),
		FirstName: []byte("Ann"), LastName: []byte("Lee"), Geo: []byte(`{"country":"DE"}`), Attributes: []byte(`{"plan":"pro"}`),
		Properties: []byte(`{"value":1}`), IdempotencyKey: []byte("k"), TimeMs: 5, HasTime: true, AnonymousID: []byte("a-1"),
	}
	user := func(ev Event) (encoded []byte, fields uint16) {
		t.Helper()
		// It is read behind another one.
		body := AppendEvent(AppendEvent(AppendEventCount(nil, 2), &Event{Type: []byte("x"), Email: []byte("b@x.io")}), &ev)
		r, err := NewEventsReader(body)
		var got Event
		if err != nil || !r.Next(&got) || !r.Next(&got) {
			t.Fatal(err, r.Err())
		}
		encoded, fields = r.User()
		return bytes.Clone(encoded), fields
	}
	want, fields := user(full)
	for name, change := range map[string]func(*Event){
		"type": func(e *Event) { e.Type = []byte("seen") }, "properties": func(e *Event) { e.Properties = nil },
		"key": func(e *Event) { e.IdempotencyKey = nil }, "time": func(e *Event) { e.HasTime = false },
		"anonymous id": func(e *Event) { e.AnonymousID = nil }, "flags": func(e *Event) { e.Public = true },
	} {
		ev := full
		change(&ev)
		if got, f := user(ev); !bytes.Equal(got, want) || f != fields {
			t.Errorf("another %s: %q, %b; expected %q, %b", name, got, f, want, fields)
		}
	}
	seen := map[string]string{}
	note := func(name string, ev Event) {
		got, f := user(ev)
		k := string(got) + string(rune(f))
		if seen[k] != "" {
			t.Errorf("%s reads as %s", name, seen[k])
		}
		seen[k] = name
	}
	note("all", full)
	note("none", Event{Type: full.Type, Properties: full.Properties})
	for i, name := range []string{"email", "external id", "phone", "first name", "last name", "geo", "attributes"} {
		without, alone := full, Event{Type: full.Type}
		*without.fields()[i] = nil
		*alone.fields()[i] = []byte("same")
		note("all but "+name, without)
		note(name+" alone", alone)
	}
}
