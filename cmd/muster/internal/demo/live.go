package demo

import (
	"context"
	"time"
)

// next is when the event at a place in the future is to be sent, from now on: when it is
// due, and after a pause that is not too long.
func next(events []event, i int, now, last, began time.Time) time.Duration {
	quiet := longestQuiet
	if now.Sub(began) < firstMinutes {
		quiet = firstQuiet
	}
	return max(0, min(events[i].at.Sub(now), last.Add(quiet).Sub(now)))
}

// Live sends what happens next, until ctx ends. Its script repeats after some days.
func (s *Shop) Live(ctx context.Context) {
	began := s.client.Now()
	last := began
	for i := 0; len(s.future) > 0; i = (i + 1) % len(s.future) {
		if !sleep(ctx, next(s.future, i, s.client.Now(), last, began)) {
			return
		}
		last = s.client.Now()
		if err := s.client.event(ctx, &s.future[i]); err != nil && ctx.Err() == nil {
			s.client.Logger.Warn("an event of the demo shop was not taken", "err", err)
		}
	}
}
