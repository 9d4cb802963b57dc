package loader

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sweep sends every known profile of every company once, so that they are known.
func (f *Fleet) Sweep(ctx context.Context) (*Result, error) {
	start := time.Now()
	end := start.Add(sweepLimit)
	companies := map[int][]*member{}
	for _, m := range f.members {
		companies[m.company] = append(companies[m.company], m)
	}
	for _, of := range companies {
		for i, m := range of {
			m.sweep(f.spec.Profiles*i/len(of), f.spec.Profiles*(i+1)/len(of))
		}
	}
	total := f.run(ctx, start, end.Add(grace), func(m *member, t *tally) {
		for m.worker.SweepRequests() > 0 && time.Now().Before(end) && ctx.Err() == nil {
			sent := time.Now()
			if !t.note(ctx, m, sent, m.call()) {
				return
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return total, err
	}
	if total.Failed > 0 {
		return total, fmt.Errorf("%d requests failed while the known profiles were sent: %w", total.Failed, total.FirstFailure)
	}
	return total, nil
}

// Saturate sends for the duration as fast as answers come.
func (f *Fleet) Saturate(ctx context.Context, duration time.Duration) (*Result, error) {
	start := time.Now()
	end := start.Add(duration)
	total := f.run(ctx, start, end.Add(grace), func(m *member, t *tally) {
		for sent := time.Now(); sent.Before(end) && ctx.Err() == nil; sent = t.last {
			if !t.note(ctx, m, sent, m.call()) {
				return
			}
		}
	})
	return total, total.fault(ctx)
}

// fault is an error when the phase got nothing through or was cancelled.
func (r *Result) fault(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.Requests == 0 && r.Failed == 0 {
		return errors.New("the phase was over before a request was answered")
	}
	if r.Requests == 0 {
		return fmt.Errorf("none of %d requests was acknowledged: %w", r.Failed, r.FirstFailure)
	}
	return nil
}
