package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
)

// That members are right at every instant is tested as S1 in segment/engine;
// here is from where answers come.

// TestLiveNeedsNoHistory: what the engine knows is answered without history, a
// snapshot of the profiles or a turn to ask, and the same as before.
func TestLiveNeedsNoHistory(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	ids := s.fill(12)
	b, sp := s.segment("Buyers", buyers), s.segment("Spenders", spender)
	rest := s.segment("Others in Berlin", fmt.Sprintf(`{"match":"all","conditions":[{"kind":"segment","segment_id":%q,"member":false},%s]}`, b.ID, berlin))
	for _, x := range []segmentAnswer{b, sp, rest} {
		s.live(x.ID)
	}
	h.questions()
	snapshots := s.snapshots()
	h.set(errors.New("disk on fire"), nil)
	for range s.api.opts.Evaluation.AtOnce {
		release, err := s.api.evaluations.Acquire(t.Context())
		ok(t, err)
		defer release()
	}

	for _, x := range []struct {
		segmentAnswer
		count int
	}{{b, 6}, {sp, 4}, {rest, 2}} {
		var got segmentAnswer
		a := s.want("GET", "/segments/"+x.ID, "", &got)
		got.counts(t, x.count)
		var list []segmentAnswer
		a2 := s.want("GET", "/segments", "", &list)
		for _, l := range list {
			if l.ID == x.ID {
				l.counts(t, x.count)
			}
			if l.Status != "live" || l.Progress != 1 {
				t.Errorf("listed: %+v", l)
			}
		}
		var m membersAnswer
		s.want("GET", "/segments/"+x.ID+"/members?limit=100", "", &m)
		if len(m.Members) != x.count || a.Message+a2.Message != "" || got.Status != "live" || len(list) != 3 {
			t.Errorf("%s: %d members, %q", x.Name, len(m.Members), a.Message+a2.Message)
		}
	}
	var p profileAnswer
	if a := s.want("GET", "/profiles/"+ids[4], "", &p); !sameSet(p.Segments, []string{b.ID, sp.ID}) || a.Message != "" {
		t.Errorf("have %q %q", p.Segments, a.Message)
	}
	// Everything here is a condition of a live segment, negated or not.
	var preview previewAnswer
	not := strings.Replace(buyers, "}", `,"did":false}`, 1)
	for definition, want := range map[string]int{
		buyers: 6, not: 6, berlin: 4,
		fmt.Sprintf(`{"match":"all","conditions":[%s,%s]}`, spender, berlin):                                                 1, // 6
		fmt.Sprintf(`{"match":"any","conditions":[%s,{"kind":"segment","segment_id":%q,"member":false}]}`, spender, rest.ID): 10,
	} {
		a := s.want("POST", "/segments/preview", `{"definition":`+definition+`}`, &preview)
		if preview.Count != want || a.Message != "" || len(preview.Sample) != min(want, 10) {
			t.Errorf("%s: %d, want %d, sample of %d; %q", definition, preview.Count, want, len(preview.Sample), a.Message)
		}
		for _, x := range preview.Sample {
			i := slices.Index(ids, x.ProfileID)
			if slices.Contains(x.Segments, b.ID) != (i%2 == 0) || slices.Contains(x.Segments, rest.ID) != (i == 3 || i == 9) {
				t.Errorf("sample: %d is in %q", i, x.Segments)
			}
		}
	}
	if asked, read := h.questions(); asked+read != 0 || s.snapshots() != snapshots {
		t.Errorf("%d questions, %d timelines and %d snapshots for what the engine knows", asked, read, s.snapshots()-snapshots)
	}

	// Read after write, without history.
	s.event(`{"event_type":"item_purchased","user":{"email":"p3@x.io"}}`)
	s.live(rest.ID).counts(t, 1)
}

// snapshots is how many snapshots of the profiles were taken.
func (s *service) snapshots() uint64 {
	return s.api.opts.Metrics.GetOrCreateCounter("muster_console_profile_snapshots_total").Get()
}

type previewAnswer struct {
	Count  int
	AsOf   string `json:"as_of"`
	Sample []struct {
		ProfileID string `json:"profile_id"`
		Segments  []string
		AsOf      string `json:"as_of"`
	}
}

