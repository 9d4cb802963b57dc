package automation

import (
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// Trial is what the state decides of a profile's next enrolment in a flow, without
// anything being done.
type Trial struct {
	// Reach is what a message would come to by its channel, [flows.Queued] when it would be
	// sent. Credits are not looked at.
	Reach map[string]flows.Result
	// Split has the bits that decide a split, by the index of its step.
	Split map[int]uint64
	// OpenCart reports whether conditions that ask for an open cart find one.
	OpenCart bool
}

// Trial answers for a profile with its document; f is of the same state.
func (s *State) Trial(f *FlowState, ordinal uint32, d *profile.Document) (out Trial, err error) {
	out.Reach = map[string]flows.Result{}
	for i := range f.Def.Steps {
		for _, m := range f.Def.Steps[i].Messages {
			out.Reach[m.Channel] = s.port.Reach(d, m.Channel)
		}
	}
	number := uint32(1)
	before, err := s.EnrolmentsOf(f.ID, ordinal)
	if err != nil {
		return out, err
	}
	if len(before) > 0 {
		number = before[len(before)-1].Number + 1
	}
	out.OpenCart = f.Def.AsksForCart() && s.port.HasOpenCart(ordinal)
	out.Split = map[int]uint64{}
	for i := range f.Def.Steps {
		if f.Def.Steps[i].Split != nil {
			out.Split[i], _ = s.splitBits(nil, f.Number, ordinal, number, i)
		}
	}
	return out, nil
}
