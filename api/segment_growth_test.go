package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

type growthAnswer struct {
	AsOf   string `json:"as_of"`
	Series []segmentSpan
}

type segmentSpan struct {
	Start                  string
	Entered, Left, Members uint64
}

// TestSegmentGrowth: entries and exits of each span, and members at its end, are those
// that were seen then (S2).
func TestSegmentGrowth(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	for i := range 3 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io"}}`, i))
	}
	seg := s.live(s.segment("Recent", `{"kind":"activity","event":"seen","window":{"last_days":2}}`).ID)
	other := s.live(s.segment("Other", `{"kind":"activity","event":"seen"}`).ID)
	count := func() uint64 {
		var r segmentAnswer
		s.want("GET", "/segments/"+seg.ID, "", &r)
		return uint64(*r.Count)
	}
	members := []uint64{count()}
	for day := range 4 { // each day two more come, and those of two days before go
		s.clock.Advance(24 * time.Hour)
		for i := range 2 {
			s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"d%d-%d@x.io"}}`, day, i))
		}
		members = append(members, count())
	}
	var g growthAnswer
	s.want("GET", "/segments/"+seg.ID+"/growth", "", &g)
	want := [][2]uint64{{3, 0}, {2, 0}, {2, 3}, {2, 2}, {2, 2}}
	if len(g.Series) != len(want) || g.AsOf != "2025-03-05T12:00:00.000Z" {
		t.Fatalf("%+v", g)
	}
	for i, x := range g.Series {
		if x.Entered != want[i][0] || x.Left != want[i][1] || x.Members != members[i] || x.Start != fmt.Sprintf("2025-03-%02dT00:00:00.000Z", i+1) {
			t.Errorf("day %d: %+v, expected %v and %d members", i, x, want[i], members[i])
		}
	}
	// A part of it knows those who were members before.
	var part growthAnswer
	s.want("GET", "/segments/"+seg.ID+"/growth?from=2025-03-03T08:00:00Z&to=2025-03-04T00:00:00Z", "", &part)
	if len(part.Series) != 1 || part.Series[0] != g.Series[2] || part.AsOf != "2025-03-03T23:59:59.999Z" {
		t.Errorf("%+v, expected %+v", part, g.Series[2])
	}
	s.want("GET", "/segments/"+seg.ID+"/growth?granularity=month", "", &part)
	if len(part.Series) != 1 || part.Series[0] != (segmentSpan{"2025-03-01T00:00:00.000Z", 11, 7, 4}) {
		t.Errorf("%+v", part)
	}
	for query, field := range map[string]string{"?granularity=year": "granularity", "?from=yesterday": "from", "?from=2025-03-03&to=2025-03-03": "from", "?granularity=hour&from=2024-01-01": "granularity"} {
		if status, a := s.get("/segments/" + seg.ID + "/growth" + query); status != http.StatusBadRequest || a.field() != field {
			t.Errorf("%s: %d %s", query, status, a.Message)
		}
	}
	if status, _ := s.get("/segments/none/growth"); status != http.StatusNotFound {
		t.Errorf("of no segment: %d", status)
	}

	var o struct {
		Both        uint64 `json:"both"`
		OnlySegment uint64 `json:"only_segment"`
		OnlyWith    uint64 `json:"only_with"`
	}
	s.want("GET", "/segments/"+seg.ID+"/overlap?with="+other.ID, "", &o)
	if o.Both != 4 || o.OnlySegment != 0 || o.OnlyWith != 7 {
		t.Errorf("%+v", o)
	}
	bought := s.live(s.segment("Bought", `{"kind":"activity","event":"bought"}`).ID)
	s.event(`{"event_type":"bought","user":{"email":"p0@x.io"}}`)
	s.event(`{"event_type":"bought","user":{"email":"d3-0@x.io"}}`)
	s.want("GET", "/segments/"+bought.ID+"/overlap?with="+seg.ID, "", &o)
	if o.Both != 1 || o.OnlySegment != 1 || o.OnlyWith != 3 {
		t.Errorf("%+v", o)
	}
	for query, want := range map[string]int{"": 400, "?with=none": 400} {
		if status, a := s.get("/segments/" + seg.ID + "/overlap" + query); status != want || a.field() != "with" {
			t.Errorf("%q: %d %s", query, status, a.Message)
		}
	}
	if status, _ := s.get("/segments/none/overlap?with=" + seg.ID); status != http.StatusNotFound {
		t.Errorf("of no segment: %d", status)
	}
}