// TestPreviewAsksTheRest: a preview asks history only for conditions that no
// live segment has, and looks at profiles only for such.
func TestPreviewAsksTheRest(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	s.fill(30)
	for _, d := range []string{buyers, berlin} {
		s.live(s.segment(d, d).ID)
	}
	const (
		seen = `{"kind":"activity","event":"seen"}`
		late = `{"kind":"attribute","field":"email","op":"starts_with","value":"p2"}` // 2, 20 to 29
	)
	for _, x := range []struct {
		definition       string
		count            int
		asked, snapshots int
	}{
		{fmt.Sprintf(`{"match":"all","conditions":[%s,%s]}`, buyers, berlin), 5, 0, 0},
		{fmt.Sprintf(`{"match":"all","conditions":[%s,%s]}`, buyers, late), 6, 0, 1},
		{fmt.Sprintf(`{"match":"any","conditions":[%s,%s]}`, buyers, seen), 30, 1, 0},
		{fmt.Sprintf(`{"match":"all","conditions":[%s,%s,%s]}`, seen, late, berlin), 2, 1, 1}, // 21, 27
		{fmt.Sprintf(`{"match":"any","conditions":[{"match":"all","conditions":[%s,%s]},%s]}`, spender, late, seen), 20, 2, 1},
	} {
		h.questions()
		snapshots := int(s.snapshots())
		var p previewAnswer
		s.want("POST", "/segments/preview", `{"definition":`+x.definition+`}`, &p)
		asked, _ := h.questions()
		if snapshots = int(s.snapshots()) - snapshots; p.Count != x.count || asked != x.asked || snapshots != x.snapshots {
			t.Errorf("%s\n%d with %d questions and %d snapshots, want %d with %d and %d", x.definition, p.Count, asked, snapshots, x.count, x.asked, x.snapshots)
		}
	}
}

// TestPreviewScansAFieldOnce: profiles are scanned for the first condition on a field;
// others are answered from what was kept of it, exactly whatever has changed since. What is
// kept goes with a profile that is erased.
func TestPreviewScansAFieldOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	ids := s.fill(30)
	preview := func(condition string, count, scans int) {
		t.Helper()
		had := int(s.snapshots())
		var p previewAnswer
		s.want("POST", "/segments/preview", `{"definition":{"kind":"attribute",`+condition+`}}`, &p)
		if had = int(s.snapshots()) - had; p.Count != count || had != scans {
			t.Errorf("%s: %d with %d scans, want %d with %d", condition, p.Count, had, count, scans)
		}
	}
	preview(`"field":"geo.city","op":"=","value":"Hamburg"`, 0, 1)
	preview(`"field":"geo.city","op":"=","value":"Berlin"`, 10, 0)
	preview(`"field":"geo.city","op":"!=","value":"Berlin"`, 20, 0)
	preview(`"field":"geo.city","op":"exists"`, 10, 0)
	s.event(`{"event_type":"seen","user":{"email":"p1@x.io","geo":{"city":"Hamburg"}}}`)
	s.event(`{"event_type":"seen","user":{"email":"p3@x.io","geo":{"city":"Hamburg"}}}`)
	s.event(`{"event_type":"seen","user":{"email":"new@x.io","geo":{"city":"Berlin"}}}`)
	preview(`"field":"geo.city","op":"=","value":"Berlin"`, 10, 0)
	preview(`"field":"geo.city","op":"=","value":"Hamburg"`, 2, 0)
	preview(`"field":"geo.city","op":"not_exists"`, 19, 0)
	preview(`"field":"attributes.plan","op":"exists"`, 0, 1)
	preview(`"field":"geo.city","op":"starts_with","value":"H"`, 2, 0)
	preview(`"field":"email","op":"starts_with","value":"new"`, 1, 1)
	s.want("DELETE", "/profiles/"+ids[0], "", nil)
	preview(`"field":"geo.city","op":"=","value":"Berlin"`, 9, 1)
	preview(`"field":"geo.city","op":"=","value":"Hamburg"`, 2, 0)
}

// TestPreviewAfterAMerge: a profile that was merged into another one has no document; once
// nothing but its mark as changed is left of it, it is passed over.
func TestPreviewAfterAMerge(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.fill(30)
	preview := func(count int, scans int64) {
		t.Helper()
		had := s.snapshots()
		var p previewAnswer
		s.want("POST", "/segments/preview", `{"definition":{"kind":"attribute","field":"geo.city","op":"=","value":"Berlin"}}`, &p)
		if made := int64(s.snapshots() - had); p.Count != count || made != scans {
			t.Errorf("%d with %d scans, want %d with %d", p.Count, made, count, scans)
		}
	}
	s.event(`{"event_type":"seen","user":{"external_id":"x1","geo":{"city":"Berlin"}}}`)
	preview(11, 1)
	s.event(`{"event_type":"seen","user":{"external_id":"x1","email":"p1@x.io"}}`)
	for range 3 { // until no layer of memory has what was removed
		ok(t, s.node.Checkpoint())
		s.event(`{"event_type":"seen","user":{"email":"p2@x.io"}}`)
	}
	preview(11, 0)
}

