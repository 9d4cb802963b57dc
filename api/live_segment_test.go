package api

import (
	"encoding/json"
	"testing"
)

// TestLiveOfSegment: a watcher of a segment sees the events that move a profile into it
// or out of it, and no others.
func TestLiveOfSegment(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	id := s.live(s.segment("Buyers", `{"kind":"activity","event":"bought","window":{"all_time":true}}`).ID).ID
	lines, stop := s.watch("?segment_id=" + id + "&outcome=accepted,duplicate,refused")
	defer stop()
	next(t, lines) // it watches
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.sendEvent(`{"event_type":"","user":{"email":"a@x.io"}}`)
	s.event(`{"event_type":"bought","user":{"email":"a@x.io"}}`)
	s.event(`{"event_type":"bought","user":{"email":"a@x.io"}}`)
	s.event(`{"event_type":"bought","user":{"email":"b@x.io"}}`)
	for _, who := range []string{"a@x.io", "b@x.io"} {
		var e liveEvent
		name, data := message(t, lines)
		ok(t, json.Unmarshal([]byte(data), &e))
		if name != "event" || e.EventType != "bought" || e.Identity.Email != who || len(e.Transitions) != 1 || e.Transitions[0] != (liveTransition{id, "entered"}) {
			t.Errorf("%s %s", name, data)
		}
	}
}
