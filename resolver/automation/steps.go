package automation

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Step is a step of a flow that a profile came to.
type Step struct {
	Flow       *Flow
	Name       string // of the flow, at present
	ID, Type   string // of the step
	Enrolment  uint32 // its number among those of the profile in the flow
	Index      uint32 // of the step in the enrolment's path
	AtMs       int64  // when the profile came to it
	Result     flows.Result
	Branch     int
	FailReason string // why it failed
}

// CompareSteps orders steps by time, then by flow, enrolment and place in its path.
func CompareSteps(x, y *Step) int {
	return cmp.Or(cmp.Compare(x.AtMs, y.AtMs), cmp.Compare(x.Flow.Number, y.Flow.Number), cmp.Compare(x.Enrolment, y.Enrolment), cmp.Compare(x.Index, y.Index))
}

// StepsOf lists the steps of all flows that a profile came to and that keep holds
// for, the newest first, limit at most. Of a flow it knows the enrolment in progress
// and the newest [flows.KeptEnded] that have ended.
func (s *State) StepsOf(ordinal uint32, limit int, keep func(*Step) bool) ([]Step, error) {
	var out []Step
	shorten := func() {
		slices.SortFunc(out, func(x, y Step) int { return CompareSteps(&y, &x) })
		out = out[:min(limit, len(out))]
	}
	var r flows.Record
	for _, f := range s.all {
		if !f.entered.Contains(ordinal) {
			continue
		}
		b, err := s.run.store.Entity(state.EnrolmentKey(s.account, f.Number, ordinal))
		if err == nil {
			err = r.Decode(b)
		}
		if err != nil {
			return nil, err
		}
		for i := range r.Enrolments {
			e := &r.Enrolments[i]
			for j := range e.Path {
				x := &e.Path[j]
				at := &f.def.Steps[x.Step]
				step := Step{Flow: f.Flow, Name: f.def.Name, ID: at.ID, Type: at.Type, Enrolment: e.Number, Index: uint32(j),
					AtMs: x.AtMs, Result: x.Result, Branch: x.Branch, FailReason: x.Reason}
				if keep(&step) {
					out = append(out, step)
				}
			}
		}
		if len(out) > 4*limit {
			shorten()
		}
	}
	shorten()
	return out, nil
}
