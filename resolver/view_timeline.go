package resolver

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// FlowStep is a step of a flow that a profile came to.
type FlowStep struct {
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

// CompareFlowSteps orders steps by time, then by flow, enrolment and place in its path.
func CompareFlowSteps(x, y *FlowStep) int {
	return cmp.Or(cmp.Compare(x.AtMs, y.AtMs), cmp.Compare(x.Flow.Number, y.Flow.Number), cmp.Compare(x.Enrolment, y.Enrolment), cmp.Compare(x.Index, y.Index))
}

// FlowStepsOf lists the steps of all flows that a profile came to and that keep holds
// for, the newest first, limit at most. Of a flow it knows the enrolment in progress
// and the newest [flows.KeptEnded] that have ended.
func (v *View) FlowStepsOf(ordinal uint32, limit int, keep func(*FlowStep) bool) ([]FlowStep, error) {
	var out []FlowStep
	shorten := func() {
		slices.SortFunc(out, func(x, y FlowStep) int { return CompareFlowSteps(&y, &x) })
		out = out[:min(limit, len(out))]
	}
	var r flows.Record
	for _, f := range v.a.flows.all {
		if !f.entered.Contains(ordinal) {
			continue
		}
		b, err := v.m.store.Entity(enrolmentKey(v.a.number, f.Number, ordinal))
		if err == nil {
			err = r.Decode(b)
		}
		if err != nil {
			return nil, err
		}
		for i := range r.Ways {
			e := &r.Ways[i]
			for j := range e.Path {
				x := &e.Path[j]
				s := &f.def.Steps[x.Step]
				step := FlowStep{Flow: f.Flow, Name: f.def.Name, ID: s.ID, Type: s.Type, Enrolment: e.Number, Index: uint32(j),
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

// MergedProfile is a profile that became part of another.
type MergedProfile struct {
	Ordinal uint32
	ID      ProfileID
	AtMs    int64
}

// MergesOf lists the profiles that became part of a profile, or of one that did, in
// the order in which they joined it.
func (v *View) MergesOf(ordinal uint32) ([]MergedProfile, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, err
	}
	out := make([]MergedProfile, len(d.Merged))
	for i, m := range d.Merged {
		out[i] = MergedProfile{m.Ordinal, v.ProfileID(m.Ordinal), m.AtMs}
	}
	return out, nil
}
