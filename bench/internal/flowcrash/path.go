package flowcrash

import (
	"fmt"
	"slices"
)

// instants are when something may have happened, one mostly; none is any time from
// leastMs on.
type instants struct {
	of      []int64
	leastMs int64
}

func (x instants) has(ms int64) bool {
	if x.of == nil {
		return ms >= x.leastMs
	}
	return slices.Contains(x.of, ms)
}

// doneAt are the instants at which a flow does what is due at one: while it is
// paused it does nothing.
func (o *oracle) doneAt(f *flow, ms int64) []int64 {
	in, edge := o.pausedAt(f, ms)
	switch {
	case in == nil:
		return []int64{ms}
	case edge:
		return []int64{ms, in.toMs}
	}
	return []int64{in.toMs}
}

// walk follows an enrolment along its definition: each step that it came to, when,
// and what became of it (F1).
func (o *oracle) walk(f *flow, h *human, w *enrolment) error {
	if len(w.Path) == 0 {
		return fmt.Errorf("it has come to no step")
	}
	due := instants{of: []int64{int64(w.StartedAt)}}
	next := &f.steps[0].ID
	for i := range w.Path {
		v := &w.Path[i]
		last := i == len(w.Path)-1
		switch {
		case next == nil:
			return fmt.Errorf("it came to step %s, and there is none behind %s", v.ID, w.Path[i-1].ID)
		case v.ID != *next:
			return fmt.Errorf("it came to step %s, not to %s", v.ID, *next)
		case !due.has(int64(v.At)):
			return fmt.Errorf("it came to step %s at %d, not at %v", v.ID, v.At, due)
		}
		if last && w.merged() && v.Result == "exited" {
			return nil
		}
		s := f.step(v.ID)
		if err := o.judge(f, h, s, v); err != nil {
			return fmt.Errorf("step %s: %w", v.ID, err)
		}
		next, due = follows(s, v), o.after(f, s, v)
		if s.Type == "webhook" && v.Result == "failed" && s.Failure == "exit" {
			return ended(w, last, "exited", "webhook_failed", due)
		}
	}
	if next != nil {
		return fmt.Errorf("it ended (%s) and should have continued with step %s", w.Status, *next)
	}
	return ended(w, true, "completed", "", due)
}

func ended(w *enrolment, last bool, status, reason string, due instants) error {
	was := ""
	if w.Reason != nil {
		was = *w.Reason
	}
	switch {
	case !last || w.Status != status || was != reason || w.EndedAt == nil:
		return fmt.Errorf("it is %s %s, not %s %s", w.Status, was, status, reason)
	case !due.has(int64(*w.EndedAt)):
		return fmt.Errorf("it ended at %d, not at %v", *w.EndedAt, due)
	}
	return nil
}

// follows is the step behind one with a result.
func follows(s *step, v *visit) *string {
	switch {
	case s.Type == "condition" && v.Result == "yes":
		return s.Yes
	case s.Type == "condition":
		return s.No
	case s.Type == "split":
		return s.Branches[*v.Branch].Next
	}
	return s.Next
}

// after is when the enrolment continues behind a step.
func (o *oracle) after(f *flow, s *step, v *visit) instants {
	done := o.doneAt(f, int64(v.At))
	switch s.Type {
	case "webhook":
		return instants{leastMs: slices.Min(done)}
	case "wait":
		var out []int64
		for _, ms := range done {
			out = append(out, o.doneAt(f, ms+1000*s.Seconds)...)
		}
		return instants{of: out}
	}
	return instants{of: done}
}

// judge compares what became of a step with what should have.
func (o *oracle) judge(f *flow, h *human, s *step, v *visit) error {
	want := []string{"done"}
	switch s.Type {
	case "condition":
		want = o.answers(f, h, s, v)
	case "split":
		if v.Branch == nil || *v.Branch < 0 || *v.Branch >= len(s.Branches) {
			return fmt.Errorf("a split without a branch")
		}
		want = []string{"branch"}
	case "webhook":
		// Which of the two is checked with the receiver.
		if want = []string{"delivered"}; s.ID == stepFlaky {
			want = []string{"delivered", "failed"}
		}
	case "email":
		p := h.people[0]
		switch {
		case p.email == "":
			want = []string{"skipped_no_address"}
		case p.left: // some time
			want = []string{"queued", "skipped_not_subscribed"}
		default:
			want = []string{"queued"}
		}
	}
	if !slices.Contains(want, v.Result) {
		return fmt.Errorf("the result is %q, not %q", v.Result, want)
	}
	return nil
}

// answers are what a condition may say. At the very millisecond of an event, or of
// the end of a window, both.
func (o *oracle) answers(f *flow, h *human, s *step, v *visit) []string {
	both, yes, no := []string{"yes", "no"}, []string{"yes"}, []string{"no"}
	if s.If["kind"] == "attribute" {
		if h.people[0].tier == tierGold {
			return yes
		}
		return no
	}
	sure, maybe := false, false
	for _, ms := range o.doneAt(f, int64(v.At)) {
		for i := range h.facts {
			x := &h.facts[i]
			if at := int64(x.At); x.Type == s.If["event"] {
				sure = sure || at < ms && ms < at+o.world.places.windows.Busy
				maybe = maybe || at == ms
			}
		}
	}
	switch {
	case sure:
		return yes
	case maybe:
		return both
	}
	return no
}
