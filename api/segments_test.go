package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
)

const (
	buyers  = `{"kind":"activity","event":"item_purchased"}`
	spender = `{"kind":"activity","event":"item_purchased","aggregate":{"fn":"sum","property":"value","op":">=","value":100}}`
	berlin  = `{"kind":"attribute","field":"geo.city","op":"=","value":"Berlin"}`
)

// fill makes n people; every second one bought for 40 × their number, every
// third one lives in Berlin.
func (s *service) fill(n int) (ids []string) {
	for i := range n {
		event, user := `"event_type":"seen"`, fmt.Sprintf(`"email":"p%d@x.io"`, i)
		if i%2 == 0 {
			event = fmt.Sprintf(`"event_type":"item_purchased","properties":{"value":%d}`, 40*i)
		}
		if i%3 == 0 {
			user += `,"geo":{"city":"Berlin"}`
		}
		ids = append(ids, s.event("{"+event+`,"user":{`+user+"}}"))
	}
	return ids
}

type segmentAnswer struct {
	ID         string `json:"_id"`
	Name       string
	Definition json.RawMessage
	Status     string
	Progress   float64
	Count      *int
	AsOf       string `json:"as_of"`
	CreatedAt  string `json:"created_at"`
	UpdatedAt  string `json:"updated_at"`
}

func (s *service) segment(name, definition string) segmentAnswer {
	s.t.Helper()
	var out segmentAnswer
	s.want("POST", "/segments", fmt.Sprintf(`{"name":%q,"definition":%s}`, name, definition), &out)
	return out
}

// live waits until the segment is built.
func (s *service) live(id string) (out segmentAnswer) {
	s.t.Helper()
	eventually.Holds(s.t, "the segment is built", func() bool {
		out = segmentAnswer{}
		s.want("GET", "/segments/"+id, "", &out)
		if out.Status != "live" && (out.Status != "building" || out.Progress < 0 || out.Progress >= 1) {
			s.t.Fatalf("the segment %s is %s, built to %v", out.Name, out.Status, out.Progress)
		}
		return out.Status == "live"
	})
	return out
}

func (a segmentAnswer) counts(t *testing.T, want int) {
	t.Helper()
	if a.Count == nil || *a.Count != want {
		t.Errorf("%s counts %v, want %d", a.Name, a.Count, want)
	}
}

