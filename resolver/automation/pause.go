package automation

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

func (s *State) pauseFlow(tx *feature.Tx, c ID) *refuse.Refusal {
	f := s.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == Draft:
		return refuse.Conflicts("id", "the flow is a draft; only a flow that was published can be paused")
	case f.Status == Live:
		s.pause(f, "")
	}
	tx.Reply = replyOf(f)
	return nil
}

func (s *State) pause(f *flow, why string) {
	saved := *f.Flow
	saved.Pauses = f.pausesKept()
	saved.Status, saved.PausedMs, saved.PausedFor = Paused, s.run.nowMs, why
	s.save(f, &saved)
}

func (s *State) resumeFlow(tx *feature.Tx, c ID) *refuse.Refusal {
	f := s.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == Draft:
		return refuse.Conflicts("id", "the flow is a draft; publish it first")
	case f.Status == Paused:
		if r := s.mayGoLive(f); r != nil {
			return r
		}
		s.resume(f)
	}
	tx.Reply = replyOf(f)
	return nil
}

func (s *State) resume(f *flow) {
	s.keepPending(f)
	saved := *f.Flow
	saved.Status, saved.ResumedMs, saved.PausedFor = Live, s.run.nowMs, ""
	s.save(f, &saved)
}

// keepPending drops pending profiles that, since a merge, are not where they would
// enrol: a merge emits no exit of the winner.
func (s *State) keepPending(f *flow) {
	if f.pending.Bits.IsEmpty() {
		return
	}
	switch t := &f.def.Trigger; t.Type {
	case flows.TriggerSegmentEntered:
		f.pending.Assign(roaring.And(f.pending.Bits, s.port.Engine().Members(t.SegmentID, s.run.nowMs)))
	case flows.TriggerSegmentExited:
		f.pending.Assign(roaring.AndNot(f.pending.Bits, s.port.Engine().Members(t.SegmentID, s.run.nowMs)))
	}
}

func (s *State) toggleFlow(tx *feature.Tx, c ID) *refuse.Refusal {
	if f := s.flow(c.ID); f != nil && f.Status == Live {
		return s.pauseFlow(tx, c)
	}
	return s.resumeFlow(tx, c)
}

// PauseForCredits pauses the live flows that send e-mail: there are no credits.
func (s *State) PauseForCredits() {
	for _, f := range s.live {
		if f.def.SendsEmail() {
			s.pause(f, PausedForCredits)
		}
	}
}

// ResumeForCredits takes those flows live again that were paused for want of
// credits and lack nothing else.
func (s *State) ResumeForCredits() {
	for _, f := range s.all {
		if f.Status == Paused && f.PausedFor == PausedForCredits && s.mayGoLive(f) == nil {
			s.resume(f)
		}
	}
}
