package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/resolver/automation"
)

// TestF1PendingThroughAMergeEntersAgain merges two profiles of which one was in
// the flow before and one waits for it to be resumed: with after_exit the merged
// one enrols.
func TestF1PendingThroughAMergeEntersAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reentry, was, waits string // e-mail's profile wins
		want                uint64
	}{
		{"after_exit", "email", "external_id", 2},
		{"after_exit", "external_id", "email", 2},
		{"once", "email", "external_id", 1},
		{"once", "external_id", "email", 1},
	} {
		t.Run(c.reentry+" "+c.waits, func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			name := map[string]string{"email": "a@x.io", "external_id": "visitor"}
			seg := r.segment(`{"kind":"activity","event":"viewed","window":{"last_days":1}}`)
			flow := r.flow(fmt.Sprintf(`{"name":"x","reentry":%q,"trigger":{"type":"segment_entered","segment_id":%q},"steps":[{"id":"s",%s,"next":null}]}`, c.reentry, seg, tagStep))
			r.events(ev(c.was, name[c.was])) // through the flow at once
			r.now += 2 * dayMs
			r.tick()
			r.must(automation.CommandPause, automation.ID{ID: flow})
			r.events(ev(c.waits, name[c.waits]))
			r.expectFlow(flow, automation.Paused, 1, 1)
			r.events(ev("type", "other", "email", name["email"], "external_id", name["external_id"]))
			r.must(automation.CommandResume, automation.ID{ID: flow})
			r.rest()
			r.expectFlow(flow, automation.Live, c.want, 0)
		})
	}
}

// addsUp checks that who came to a step is there or has a result.
func (r *recorder) addsUp(flow string, step int, exited uint64) {
	r.t.Helper()
	c := r.flowState(flow).Counts.Steps[step]
	sum := c.At
	for result, n := range c.Results {
		sum += n
		if result.String() == "pending" {
			r.t.Fatalf("F1: %d have left a step and are pending: %+v", n, c)
		}
	}
	got := uint64(0)
	for result, n := range c.Results {
		if result.String() == "exited" {
			got = n
		}
	}
	if c.Arrived != sum || got != exited {
		r.t.Fatalf("F1: of %d who came to a step %d are accounted for, %d as exited, want %d: %+v", c.Arrived, sum, got, exited, c)
	}
}

// TestF1StepsAddUpAfterMergeAndErasure ends enrolments from outside, at a step.
func TestF1StepsAddUpAfterMergeAndErasure(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	flow := r.flow(loopFlow("x", "viewed", `"type":"wait","seconds":3600`))
	ada := r.events(ev("email", "a@x.io"), ev("external_id", "b"), ev("email", "c@x.io")).Events[0].Profile
	r.addsUp(flow, 0, 0)
	r.events(ev("type", "other", "email", "a@x.io", "external_id", "b"))
	r.addsUp(flow, 0, 1)
	enrolments, err := r.view().Flows().EnrolmentsOf(flow, ada.Ordinal())
	if err != nil || len(enrolments) != 2 || enrolments[0].Path[0].Result.String() != "exited" {
		t.Fatalf("F1: the enrolments are %+v, %v", enrolments, err)
	}
	r.must(CommandContactErase, ContactErase{ID: ada.String()})
	r.addsUp(flow, 0, 2)
	r.now += 3_600_000
	r.tick()
	r.addsUp(flow, 0, 2)
	if c := r.flowState(flow).Counts; c.Steps[0].At != 0 || c.Completed != 1 || c.Exited != 2 {
		t.Fatalf("F1: %+v", c)
	}
}

// TestTagStepKeepsWhatIsNoText: tags are texts; the step leaves other values among
// them alone.
func TestTagStepKeepsWhatIsNoText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, want string }{
		{`{}`, `{"tags":["n"]}`},
		{`{"tags":["a",5,"b"]}`, `{"tags":[5,"b","n"]}`},
		{`{"tags":"vip"}`, `{"tags":["vip","n"]}`},
		{`{"tags":"a"}`, `{"tags":["n"]}`},
		{`{"tags":{"x":1}}`, `{"tags":[{"x":1},"n"]}`},
		{`{"tags":[["a"],"n",1.50]}`, `{"tags":[["a"],"n",1.50]}`},
	} {
		r := newRecorder(t, DefaultSettings())
		r.flow(loopFlow("x", "viewed", `"type":"tag","add":["n"],"remove":["a"]`))
		ada := r.events(ev("email", "a@x.io", "attributes", c.have)).Events[0].Profile
		if p := r.profile(ada.String()); string(p.Attributes) != c.want {
			t.Errorf("F1: %s becomes %s, want %s", c.have, p.Attributes, c.want)
		}
	}
}