func TestSegments(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.fill(12)
	b := s.segment("Buyers", buyers)
	b.counts(t, 6)
	if b = s.live(b.ID); !strings.HasPrefix(b.ID, "seg_") || b.Progress != 1 || b.AsOf != "2025-03-01T12:00:00.000Z" || b.CreatedAt != b.AsOf || b.UpdatedAt != b.AsOf ||
		!strings.Contains(string(b.Definition), `"item_purchased"`) {
		t.Errorf("have %+v", b)
	}
	s.segment("Spenders", spender).counts(t, 4) // 4, 6, 8 and 10
	rest := s.segment("Others in Berlin", fmt.Sprintf(`{"match":"all","conditions":[{"kind":"segment","segment_id":%q,"member":false},%s]}`, b.ID, berlin))
	rest.counts(t, 2) // 3 and 9

	// Read after write: the next read sees what was acknowledged.
	s.event(`{"event_type":"item_purchased","user":{"email":"p3@x.io"}}`)
	var got segmentAnswer
	s.want("GET", "/segments/"+rest.ID, "", &got)
	got.counts(t, 1)

	s.clock.Advance(time.Minute)
	s.want("PUT", "/segments/"+rest.ID, fmt.Sprintf(`{"name":"In Berlin","definition":%s}`, berlin), &got)
	got.counts(t, 4)
	if got.Name != "In Berlin" || got.ID != rest.ID || got.CreatedAt != rest.CreatedAt || got.UpdatedAt != "2025-03-01T12:01:00.000Z" || got.AsOf != got.UpdatedAt {
		t.Errorf("have %+v", got)
	}

	var list []segmentAnswer
	s.want("GET", "/segments", "", &list)
	var names []string
	for _, x := range list {
		names = append(names, x.Name)
	}
	if len(list) != 3 || !slices.Contains(names, "In Berlin") {
		t.Errorf("listed %q", names)
	}
	// In pages.
	var paged []string
	for path := "/segments?limit=2"; ; {
		var page []segmentAnswer
		a := s.want("GET", path, "", &page)
		for _, x := range page {
			paged = append(paged, x.Name)
		}
		if a.Next == nil {
			break
		}
		path = "/segments?limit=2&cursor=" + *a.Next
	}
	if !slices.Equal(paged, names) {
		t.Errorf("in pages %q, at once %q", paged, names)
	}

	// A segment in use stays.
	inUse := s.segment("Not buyers", fmt.Sprintf(`{"kind":"segment","segment_id":%q,"member":false}`, b.ID))
	if status, a := s.do("DELETE", "/segments/"+b.ID, ""); status != 409 || !strings.Contains(a.Message, "Not buyers") {
		t.Errorf("a segment in use: %d %s", status, a.Message)
	}
	if status, a := s.do("PUT", "/segments/"+b.ID, fmt.Sprintf(`{"name":"x","definition":{"kind":"segment","segment_id":%q}}`, inUse.ID)); status != 409 && status != 400 || a.field() != "definition" {
		t.Errorf("a cycle: %d %s", status, a.Message)
	}
	s.want("DELETE", "/segments/"+inUse.ID, "", nil)
	s.want("DELETE", "/segments/"+b.ID, "", nil)
	if status, _ := s.get("/segments/" + b.ID); status != 404 {
		t.Errorf("a deleted segment: %d", status)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	ids := s.fill(30)
	in := s.segment("Spenders", spender)
	var p struct {
		Count  int
		AsOf   string `json:"as_of"`
		Sample []struct {
			ProfileID  string `json:"profile_id"`
			Identities map[string][]string
			Segments   []string
		}
	}
	s.want("POST", "/segments/preview", `{"definition":`+buyers+`}`, &p)
	if p.Count != 15 || p.AsOf != "2025-03-01T12:00:00.000Z" || len(p.Sample) != 10 {
		t.Fatalf("have %d at %s, sample of %d", p.Count, p.AsOf, len(p.Sample))
	}
	for i, x := range p.Sample {
		if x.ProfileID != ids[2*i] || x.Identities["email"][0] != fmt.Sprintf("p%d@x.io", 2*i) || slices.Contains(x.Segments, in.ID) != (80*i >= 100) {
			t.Errorf("sample %d: %+v", i, x)
		}
	}
	type previewPart struct {
		Path           string
		Count, Without uint64
	}
	var whole struct {
		Count, Profiles uint64
		Share           float64
		Parts           []previewPart
		Warnings        []string
	}
	s.want("POST", "/segments/preview", `{"definition":{"match":"all","conditions":[`+buyers+`,`+berlin+`,{"match":"any","conditions":[{"kind":"activity","event":"item_purchase"}]}]}}`, &whole)
	if whole.Count != 0 || whole.Profiles != 30 || whole.Share != 0 || len(whole.Parts) != 4 || whole.Parts[0].Path != "conditions[0]" || whole.Parts[0].Count != 15 ||
		whole.Parts[2] != (previewPart{"conditions[2]", 0, whole.Parts[3].Without}) || whole.Parts[3].Path != "conditions[2].conditions[0]" || whole.Parts[3].Without == 0 {
		t.Errorf("parts: %+v", whole)
	}
	const warning = "conditions[2].conditions[0].event: there has never been an event of the type item_purchase; did you mean item_purchased?"
	if len(whole.Warnings) != 1 || whole.Warnings[0] != warning {
		t.Errorf("warnings: %q", whole.Warnings)
	}
	s.want("POST", "/segments/preview", `{"definition":`+buyers+`}`, &whole)
	if whole.Count != 15 || whole.Share != 0.5 || len(whole.Parts) != 0 || len(whole.Warnings) != 0 {
		t.Errorf("one condition: %+v", whole)
	}
	var saved struct{ Warnings []string }
	s.want("POST", "/segments", `{"name":"Typing","definition":{"kind":"activity","event":"item_purchasd"}}`, &saved)
	if len(saved.Warnings) != 1 || !strings.HasSuffix(saved.Warnings[0], "did you mean item_purchased?") {
		t.Errorf("warnings of a saved segment: %q", saved.Warnings)
	}
	membersOf := func(id string) (m struct{ Members []string }) {
		s.want("GET", "/segments/"+id+"/members", "", &m)
		return m
	}
	var change struct{ Count, Entering, Leaving *uint64 }
	s.want("POST", "/segments/preview", fmt.Sprintf(`{"definition":%s,"segment_id":%q}`, berlin, in.ID), &change)
	spenders, berliners := membersOf(in.ID).Members, membersOf(s.segment("In Berlin", berlin).ID).Members
	stay := uint64(0)
	for _, id := range spenders {
		if slices.Contains(berliners, id) {
			stay++
		}
	}
	if *change.Entering != uint64(len(berliners))-stay || *change.Leaving != uint64(len(spenders))-stay || *change.Entering == 0 || *change.Leaving == 0 || stay == 0 {
		t.Errorf("%d enter and %d leave, of %d and %d with %d in common", *change.Entering, *change.Leaving, len(spenders), len(berliners), stay)
	}
	if status, a := s.do("POST", "/segments/preview", `{"definition":`+buyers+`,"segment_id":"seg_none"}`); status != 400 || !strings.Contains(a.Message, "segment_id") {
		t.Errorf("of no segment: %d %s", status, a.Message)
	}
	s.want("POST", "/segments/preview", `{"definition":{"kind":"activity","event":"never"}}`, &p)
	if p.Count != 0 || p.Sample == nil || len(p.Sample) != 0 {
		t.Errorf("no profile should match: %+v", p)
	}
	s.want("POST", "/segments/preview", `{"definition":{"kind":"activity","event":"never","did":false}}`, &p)
	if p.Count != 30 {
		t.Errorf("everybody: %d", p.Count)
	}
}

// TestClockBehind: an event that was acknowledged counts though the clock was
// set back since.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.event(`{"event_type":"item_purchased","user":{"email":"a@x.io"}}`)
	s.clock.Advance(-time.Hour)
	s.segment("Buyers", `{"kind":"activity","event":"item_purchased","window":{"last_days":1}}`).counts(t, 1)
}

