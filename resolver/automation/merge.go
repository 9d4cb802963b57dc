package automation

import (
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Merge moves the enrolments of a merged profile to the winner. Of two in progress
// in one flow the further one continues. A merge begins none; a pending profile stays
// pending, unless either was in the flow and it has no re-entry.
func (s *State) Merge(_ *feature.Tx, winner, merged uint32) {
	for _, f := range s.all {
		again := f.def.Reentry == flows.AfterExit || !f.entered.Contains(winner) && !f.entered.Contains(merged)
		if f.pending.Remove(merged) && again {
			f.pending.Add(winner)
		}
		if f.known.Contains(merged) {
			s.mergeEnrolments(f, winner, merged)
		}
	}
}

func (s *State) mergeEnrolments(f *flow, winner, merged uint32) {
	var mergedRecord flows.Record
	s.loadRecord(f, merged, &mergedRecord)
	s.loadEnrolments(f, winner)
	winnerRecord := &s.run.enrolments
	// Timers go, and come back for what is left. The winner's date is worked out
	// when its fields come.
	for _, x := range []struct {
		o uint32
		r *flows.Record
	}{{merged, &mergedRecord}, {winner, winnerRecord}} {
		if e := x.r.Current(); e != nil && e.Timed() {
			f.timers.Remove(dueset.Item{Due: e.DueMs, Ordinal: x.o})
		}
	}
	if mergedRecord.DateMs != 0 {
		f.dates.Remove(dueset.Item{Due: mergedRecord.DateMs, Ordinal: merged})
	}
	s.dropEnrolments(f, merged)
	f.entered.Remove(merged)
	f.active.Remove(merged)
	s.run.running = host{s: s, f: f, o: winner}
	stop := func(e *flows.Enrolment) {
		e.Stop(flows.ByMerge, s.run.nowMs, &s.run.running)
		s.count(f).Exited++
	}
	switch m, w := mergedRecord.Current(), winnerRecord.Current(); {
	case m != nil && w != nil && m.Further(w):
		stop(w)
	case m != nil && w != nil:
		stop(m)
	case f.def.Reentry == flows.AfterExit:
	case m != nil && len(winnerRecord.Enrolments) > 0:
		stop(m) // the winner has ended already
	case w != nil && len(mergedRecord.Enrolments) > 0:
		stop(w)
	}
	enrolments := append(slices.Clone(winnerRecord.Enrolments), mergedRecord.Enrolments...)
	slices.SortStableFunc(enrolments, func(x, y flows.Enrolment) int {
		// The one in progress is the last, the others stand in their order.
		if (x.Status == flows.InProgress) != (y.Status == flows.InProgress) {
			return int(y.Status) - int(x.Status)
		}
		return int(min(max(x.StartedMs-y.StartedMs, -1), 1))
	})
	if n := len(enrolments) - flows.KeptEnded - 1; n > 0 {
		enrolments = enrolments[n:]
	}
	for i := range enrolments {
		enrolments[i].Number = uint32(i + 1)
	}
	winnerRecord.Enrolments = enrolments
	if len(enrolments) > 0 {
		f.entered.Add(winner)
	}
	f.active.Remove(winner)
	if e := winnerRecord.Current(); e != nil {
		f.active.Add(winner)
		s.enterTimer(f, winner, e)
	}
	s.saveEnrolments(f, winner)
	s.run.running = host{}
}

// Erase removes a profile's enrolments in flows. It returns the keys under
// which they were stored.
func (s *State) Erase(o uint32) (keys []string) {
	for _, f := range s.all {
		if !f.known.Contains(o) {
			continue
		}
		s.loadEnrolments(f, o)
		if e := s.run.enrolments.Current(); e != nil {
			if e.Timed() {
				f.timers.Remove(dueset.Item{Due: e.DueMs, Ordinal: o})
			}
			// It ends here, so that the numbers add up.
			s.count(f).left(e.Step, flows.Stopped)
			s.count(f).Exited++
		}
		if s.run.enrolments.DateMs != 0 {
			f.dates.Remove(dueset.Item{Due: s.run.enrolments.DateMs, Ordinal: o})
		}
		s.dropEnrolments(f, o)
		keys = append(keys, state.EnrolmentKey(s.account, f.Number, o))
		f.entered.Remove(o)
		f.active.Remove(o)
	}
	return keys
}
