package automation

import (
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// FlowState is a flow as it stands.
type FlowState struct {
	Flow
	Def    *flows.Flow
	Counts Counts
	// InProgress is how many are in the flow now.
	InProgress uint64
	// Pending is how many are still to be enrolled since the flow went live.
	Pending uint64
}

func (f *flow) state() FlowState {
	x := FlowState{Flow: *f.Flow, Def: f.def, Counts: f.counts, InProgress: f.active.GetCardinality(), Pending: f.pending.Bits.GetCardinality()}
	x.Counts.Steps = make([]StepCount, len(f.counts.Steps))
	for i := range x.Counts.Steps {
		x.Counts.Steps[i] = f.counts.Steps[i].clone()
	}
	return x
}

// List lists the flows, the oldest first.
func (s *State) List() []FlowState {
	list := s.byAge()
	out := make([]FlowState, len(list))
	for i, f := range list {
		out[i] = f.state()
	}
	return out
}

// Saved lists the flows as they are saved, without what is counted of them,
// the oldest first.
func (s *State) Saved() []*Flow {
	list := s.byAge()
	out := make([]*Flow, len(list))
	for i, f := range list {
		out[i] = f.Flow
	}
	return out
}

// Find finds a flow.
func (s *State) Find(id string) (FlowState, bool) {
	if f := s.flow(id); f != nil {
		return f.state(), true
	}
	return FlowState{}, false
}

// Faults lists what keeps a flow from going live, beside credits.
func (s *State) Faults(id string) flows.Faults {
	f := s.flow(id)
	if f == nil {
		return nil
	}
	return f.def.Validate(s.port.World())
}

// EnrolmentsOf are the enrolments of a profile in a flow, the newest last.
func (s *State) EnrolmentsOf(flow string, ordinal uint32) ([]flows.Enrolment, error) {
	f := s.flow(flow)
	if f == nil || !f.entered.Contains(ordinal) {
		return nil, nil
	}
	b, err := s.run.store.Entity(state.EnrolmentKey(s.account, f.Number, ordinal))
	if err != nil {
		return nil, err
	}
	var r flows.Record
	if err := r.Decode(b); err != nil {
		return nil, err
	}
	return r.Enrolments, nil
}

// ProfilesIn lists profiles that are or were in a flow, in order of ordinals,
// from one on, limit at most. Without ended, those that are in it now.
func (s *State) ProfilesIn(flow string, ended bool, from uint32, limit int) []uint32 {
	f := s.flow(flow)
	switch {
	case f == nil:
		return nil
	case ended:
		return profile.Page(f.entered, from, limit)
	}
	return profile.Page(f.active, from, limit)
}

// IDsOf lists the ids of the flows that a profile is or was in, the oldest flow
// first.
func (s *State) IDsOf(ordinal uint32) []string {
	var in []*flow
	for _, f := range s.all {
		if f.entered.Contains(ordinal) {
			in = append(in, f)
		}
	}
	sortByAge(in)
	out := make([]string, len(in))
	for i, f := range in {
		out[i] = f.ID
	}
	return out
}

// Has reports whether there is a flow, which is not deleted.
func (s *State) Has(id string) bool { return s.flow(id) != nil }

// Get returns a flow as it is saved, with its definition; nil if there is none. Neither must
// be changed.
func (s *State) Get(id string) (saved *Flow, def *flows.Flow) {
	f := s.flow(id)
	if f == nil {
		return nil, nil
	}
	return f.Flow, f.def
}

// Step finds a step of a flow, nil if there is none. It must not be changed.
func (s *State) Step(flow, step string) *flows.Step {
	f := s.flow(flow)
	if f == nil {
		return nil
	}
	i := slices.IndexFunc(f.def.Steps, func(x flows.Step) bool { return x.ID == step })
	if i < 0 {
		return nil
	}
	return &f.def.Steps[i]
}

// EachDefinition calls fn for the flows, in order of number. The definitions must not be
// changed.
func (s *State) EachDefinition(fn func(id string, def *flows.Flow)) {
	for _, f := range s.all {
		fn(f.ID, f.def)
	}
}

// byAge lists flows, the oldest first; of equally old ones by id, as pages do.
func (s *State) byAge() []*flow {
	out := slices.Clone(s.all)
	sortByAge(out)
	return out
}