// TestHistoryDown: without history a segment and a profile are still answered,
// with what is missing said; what is nothing without it is 503.
func TestHistoryDown(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	// Little time for what is not answered in time.
	s := newService(t, h, func(o *Options) {
		o.Evaluation.Timeout, o.Evaluation.ListTimeout = 500*time.Millisecond, 100*time.Millisecond
	})
	id := s.fill(4)[0]
	city := s.segment("In Berlin", berlin)
	s.live(city.ID)
	release := h.holdReplays()
	seg := s.segment("Buyers", buyers)
	check := func(t *testing.T) {
		var got segmentAnswer
		if a := s.want("GET", "/segments/"+seg.ID, "", &got); got.Count != nil || a.Message == "" || got.Name != "Buyers" {
			t.Errorf("segment: %+v %q", got, a.Message)
		}
		if a := s.want("PUT", "/segments/"+seg.ID, `{"name":"Buyers","definition":`+buyers+`}`, &got); got.Count != nil || a.Message == "" {
			t.Errorf("saved segment: %+v %q", got, a.Message)
		}
		var list []segmentAnswer
		if a := s.want("GET", "/segments", "", &list); len(list) != 2 || a.Message == "" ||
			slices.ContainsFunc(list, func(x segmentAnswer) bool { return (x.Name == "Buyers") != (x.Count == nil) }) {
			t.Errorf("list: %+v %q", list, a.Message)
		}
		var p struct {
			ProfileID string `json:"profile_id"`
			Segments  []string
		}
		if a := s.want("GET", "/profiles/"+id, "", &p); p.ProfileID != id || p.Segments != nil || a.Message == "" {
			t.Errorf("profile: %+v %q", p, a.Message)
		}
		for _, path := range []string{"/segments/" + seg.ID + "/members", "/profiles/" + id + "/events"} {
			if status, a := s.get(path); status != 503 || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %d %s", path, status, a.Message)
			}
		}
		if status, _ := s.do("POST", "/segments/preview", `{"definition":`+buyers+`}`); status != 503 {
			t.Errorf("preview: %d", status)
		}
	}
	members := func(t *testing.T) {
		var m membersAnswer
		if s.want("GET", "/segments/"+city.ID+"/members", "", &m); len(m.Members) != 2 {
			t.Errorf("members of a live segment: %+v", m)
		}
	}
	h.set(errors.New("disk on fire"), nil)
	t.Run("failing", check)
	t.Run("failing, live", members)
	hold := make(chan struct{})
	h.set(nil, hold)
	t.Run("slow, live", members)
	t.Run("slow", check)
	h.set(nil, nil)
	close(hold)
	eventually.Holds(t, "history counts again", func() bool {
		var got segmentAnswer
		s.want("GET", "/segments/"+seg.ID, "", &got)
		return got.Count != nil && *got.Count == 2
	})
	release()
	s.live(seg.ID).counts(t, 2)
}

