package api

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

type profileAnswer struct {
	ProfileID   string              `json:"profile_id"`
	MergedIDs   []string            `json:"merged_ids"`
	Identities  map[string][]string `json:"identities"`
	FirstName   string              `json:"first_name"`
	LastName    string              `json:"last_name"`
	Geo         map[string]any
	Attributes  map[string]any
	Consent     map[string]struct{ Status string }
	Lists       []string
	Segments    []string
	Statuses    map[string]string
	Conflicts   []struct{ Kind, Value, Reason string }
	CreatedAt   string  `json:"created_at"`
	LastEventAt *string `json:"last_event_at"`
}

func TestProfile(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	a := s.event(`{"event_type":"seen","user":{"email":"Ann@X.io","first_name":"Ann","last_name":"Lee","geo":{"city":"Berlin"},"attributes":{"plan":"pro","n":1}}}`)
	b := s.event(`{"event_type":"item_purchased","properties":{"value":150},"user":{"external_id":"u1","phone":"+49 30 1"}}`)
	in := s.segment("Spenders", spender)
	out := s.segment("Not in Berlin", `{"kind":"attribute","field":"geo.city","op":"!=","value":"Berlin"}`)
	s.segment("Not buyers", `{"kind":"activity","event":"item_purchased","did":false}`)
	all := s.segment("Buyers", buyers)
	nested := s.segment("Nested", fmt.Sprintf(`{"match":"all","conditions":[{"kind":"segment","segment_id":%q},{"kind":"segment","segment_id":%q,"member":false}]}`, in.ID, out.ID))

	var p profileAnswer
	s.want("GET", "/profiles?email=ann@x.io", "", &p)
	if p.ProfileID != a || len(p.Segments) != 1 {
		t.Errorf("have %s in %q", p.ProfileID, p.Segments)
	}
	s.want("GET", "/profiles?external_id=u1", "", &p)
	if want := []string{in.ID, out.ID, all.ID}; p.ProfileID != b || !sameSet(p.Segments, want) {
		t.Errorf("have %s in %q, want %q", p.ProfileID, p.Segments, want)
	}

	// The two are one.
	if merged := s.event(`{"event_type":"seen","user":{"email":"ann@x.io","external_id":"u1"}}`); merged != a {
		t.Fatalf("merged into %s, want %s", merged, a)
	}
	for _, path := range []string{"/profiles/" + a, "/profiles/" + b, "/profiles?phone=%2B49301", "/profiles?external_id=u1"} {
		p = profileAnswer{}
		s.want("GET", path, "", &p)
		if p.ProfileID != a || !slices.Equal(p.MergedIDs, []string{b}) || p.FirstName != "Ann" || p.LastName != "Lee" || p.Geo["city"] != "Berlin" || p.Attributes["n"] != 1.0 ||
			!slices.Equal(p.Identities["email"], []string{"ann@x.io"}) || !slices.Equal(p.Identities["external_id"], []string{"u1"}) || len(p.Identities["phone"]) != 1 ||
			len(p.Consent) != 6 || p.Consent["sms"].Status != "never_subscribed" || p.Lists == nil || p.Statuses == nil || p.Conflicts == nil ||
			p.CreatedAt != "2025-03-01T12:00:00.000Z" || p.LastEventAt == nil || *p.LastEventAt != p.CreatedAt {
			t.Errorf("%s: %+v", path, p)
		}
		if want := []string{in.ID, nested.ID, all.ID}; !sameSet(p.Segments, want) {
			t.Errorf("%s: in %q, want %q", path, p.Segments, want)
		}
	}

	// Another e-mail with the same external id is another person.
	c := s.event(`{"event_type":"seen","user":{"email":"bob@x.io"}}`)
	s.event(`{"event_type":"seen","user":{"email":"bob@x.io","external_id":"u1"}}`)
	p = profileAnswer{}
	s.want("GET", "/profiles/"+c, "", &p)
	if c == a || len(p.Conflicts) != 1 || p.Conflicts[0].Kind != "external_id" || p.Conflicts[0].Reason == "" {
		t.Errorf("conflicts: %+v", p.Conflicts)
	}
	if len(p.Geo) != 0 || p.Geo == nil || p.Attributes == nil {
		t.Errorf("empty objects: %v %v", p.Geo, p.Attributes)
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// TestProfileManyEvents: a profile with more events than are looked at one by
// one is found in the members, with the same answer (S1).
func TestProfileManyEvents(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{2, 100} {
		h := &memHistory{}
		s := newService(t, h, func(o *Options) { o.Evaluation.TimelineEvents = limit })
		release := h.holdReplays() // what is live is not worked out
		ids := s.fill(5)
		for range 3 {
			s.event(`{"event_type":"item_purchased","properties":{"value":50},"user":{"email":"p1@x.io"}}`)
		}
		want := []string{s.segment("Buyers", buyers).ID, s.segment("Spenders", spender).ID}
		s.segment("In Berlin", berlin)
		var p profileAnswer
		s.want("GET", "/profiles/"+ids[1], "", &p)
		if !sameSet(p.Segments, want) {
			t.Errorf("with a limit of %d events: in %q, want %q", limit, p.Segments, want)
		}
		release()
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var id string
	for i := range 7 {
		id = s.event(fmt.Sprintf(`{"event_type":"seen","properties":{"n":%d},"idempotency_key":"k%d","user":{"email":"a@x.io"}}`, i, i))
		s.clock.Advance(time.Second)
	}
	b := s.event(`{"event_type":"other","user":{"external_id":"b"}}`)
	s.event(`{"event_type":"joined","user":{"email":"a@x.io","external_id":"b"}}`)
	type page struct {
		Events []struct {
			EventType      string `json:"event_type"`
			Timestamp      string
			Properties     map[string]any
			IdempotencyKey *string `json:"idempotency_key"`
		}
		Next *string
	}
	var all page
	s.want("GET", "/profiles/"+id+"/events", "", &all)
	if len(all.Events) != 9 || all.Next != nil {
		t.Fatalf("have %d events", len(all.Events))
	}
	if e := all.Events[2]; e.EventType != "seen" || e.Timestamp != "2025-03-01T12:00:06.000Z" || e.Properties["n"] != 6.0 || *e.IdempotencyKey != "k6" {
		t.Errorf("have %+v", e)
	}
	if e := all.Events[0]; e.EventType != "joined" || e.Properties == nil || e.IdempotencyKey != nil {
		t.Errorf("have %+v", e)
	}
	// In pages, through the merged id, with an event that comes between.
	var got []string
	next := ""
	for {
		var p page
		s.want("GET", "/profiles/"+b+"/events?limit=2"+next, "", &p)
		for _, e := range p.Events {
			got = append(got, e.EventType+e.Timestamp)
		}
		if p.Next == nil {
			break
		}
		next = "&cursor=" + *p.Next
		s.event(`{"event_type":"late","user":{"email":"a@x.io"}}`)
		s.clock.Advance(time.Second)
	}
	var want []string
	for _, e := range all.Events {
		want = append(want, e.EventType+e.Timestamp)
	}
	if !slices.Equal(got, want) {
		t.Errorf("in pages %q\nat once %q", got, want)
	}
}
