package automation

import (
	"github.com/musterhq/muster/resolver/internal/peek"
	"github.com/musterhq/muster/resolver/internal/state"
)

// What tests of the machine may see of flows: see package peek.
func init() {
	peek.Flows = func(flows any) []peek.Flow { return flows.(*State).peek() }
	peek.Deferred = func(flows any, fn func(ordinal uint32, flows []uint32)) (next uint64, err error) {
		return flows.(*State).peekQueue(fn)
	}
	peek.StepsLeft = func(runner any) int { return runner.(*Runner).stepsLeft }
}

func (s *State) peek() []peek.Flow {
	out := make([]peek.Flow, len(s.byNumber))
	for i, f := range s.byNumber {
		out[i] = peek.Flow{State: f.state(), Known: f.known, Ever: f.entered, Active: f.active, Queued: f.pending.Bits, Timers: &f.timers, Dates: &f.dates}
	}
	return out
}

func (s *State) peekQueue(fn func(ordinal uint32, flows []uint32)) (next uint64, err error) {
	for seq := s.queue.first; seq < s.queue.next; seq++ {
		var e deferredEnrolment
		b, err := s.run.store.Entity(state.WaitingKey(s.account, seq))
		if err == nil {
			err = e.decode(b)
		}
		if err != nil {
			return 0, err
		}
		fn(e.o, e.flows)
	}
	return s.queue.next, nil
}
