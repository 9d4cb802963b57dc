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
func (f *Fleet) Pace(ctx context.Context, eventsPerSecond float64, duration time.Duration) (*Result, error) {
	perCall := float64(f.spec.EventsPerRequest())
	// between is the distance of two requests of the whole fleet.
	between := perCall / eventsPerSecond * float64(time.Second)
	if !(between >= 1) || between > math.MaxInt32*1000 {
		return nil, fmt.Errorf("rate of %v events/s is out of range", eventsPerSecond)
	}
	start := time.Now().Add(time.Millisecond)
	end := start.Add(duration)
	step := between * float64(len(f.members))
	total := f.run(ctx, start, end.Add(2*grace), func(m *member, t *tally) {
		for i := 0; ctx.Err() == nil; i++ {
			due := start.Add(time.Duration(between*float64(m.number) + step*float64(i)))
			// What is overdue at the end is still sent, so that a stall at the
			// end shows; the limit holds against a server that never recovers.
			if due.After(end) || time.Since(end) > grace {
				return
			}
			if wait := time.Until(due); wait > 0 {
				sleepUntil(ctx, due)
				record(t.Late, time.Since(due))
			}
			if !t.note(ctx, m, due, m.call()) {
				return
			}
		}
	})
	return total, total.fault(ctx)
}