// TestFieldsArePreparedForPreviews: a client that lists the attributes is about to ask
// for one, and does not wait for a scan then.
func TestFieldsArePreparedForPreviews(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.fill(30)
	s.want("GET", "/attributes", "", nil)
	eventually.Holds(t, "the columns are made", func() (made bool) {
		ok(t, s.node.Read(t.Context(), s.account(), func(v *resolver.View) error { _, made = v.Columns().Of("geo.city"); return nil }))
		return made
	})
	before := s.snapshots()
	var p previewAnswer
	s.want("POST", "/segments/preview", `{"definition":{"kind":"attribute","field":"geo.city","op":"=","value":"Berlin"}}`, &p)
	if scans := s.snapshots() - before; p.Count != 10 || scans != 0 {
		t.Errorf("%d with %d scans, want 10 with none", p.Count, scans)
	}
}

// TestPreviewsWhereNobodyHasAttributes: an attribute that no profile has was never
// seen.
func TestPreviewsWhereNobodyHasAttributes(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	preview := func(want int) {
		t.Helper()
		s.want("GET", "/attributes", "", nil)
		var p previewAnswer
		s.want("POST", "/segments/preview", `{"definition":{"kind":"attribute","field":"attributes.plan","op":"not_exists"}}`, &p)
		if p.Count != want {
			t.Errorf("%d, want %d", p.Count, want)
		}
	}
	preview(0)
	s.event(`{"event_type":"seen","user":{"email":"ada@x.io"}}`)
	preview(1)
}

// TestBuilding: until a segment is built, history answers, with what the engine
// knows; status and progress say so, also of the segments that refer to it. A
// changed definition counts at once.
func TestBuilding(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	ids := s.fill(12)
	city := s.segment("In Berlin", berlin)
	s.live(city.ID)
	release := h.holdReplays()
	b := s.segment("Buyers", buyers)
	on := s.segment("Buyers in Berlin", fmt.Sprintf(`{"match":"all","conditions":[{"kind":"segment","segment_id":%q},{"kind":"segment","segment_id":%q}]}`, b.ID, city.ID))
	b.counts(t, 6)
	on.counts(t, 2)
	eventually.Holds(t, "the build is held", func() bool { return h.waiting() > 0 })

	h.questions()
	snapshots := s.snapshots()
	var list []segmentAnswer
	s.want("GET", "/segments", "", &list)
	for i, want := range []struct {
		id     string
		status string
		count  int
	}{{city.ID, "live", 4}, {b.ID, "building", 6}, {on.ID, "building", 2}} {
		x := list[slices.IndexFunc(list, func(x segmentAnswer) bool { return x.ID == want.id })]
		x.counts(t, want.count)
		if x.Status != want.status || (x.Progress == 1) != (want.status == "live") || x.AsOf != list[0].AsOf {
			t.Errorf("%d: %+v", i, x)
		}
		var m membersAnswer
		s.want("GET", "/segments/"+want.id+"/members", "", &m)
		if len(m.Members) != want.count {
			t.Errorf("%s has %d members, want %d", x.Name, len(m.Members), want.count)
		}
	}
	// One for the list, one for each page of members; the city is known.
	if asked, _ := h.questions(); asked != 3 || s.snapshots() != snapshots {
		t.Errorf("%d questions, %d snapshots", asked, s.snapshots()-snapshots)
	}
	var p profileAnswer
	s.want("GET", "/profiles/"+ids[6], "", &p)
	if asked, read := h.questions(); !sameSet(p.Segments, []string{city.ID, b.ID, on.ID}) || asked != 0 || read != 1 {
		t.Errorf("have %q with %d questions, %d timelines", p.Segments, asked, read)
	}
	var preview previewAnswer
	s.want("POST", "/segments/preview", `{"definition":`+berlin+`}`, &preview)
	if asked, read := h.questions(); preview.Count != 4 || asked != 0 || read != 4 ||
		!sameSet(preview.Sample[0].Segments, []string{city.ID, b.ID, on.ID}) || !sameSet(preview.Sample[1].Segments, []string{city.ID}) {
		t.Errorf("have %+v with %d questions, %d timelines", preview, asked, read)
	}
	release()
	s.live(on.ID).counts(t, 2)
	s.live(b.ID).counts(t, 6)

	release = h.holdReplays()
	var got segmentAnswer
	s.want("PUT", "/segments/"+b.ID, `{"name":"Seen","definition":{"kind":"activity","event":"seen"}}`, &got)
	got.counts(t, 6)
	if got.Status != "building" || got.Name != "Seen" {
		t.Errorf("a changed definition: %+v", got)
	}
	s.want("GET", "/segments/"+on.ID, "", &got)
	if got.counts(t, 2); got.Status != "building" || got.Progress == 1 { // 3 and 9
		t.Errorf("a segment that refers to it: %+v", got)
	}
	h.questions()
	s.want("PUT", "/segments/"+b.ID, `{"name":"Berlin again","definition":`+berlin+`}`, &got)
	got.counts(t, 4)
	if asked, _ := h.questions(); asked != 0 {
		t.Errorf("%d questions for a definition that is known", asked)
	}
	s.live(on.ID).counts(t, 4)
	release()
}