// TestEvaluationsBounded (Q1): so many questions run, so many wait, the others
// are turned away at once.
func TestEvaluationsBounded(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, func(o *Options) { o.Evaluation.AtOnce, o.Evaluation.Queue = 1, 2 })
	s.fill(2)
	hold := make(chan struct{})
	h.set(nil, hold)
	var group sync.WaitGroup
	statuses := make(chan int, 10)
	ask := func() {
		status, _ := s.do("POST", "/segments/preview", `{"definition":`+buyers+`}`)
		statuses <- status
	}
	for range 3 {
		group.Go(ask)
	}
	eventually.Holds(t, "one preview runs and two wait", func() bool {
		return s.api.evaluations.Running() >= 1 && s.api.evaluations.Queued() >= 2
	})
	status, a := s.do("POST", "/segments/preview", `{"definition":`+buyers+`}`)
	if status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d %s", status, a.Message)
	}
	h.set(nil, nil)
	close(hold)
	group.Wait()
	for range 3 {
		if status := <-statuses; status != 200 {
			t.Errorf("one that waited: %d", status)
		}
	}
}

// TestListSharesConditions: a condition that many segments share is asked once.
func TestListSharesConditions(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	s.fill(6)
	defer h.holdReplays()()
	for i := range 5 {
		s.segment(fmt.Sprint("Buyers ", i), fmt.Sprintf(`{"match":"all","conditions":[%s,%s]}`, buyers, berlin))
	}
	h.questions()
	var list []segmentAnswer
	s.want("GET", "/segments", "", &list)
	for _, x := range list {
		x.counts(t, 1)
	}
	if asked, _ := h.questions(); asked != 1 || len(list) != 5 {
		t.Errorf("%d segments with one condition asked history %d times", len(list), asked)
	}
}

// TestPreviewSharesConditions: a condition that stands twice in a definition is answered right
// in both places.
func TestPreviewSharesConditions(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.fill(6)
	var p struct{ Count int }
	s.want("POST", "/segments/preview", fmt.Sprintf(`{"definition":{"match":"any","conditions":[{"match":"all","conditions":[%s,%s]},%s]}}`, buyers, berlin, buyers), &p)
	if p.Count != 3 {
		t.Errorf("have %d, want 3", p.Count)
	}
}
