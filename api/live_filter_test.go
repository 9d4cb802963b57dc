package api

import (
	"encoding/json"
	"strings"
	"testing"
)

type liveIdentity struct {
	Email      string
	ExternalID string `json:"external_id"`
}

type liveTransition struct {
	SegmentID string `json:"segment_id"`
	Change    string
}

type liveEvent struct {
	EventType   string `json:"event_type"`
	Identity    liveIdentity
	Transitions []liveTransition
}

type refusedEvent struct {
	EventType    string `json:"event_type"`
	Identity     liveIdentity
	Reason, Body string
	BodyBytes    int `json:"body_bytes"`
}

// message reads the next message of a stream, without signs of life.
func message(t *testing.T, lines <-chan string) (name, data string) {
	t.Helper()
	for {
		if l := next(t, lines); strings.HasPrefix(l, "event: ") {
			return strings.TrimPrefix(l, "event: "), strings.TrimPrefix(next(t, lines), "data: ")
		}
	}
}

func (s *service) sendEvent(body string) {
	s.t.Helper()
	s.send("POST", "/api/v1/events", body, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
}

// TestLiveFilters: watchers see the types, people and outcomes that they name.
func TestLiveFilters(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	id := s.event(`{"event_type":"seen","user":{"email":"a@x.io","external_id":"7"}}`)
	streams := map[string]<-chan string{}
	for _, q := range []string{"?event_type=bought,paid", "?identity=A@x.io", "?identity=" + id, "?outcome=duplicate", "?outcome=refused"} {
		lines, stop := s.watch(q)
		defer stop()
		next(t, lines) // it watches
		streams[q] = lines
	}
	s.event(`{"event_type":"seen","user":{"email":"b@x.io"}}`)
	s.event(`{"event_type":"bought","idempotency_key":"k","user":{"email":"b@x.io"}}`)
	s.event(`{"event_type":"bought","idempotency_key":"k","user":{"email":"b@x.io"}}`)
	s.event(`{"event_type":"paid","user":{"external_id":"7"}}`)
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.sendEvent(`{"event_type":"","user":{"email":"a@x.io"}}`)
	expect := func(q string, want ...string) {
		t.Helper()
		for _, w := range want {
			var e struct {
				EventType string `json:"event_type"`
				Outcome   string
				Identity  liveIdentity
			}
			_, data := message(t, streams[q])
			ok(t, json.Unmarshal([]byte(data), &e))
			if got := e.EventType + " " + e.Outcome + " " + e.Identity.Email + e.Identity.ExternalID; got != w {
				t.Errorf("%s: %q, expected %q", q, got, w)
			}
		}
	}
	expect("?event_type=bought,paid", "bought accepted b@x.io", "paid accepted 7")
	expect("?identity=A@x.io", "seen accepted a@x.io", " refused a@x.io")
	expect("?identity="+id, "paid accepted 7", "seen accepted a@x.io")
	expect("?outcome=duplicate", "bought duplicate b@x.io")
	expect("?outcome=refused", " refused a@x.io")
	if status, a := s.get("/events/live?outcome=bad"); status != 400 || a.field() != "outcome" {
		t.Errorf("%d %s", status, a.Message)
	}
}

// TestLiveShowsRefusals: what was refused is shown with the reason and the body, also to
// those who come later, without secrets, and nothing of erased people.
func TestLiveShowsRefusals(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.sendEvent(`{"event_type":"bought","propertys":{"n":1},"user":{"email":"a@x.io"}}`)
	s.sendEvent(`{"event_type":"bought","user":{}}`)
	s.sendEvent(`{"event_type":"login","user":{},"properties":{"password":"pass\"word","nested":{"api_key":12345}}}`)
	s.sendEvent(`not json`)
	s.sendEvent(`{"event_type":"long","user":{},"properties":{"text":"` + strings.Repeat("ä", 9000) + `"}}`)
	lines, stop := s.watch()
	defer stop()
	read := func() (e refusedEvent) {
		t.Helper()
		name, data := message(t, lines)
		if name != "refused" {
			t.Fatalf("%s %s", name, data)
		}
		ok(t, json.Unmarshal([]byte(data), &e))
		return e
	}
	if e := read(); e.EventType != "bought" || e.Identity.Email != "a@x.io" || !strings.Contains(e.Reason, "propertys") || e.Body != `{"event_type":"bought","propertys":{"n":1},"user":{"email":"a@x.io"}}` {
		t.Errorf("%+v", e)
	}
	if e := read(); !strings.Contains(e.Reason, "identifier") || e.Body != `{"event_type":"bought","user":{}}` || e.BodyBytes != len(e.Body) {
		t.Errorf("%+v", e)
	}
	if e := read(); strings.Contains(e.Body, "word\"") && strings.Contains(e.Body, "pass\\") || strings.Contains(e.Body, "12345") || !strings.Contains(e.Body, "(hidden)") {
		t.Errorf("%+v", e)
	}
	if e := read(); e.Body != "not json" || e.Reason == "" {
		t.Errorf("%+v", e)
	}
	if e := read(); len(e.Body) > 4<<10 || len(e.Body) < 4000 || e.BodyBytes < 18000 || e.EventType != "long" {
		t.Errorf("%d of %d bytes", len(e.Body), e.BodyBytes)
	}
	// One of a batch is shown by itself.
	s.send("POST", "/api/v1/events/batch", `{"events":[{"event_type":"seen","user":{"email":"c@x.io"}}, {"event_type":"bad","user":{"email":"null"}}]}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	for name := ""; name != "refused"; {
		var data string
		name, data = message(t, lines)
		var e refusedEvent
		if ok(t, json.Unmarshal([]byte(data), &e)); name == "refused" && e.Body != `{"event_type":"bad","user":{"email":"null"}}` {
			t.Errorf("%+v", e)
		}
	}
	// An erasure removes what was kept, and what is refused for it shows no person.
	id := s.event(`{"event_type":"seen","user":{"email":"gone@x.io"}}`)
	s.want("DELETE", "/profiles/"+id, "", nil)
	if n := len(s.node.Refused(s.account())); n != 0 {
		t.Errorf("%d refused events are kept after an erasure", n)
	}
	s.sendEvent(`{"event_type":"seen","user":{"email":"gone@x.io"}}`)
	list := s.node.Refused(s.account())
	if len(list) != 1 || list[0].Body != "" || list[0].Idents[0] != "" {
		t.Errorf("%+v", list)
	}
}

// TestLiveShowsTransitions: an event has the segments that its profile entered by it.
func TestLiveShowsTransitions(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	seg := s.live(s.segment("Buyers", `{"kind":"activity","event":"bought"}`).ID)
	lines, stop := s.watch()
	defer stop()
	next(t, lines)
	s.event(`{"event_type":"bought","user":{"email":"a@x.io"}}`)
	_, data := message(t, lines)
	if !strings.Contains(data, `"transitions":[{"segment_id":"`+seg.ID+`","change":"entered"}]`) {
		t.Error(data)
	}
}
