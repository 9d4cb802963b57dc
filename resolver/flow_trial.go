package resolver

import (
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// FlowTrial is what the state decides of a profile's next enrolment in a flow, without
// anything being done.
type FlowTrial struct {
	// Email and SMS are what a message would come to, [flows.Queued] when it would be
	// sent. Credits are not looked at.
	Email, SMS flows.Result
	// Split has the bits that decide a split, by the index of its step.
	Split map[int]uint64
}

// FlowTrial answers for a profile; f is of the same view.
func (v *View) FlowTrial(f *FlowState, ordinal uint32) (out FlowTrial, err error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return out, err
	}
	out.Email, out.SMS = v.a.flowReach(&d, "email", IdentityEmail), v.a.flowReach(&d, "sms", IdentityPhone)
	number := uint32(1)
	before, err := v.EnrolmentsOf(f.ID, ordinal)
	if err != nil {
		return out, err
	}
	if len(before) > 0 {
		number = before[len(before)-1].Number + 1
	}
	out.Split = map[int]uint64{}
	for i := range f.Def.Steps {
		if f.Def.Steps[i].Split != nil {
			out.Split[i], _ = v.a.splitBits(nil, f.Number, ordinal, number, i)
		}
	}
	return out, nil
}