// TestBuildingOnLive: of a segment that is building on a live one, history is
// not asked what the live one's members have done.
func TestBuildingOnLive(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	ids := s.fill(4)
	b := s.segment("Buyers", buyers)
	s.live(b.ID)
	// The work for a segment that was deleted holds up the next.
	defer h.holdReplays()()
	waits := s.segment("Seen", `{"kind":"activity","event":"seen"}`)
	eventually.Holds(t, "the build is held", func() bool { return h.waiting() > 0 })
	s.want("DELETE", "/segments/"+waits.ID, "", nil)
	on := s.segment("Buyers with an e-mail", fmt.Sprintf(`{"match":"all","conditions":[{"kind":"segment","segment_id":%q},{"kind":"attribute","field":"email","op":"exists"}]}`, b.ID))
	if on.counts(t, 2); on.Status != "building" {
		t.Fatal("it is built already")
	}
	h.questions()
	for i, id := range ids {
		var p profileAnswer
		s.want("GET", "/profiles/"+id, "", &p)
		if want := map[bool][]string{true: {b.ID, on.ID}, false: {}}[i%2 == 0]; !sameSet(p.Segments, want) {
			t.Errorf("%d is in %q, want %q", i, p.Segments, want)
		}
	}
	var p previewAnswer
	s.want("POST", "/segments/preview", fmt.Sprintf(`{"definition":{"kind":"segment","segment_id":%q}}`, on.ID), &p)
	if asked, read := h.questions(); p.Count != 2 || asked+read != 0 {
		t.Errorf("%d, with %d questions and %d timelines", p.Count, asked, read)
	}
}

// TestSampleWaitsItsTurn (Q1): a preview that the engine knows asks history for
// its sample only when it has a turn; without, the rest of it is answered.
func TestSampleWaitsItsTurn(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	// The count has to be there in this time, and the sample waits it out.
	s := newService(t, h, func(o *Options) { o.Evaluation.Timeout = 2 * time.Second })
	s.fill(4)
	s.live(s.segment("In Berlin", berlin).ID)
	defer h.holdReplays()()
	s.segment("Buyers", buyers)
	h.questions()
	for range s.api.opts.Evaluation.AtOnce {
		release, err := s.api.evaluations.Acquire(t.Context())
		ok(t, err)
		defer release()
	}
	var p previewAnswer
	a := s.want("POST", "/segments/preview", `{"definition":`+berlin+`}`, &p)
	if asked, read := h.questions(); p.Count != 2 || len(p.Sample) != 2 || p.Sample[0].Segments != nil || a.Message == "" || asked+read != 0 {
		t.Errorf("have %+v %q, with %d questions and %d timelines", p, a.Message, asked, read)
	}
}

// TestPreviewTurns (Q1): what is combined from what the engine knows is bounded
// like questions to history.
func TestPreviewTurns(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.Evaluation.AtOnce, o.Evaluation.Queue = 1, 1 })
	s.fill(2)
	s.live(s.segment("In Berlin", berlin).ID)
	release, err := s.api.combinations.Acquire(t.Context())
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.api.combinations.Acquire(ctx) // it only waits
	eventually.Holds(t, "a preview waits", func() bool { return s.api.combinations.Queued() != 0 })
	if status, a := s.do("POST", "/segments/preview", `{"definition":`+berlin+`}`); status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d %s", status, a.Message)
	}
	cancel()
	eventually.Holds(t, "no preview waits", func() bool { return s.api.combinations.Queued() == 0 })
	release()
	s.want("POST", "/segments/preview", `{"definition":`+berlin+`}`, nil)
	s.want("POST", "/segments/preview", `{"definition":`+buyers+`}`, nil)
	if n := s.api.combinations.Running() + s.api.evaluations.Running(); n != 0 {
		t.Errorf("%d turns were not given back", n)
	}
}
