package resolver

import (
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
)

// mergeFlows makes the enrolments of a profile in flows those of the profile that
// it became part of. Of two in progress in one flow the further one goes on. A
// merge begins none; who is pending stays so, unless either was in the flow and it
// takes nobody again.
func (m *Machine) mergeFlows(a *account, winner, loser uint32) {
	for _, f := range a.flows.all {
		again := f.def.Reentry == flows.AfterExit || !f.entered.Contains(winner) && !f.entered.Contains(loser)
		if f.pending.Remove(loser) && again {
			f.pending.Add(winner)
		}
		if f.known.Contains(loser) {
			m.mergeEnrolments(a, f, winner, loser)
		}
	}
}

func (m *Machine) mergeEnrolments(a *account, f *flowState, winner, loser uint32) {
	var lost flows.Record
	m.loadRecord(a, f, loser, &lost)
	m.loadEnrolments(a, f, winner)
	won := &m.enrolments
	// Timers go, and come back for what is left. The winner's date is worked out
	// when its fields are told.
	for _, x := range []struct {
		o uint32
		r *flows.Record
	}{{loser, &lost}, {winner, won}} {
		if e := x.r.Current(); e != nil && e.Timed() {
			f.timers.Remove(dueset.Item{Due: e.DueMs, Ordinal: x.o})
		}
	}
	if lost.DateMs != 0 {
		f.dates.Remove(dueset.Item{Due: lost.DateMs, Ordinal: loser})
	}
	m.dropEnrolments(a, f, loser)
	f.entered.Remove(loser)
	f.active.Remove(loser)
	m.host = flowHost{m: m, c: &m.rec, f: f, o: winner}
	stop := func(e *flows.Enrolment) {
		e.Stop(flows.ByMerge, m.logTime, &m.host)
		a.flows.count(f).Exited++
	}
	switch l, w := lost.Current(), won.Current(); {
	case l != nil && w != nil && l.Further(w):
		stop(w)
	case l != nil && w != nil:
		stop(l)
	case f.def.Reentry == flows.AfterExit:
	case l != nil && len(won.Ways) > 0:
		stop(l) // the winner has gone all the way already
	case w != nil && len(lost.Ways) > 0:
		stop(w)
	}
	ways := append(slices.Clone(won.Ways), lost.Ways...)
	slices.SortStableFunc(ways, func(x, y flows.Enrolment) int {
		// The one in progress is the last, the others stand in their order.
		if (x.Status == flows.InProgress) != (y.Status == flows.InProgress) {
			return int(y.Status) - int(x.Status)
		}
		return int(min(max(x.StartedMs-y.StartedMs, -1), 1))
	})
	if n := len(ways) - flows.KeptEnded - 1; n > 0 {
		ways = ways[n:]
	}
	for i := range ways {
		ways[i].Number = uint32(i + 1)
	}
	won.Ways = ways
	if len(ways) > 0 {
		f.entered.Add(winner)
	}
	f.active.Remove(winner)
	if e := won.Current(); e != nil {
		f.active.Add(winner)
		m.enterTimer(a, f, winner, e)
	}
	m.saveEnrolments(a, f, winner)
	m.host = flowHost{}
}

// eraseFlows forgets a profile's enrolments in flows. It returns the keys under
// which they were stored.
func (m *Machine) eraseFlows(a *account, o uint32) (keys []string) {
	for _, f := range a.flows.all {
		if !f.known.Contains(o) {
			continue
		}
		m.loadEnrolments(a, f, o)
		if e := m.enrolments.Current(); e != nil {
			if e.Timed() {
				f.timers.Remove(dueset.Item{Due: e.DueMs, Ordinal: o})
			}
			// It ends here, so that the numbers add up.
			a.flows.count(f).left(e.Step, flows.Stopped)
			a.flows.count(f).Exited++
		}
		if m.enrolments.DateMs != 0 {
			f.dates.Remove(dueset.Item{Due: m.enrolments.DateMs, Ordinal: o})
		}
		m.dropEnrolments(a, f, o)
		keys = append(keys, enrolmentKey(a.number, f.Number, o))
		f.entered.Remove(o)
		f.active.Remove(o)
	}
	return keys
}
