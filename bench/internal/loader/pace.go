package loader

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Pace sends events at a fixed rate per second for the duration. Connections
// take turns at even distances. A connection whose answer is late sends at
// once what was due meanwhile; latency counts from when it was due.
//
// Connections wait with the runtime's timers, which fire up to a millisecond
// late on an idle machine. Sleeping in the kernel instead was sharper by
// 0.3 ms at the median, but took more CPU time from the server beside it and
// made the slowest percent slower. How late the timers were is in
// [Result.Late].
func (f *Fleet) Pace(ctx context.Context, eventsPerSecond float64, duration time.Duration) (*Result, error) {
	perCall := float64(f.spec.EventsPerRequest())
	// between is the distance of two requests of the whole fleet.
	between := perCall / eventsPerSecond * float64(time.Second)
	if !(between >= 1) || between > math.MaxInt32*1000 {
		return nil, fmt.Errorf("rate of %v events/s is out of range", eventsPerSecond)
	}
	start := time.Now().Add(time.Millisecond)
	end := start.Add(duration)
	total := f.run(ctx, start, end.Add(2*grace), func(m *member, t *tally) {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for i := m.number; ; i += len(f.members) {
			due := start.Add(time.Duration(between * float64(i)))
			// What is overdue at the end is still sent, so that a stall at the
			// end shows; the limit holds against a server that never recovers.
			if due.After(end) || time.Since(end) > grace {
				return
			}
			if wait := time.Until(due); wait > 0 {
				timer.Reset(wait)
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
				Record(t.Late, time.Since(due))
			}
			if ctx.Err() != nil || !t.note(ctx, m, due, m.call()) {
				return
			}
		}
	})
	return total, total.fault(ctx)
}
