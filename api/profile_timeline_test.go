package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// timelineEntry is something that happened to a profile.
type timelineEntry struct {
	At, Kind string
	Event    *struct {
		EventType string `json:"event_type"`
	}
	Transition *struct {
		SegmentName *string `json:"segment_name"`
		Entered     bool
		Cause       string
		ProfileID   string `json:"profile_id"`
	}
	Step *struct {
		FlowName string `json:"flow_name"`
		StepID   string `json:"step_id"`
		Result   string
	}
	Merge *struct {
		ProfileID string `json:"profile_id"`
	}
}

var timelineKinds = []string{"event", "transition", "message", "flow", "step", "merge", "consent", "suppression", "list", "device"}

// line is an entry in short.
func (e *timelineEntry) line() string {
	out := e.At[len("2025-03-01T12:"):len(e.At)-1] + " " + e.Kind
	switch {
	case e.Event != nil:
		out += " " + e.Event.EventType
	case e.Transition != nil:
		out += fmt.Sprintf(" %s entered=%v %s", textOf(e.Transition.SegmentName), e.Transition.Entered, e.Transition.Cause)
	case e.Step != nil:
		out += fmt.Sprintf(" %s/%s %s", e.Step.FlowName, e.Step.StepID, e.Step.Result)
	case e.Merge != nil:
		out += " " + e.Merge.ProfileID
	}
	return out
}

func textOf(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func (s *service) timeline(id, query string) (list []timelineEntry, next *string) {
	s.t.Helper()
	a := s.want("GET", "/profiles/"+id+"/timeline"+query, "", &list)
	return list, a.Next
}

func lines(list []timelineEntry) (out []string) {
	for i := range list {
		out = append(out, list[i].line())
	}
	return out
}

// TestProfileTimeline: all that happened to a person is in one list, in order, once,
// in pages of any size while more happens, and after a merge that of both.
func TestProfileTimeline(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.live(s.segment("Buyers", `{"kind":"activity","event":"bought"}`).ID)
	gone := s.live(s.segment("Deleted", `{"kind":"activity","event":"seen"}`).ID)
	var flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"F","trigger":{"type":"event","event":"bought"},"steps":[{"id":"tag","type":"tag","add":["buyer"],"next":"text"},{"id":"text","type":"sms","text":"hi"}]}`, &flow)
	s.want("POST", "/flows/"+flow.ID+"/publish", "", nil)
	second := func() { s.clock.Advance(time.Second) }
	second()
	ann := s.event(`{"event_type":"bought","user":{"email":"ann@x.io"}}`)
	second()
	s.event(`{"event_type":"seen","user":{"email":"ann@x.io"}}`)
	second()
	other := s.event(`{"event_type":"seen","user":{"external_id":"7"}}`)
	second()
	s.want("POST", "/profiles/"+ann+"/consent", `{"channel":"email","status":"subscribed"}`, nil)
	second()
	s.want("POST", "/profiles/"+ann+"/suppression", `{"channel":"email"}`, nil)
	second()
	s.want("DELETE", "/profiles/"+ann+"/suppression?channel=email", "", nil)
	second()
	s.event(`{"event_type":"joined","user":{"email":"ann@x.io","external_id":"7"}}`)
	second()
	s.want("DELETE", "/segments/"+gone.ID, "", nil)
	all, next := s.timeline(other, "?limit=1000")
	want := []string{
		"00:07.000 event joined",
		"00:07.000 merge " + other,
		"00:06.000 suppression unsuppressed",
		"00:05.000 suppression suppressed",
		"00:04.000 consent subscribed",
		"00:03.000 transition null entered=true event",
		"00:03.000 event seen",
		"00:02.000 transition null entered=true event",
		"00:02.000 event seen",
		"00:01.000 flow flow_completed",
		"00:01.000 message F/text skipped_no_address",
		"00:01.000 step F/tag done",
		"00:01.000 transition Buyers entered=true event",
		"00:01.000 flow flow_entered",
		"00:01.000 event bought",
	}
	got := lines(all)
	// The merged profile's exit by the merge is there as well.
	got = slices.DeleteFunc(got, func(l string) bool { return strings.HasPrefix(l, "00:07.000 transition null entered=false merge") })
	if len(all) != len(want)+1 || !slices.Equal(got, want) || next != nil {
		t.Fatalf("got\n%s\nexpected\n%s", strings.Join(lines(all), "\n"), strings.Join(want, "\n"))
	}
	for _, e := range all {
		whose := ann
		if e.Transition != nil && (strings.HasSuffix(e.At, ":03.000Z") || e.Transition.Cause == "merge") {
			whose = other
		}
		if e.Transition != nil && e.Transition.ProfileID != whose {
			t.Errorf("%s: the transition is that of %s", e.line(), e.Transition.ProfileID)
		}
	}
	for limit := 1; limit <= len(all); limit++ {
		got, cursor := []string(nil), ""
		for {
			part, next := s.timeline(ann, fmt.Sprintf("?limit=%d%s", limit, cursor))
			got = append(got, lines(part)...)
			if next == nil {
				break
			}
			cursor = "&cursor=" + *next
			s.event(`{"event_type":"later","user":{"email":"ann@x.io"}}`)
		}
		var mine []string
		for _, l := range got {
			if !strings.HasSuffix(l, "event later") {
				mine = append(mine, l)
			}
		}
		if !slices.Equal(mine, lines(all)) {
			t.Fatalf("pages of %d:\n%s\nexpected\n%s", limit, strings.Join(mine, "\n"), strings.Join(lines(all), "\n"))
		}
	}
	// Each kind by itself, and two of them.
	for _, kinds := range append(slices.Clone(timelineKinds), "event,transition", "message, step") {
		var want []string
		for i := range all {
			if slices.Contains(strings.Split(strings.ReplaceAll(kinds, " ", ""), ","), all[i].Kind) {
				want = append(want, all[i].line())
			}
		}
		var got []string
		for cursor := ""; ; {
			part, next := s.timeline(ann, "?limit=2&kinds="+strings.ReplaceAll(kinds, " ", "%20")+cursor)
			got = append(got, lines(part)...)
			if next == nil {
				break
			}
			cursor = "&cursor=" + *next
		}
		if got = slices.DeleteFunc(got, func(l string) bool { return strings.HasSuffix(l, "event later") }); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, expected %q", kinds, got, want)
		}
	}
	for path, field := range map[string]string{"?kinds=events": "kinds", "?kinds=": "", "?limit=0": "limit", "?cursor=x": "cursor"} {
		status, a := s.do("GET", "/profiles/"+ann+"/timeline"+path, "")
		if field == "" && status != http.StatusOK || field != "" && (status != http.StatusBadRequest || a.field() != field) {
			t.Errorf("%s: %d %s", path, status, a.Message)
		}
	}
	if status, _ := s.get("/profiles/prf_0/timeline"); status != http.StatusNotFound {
		t.Errorf("of a profile that does not exist: %d", status)
	}
}
