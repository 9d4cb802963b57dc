package automation

import (
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// publishFlow takes a draft live, as soon as the conditions of its steps are
// built.
func (s *State) publishFlow(tx *feature.Tx, c ID) *refuse.Refusal {
	f := s.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == Paused:
		return refuse.Conflicts("id", "the flow was published before and is paused; resume it")
	case f.Status == Live || f.Publishing:
		tx.Reply = replyOf(f)
		return nil
	}
	if r := s.mayGoLive(f); r != nil {
		return r
	}
	leaves := 0
	for _, i := range f.def.Conditions() {
		leaves += len(f.def.Steps[i].Condition.Root.Leaves())
	}
	if n := s.port.Engine().Leaves() + leaves; leaves > 0 && n > s.port.MaxLeaves() {
		return refuse.AtLimit("definition", "the segments and flows of this account would have %d conditions, the most they can have is %d; share conditions or delete some", n, s.port.MaxLeaves())
	}
	for _, i := range f.def.Conditions() {
		// What fell due with this record is in history, too.
		s.port.Define(conditionID(f.Flow, i), f.def.Steps[i].Condition.Root, tx.Offset+1)
	}
	saved := *f.Flow
	saved.Publishing, saved.PublishError = true, ""
	s.save(f, &saved)
	s.FinishPublishing()
	tx.Reply = replyOf(f)
	return nil
}

// FinishPublishing takes flows live whose conditions are built. No transition of
// a segment may be pending, so that each entry enrols once.
func (s *State) FinishPublishing() {
	for _, f := range s.publishing {
		if !s.port.Engine().Working() && s.conditionsLive(f) {
			s.goLive(f)
		}
	}
}

func (s *State) conditionsLive(f *flow) bool {
	for _, i := range f.def.Conditions() {
		if !s.port.Engine().Live(conditionID(f.Flow, i)) {
			return false
		}
	}
	t := &f.def.Trigger
	return t.SegmentID == "" || !s.port.World().Segment(t.SegmentID) || s.port.Engine().Live(t.SegmentID)
}

// goLive ends publishing, one way or the other.
func (s *State) goLive(f *flow) {
	saved := *f.Flow
	saved.Publishing = false
	if r := s.mayGoLive(f); r != nil {
		// What it needs was deleted or used up meanwhile.
		saved.PublishError = r.Message
		s.dropConditions(f)
		s.save(f, &saved)
		return
	}
	saved.Status, saved.PublishedMs = Live, s.run.nowMs
	switch t := &f.def.Trigger; t.Type {
	case flows.TriggerSegmentEntered:
		f.pending.Assign(s.port.Engine().Members(t.SegmentID, s.run.nowMs))
	case flows.TriggerDate:
		saved.Scanning = true
	}
	s.save(f, &saved)
}

func (s *State) dropConditions(f *flow) {
	for _, i := range f.def.Conditions() {
		s.port.Engine().Undefine(conditionID(f.Flow, i))
	}
}

// mayGoLive says all that keeps a flow from being live.
func (s *State) mayGoLive(f *flow) *refuse.Refusal {
	if faults := f.def.Validate(s.port.World()); len(faults) > 0 {
		return refuse.Invalid("definition", "the flow is not complete: %s", faults)
	}
	if f.def.SendsEmail() && s.port.Credits() < 1 {
		return refuse.Conflicts("", "the account is out of e-mail credits; top up and try again")
	}
	return nil
}
