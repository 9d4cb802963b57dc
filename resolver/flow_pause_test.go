package resolver

import (
	"testing"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestF1PausedFlowNotesTheAnswerOfACall answers calls of a paused flow: nothing
// moves, nothing is counted or recorded until it is resumed.
func TestF1PausedFlowNotesTheAnswerOfACall(t *testing.T) {
	t.Parallel()
	const step = `{"name":"x","trigger":{"type":"api"},"steps":[{"id":"w","type":"webhook","url":"https://example.com/x","on_failure":"exit"`
	for _, c := range []struct{ name, definition, result, after, event string }{
		{"last step", step + `,"next":null}]}`, outbox.ResultSent, "#1 w:delivered completed", automation.EventCompleted},
		{"exit on failure", step + `,"next":null}]}`, outbox.ResultFailed, "#1 w:failed exited webhook_failed", automation.EventExited},
		{"another step", step + `,"next":"t"},{"id":"t","type":"wait","seconds":5,"next":null}]}`, outbox.ResultSent, "#1 w:delivered t:pending in_progress", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			flow := r.flow(c.definition)
			ada := r.events(ev("email", "a@x.io")).Events[0].Profile
			r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "a@x.io"})
			call := r.due(outbox.KindCall)[0].Seq
			r.must(automation.CommandPause, automation.ID{ID: flow})
			before := r.flowState(flow)
			r.now += 8000
			answered := r.now
			r.must(messages.CommandOutboxDone, outbox.Done{Seq: call, Result: c.result, Reason: "500"})
			r.now += 3_600_000
			r.tick()
			r.rest()
			r.expectEnrolment(flow, ada, "#1 w:pending in_progress")
			if f := r.flowState(flow); string(must.JSON(f.Counts)) != string(must.JSON(before.Counts)) || f.InProgress != 1 {
				t.Fatalf("F1: counts of a paused flow went from %s to %s", must.JSON(before.Counts), must.JSON(f.Counts))
			}
			if n := r.count(automation.EventCompleted) + r.count(automation.EventExited); n != 0 {
				t.Fatalf("F1: a paused flow emitted %d ends", n)
			}
			enrolments, err := r.view().Flows().EnrolmentsOf(flow, ada.Ordinal())
			if err != nil || enrolments[0].Phase == flows.Awaiting || enrolments[0].DueMs != answered {
				t.Fatalf("the answer is not noted: %+v, %v", enrolments, err)
			}
			r.must(automation.CommandResume, automation.ID{ID: flow})
			r.rest()
			r.expectEnrolment(flow, ada, c.after)
			if c.event != "" && r.count(c.event) != 1 {
				t.Fatalf("%d events %s", r.count(c.event), c.event)
			}
			// It counts from the instant of resuming.
			if enrolments, _ = r.view().Flows().EnrolmentsOf(flow, ada.Ordinal()); c.event == "" && enrolments[0].SinceMs != r.now {
				t.Fatalf("at the step since %d, resumed at %d", enrolments[0].SinceMs, r.now)
			}
			r.must(messages.CommandOutboxDone, outbox.Done{Seq: call, Result: c.result})
			r.expectEnrolment(flow, ada, c.after)
		})
	}
}

// TestF1NotedAnswersOfManyGoOnInPieces resumes a flow with many noted answers:
// no record carries on more of them than it may.
func TestF1NotedAnswersOfManyGoOnInPieces(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.m.flows.Bounds.Steps = 10
	flow := r.flow(`{"name":"x","trigger":{"type":"api"},"steps":[{"id":"w","type":"webhook","url":"https://example.com/x","next":"t"},{"id":"t","type":"tag","add":["x"],"next":null}]}`)
	const people = 35
	for i := range people {
		email := string(rune('a'+i%26)) + string(rune('a'+i/26)) + "@x.io"
		r.events(ev("email", email))
		r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: email})
	}
	r.must(automation.CommandPause, automation.ID{ID: flow})
	for _, it := range r.due(outbox.KindCall) {
		r.must(messages.CommandOutboxDone, outbox.Done{Seq: it.Seq, Result: outbox.ResultSent})
	}
	if f := r.flowState(flow); f.InProgress != people || f.Counts.Steps[0].At != people {
		t.Fatalf("F1: %d are in the paused flow, %d at its call", f.InProgress, f.Counts.Steps[0].At)
	}
	r.must(automation.CommandResume, automation.ID{ID: flow})
	last, records := uint64(0), 0
	for r.m.Pending() > 0 {
		r.continueOnce()
		done := r.flowState(flow).Counts.Completed
		if done-last > 10 {
			t.Fatalf("L3: a record carried on %d enrolments", done-last)
		}
		last, records = done, records+1
	}
	if last != people || records < people/10 {
		t.Fatalf("%d of %d continued, with %d records", last, people, records)
	}
}

// TestF1NotedAnswerThroughMergeEraseAndDelete takes a person whose call answer was
// noted through what may happen while a flow is paused.
func TestF1NotedAnswerThroughMergeEraseAndDelete(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (r *recorder, flow string, near, far ProfileID) {
		r = newRecorder(t, DefaultSettings())
		flow = r.flow(`{"name":"x","trigger":{"type":"api"},"steps":[{"id":"w","type":"webhook","url":"https://example.com/x","next":"t"},{"id":"t","type":"tag","add":["x"],"next":null}]}`)
		far = r.events(ev("external_id", "far")).Events[0].Profile
		r.must(automation.CommandTrigger, automation.Trigger{ID: flow, ExternalID: "far"})
		r.must(automation.CommandPause, automation.ID{ID: flow})
		r.must(messages.CommandOutboxDone, outbox.Done{Seq: r.due(outbox.KindCall)[0].Seq, Result: outbox.ResultSent})
		near = r.events(ev("email", "near@x.io")).Events[0].Profile
		return r, flow, near, far
	}
	t.Run("merge", func(t *testing.T) {
		r, flow, near, far := begin(t)
		r.events(ev("type", "other", "email", "near@x.io", "external_id", "far"))
		r.expectEnrolment(flow, near, "#1 w:pending in_progress")
		r.must(automation.CommandResume, automation.ID{ID: flow})
		r.rest()
		r.expectEnrolment(flow, near, "#1 w:delivered t:done completed")
		r.expectEnrolment(flow, far, "#1 w:delivered t:done completed")
		if f := r.flowState(flow); f.Counts.Entered != 1 || f.Counts.Completed != 1 {
			t.Fatalf("counts %+v", f.Counts)
		}
	})
	t.Run("erase", func(t *testing.T) {
		r, flow, _, far := begin(t)
		r.must(CommandContactErase, ContactErase{ID: far.String()})
		r.must(automation.CommandResume, automation.ID{ID: flow})
		r.rest()
		if f := r.flowState(flow); f.Counts.Completed != 0 || f.InProgress != 0 || f.Counts.Steps[0].At != 0 {
			t.Fatalf("F1: %d are in the flow, counts %+v", f.InProgress, f.Counts)
		}
	})
	t.Run("delete", func(t *testing.T) {
		r, flow, _, far := begin(t)
		r.must(automation.CommandDelete, automation.ID{ID: flow})
		r.rest()
		o, _ := r.view().Profiles().Resolve(far)
		if p, _ := r.view().Profiles().Get(o); r.count(automation.EventCompleted) != 0 || len(p.Attributes) != 0 {
			t.Fatalf("an enrolment advanced in a deleted flow: %s", p.Attributes)
		}
	})
}
