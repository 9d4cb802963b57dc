package api

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// semaphore bounds how many of something run at once, and how many wait for it.
type semaphore struct {
	free    chan struct{}
	waiting atomic.Int64
	queue   int64
	// turnedAway counts those who found the queue full.
	turnedAway atomic.Uint64
	what       string
}

func newSemaphore(n, queue int, what string) *semaphore {
	s := &semaphore{free: make(chan struct{}, n), queue: int64(queue), what: what}
	for range n {
		s.free <- struct{}{}
	}
	return s
}

// acquire waits for a slot; release must follow. The error is a [*problem], or
// ctx's.
func (s *semaphore) acquire(ctx context.Context) (release func(), err error) {
	select {
	case <-s.free:
		return s.release, nil
	default:
	}
	if s.waiting.Add(1) > s.queue {
		s.waiting.Add(-1)
		s.turnedAway.Add(1)
		return nil, busy(s.what)
	}
	defer s.waiting.Add(-1)
	select {
	case <-s.free:
		return s.release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *semaphore) release() { s.free <- struct{}{} }

func (s *semaphore) running() int { return cap(s.free) - len(s.free) }

// inQueue is how many wait for a slot.
func (s *semaphore) inQueue() int64 { return s.waiting.Load() }

// register adds the numbers of the semaphore to set. kind says what runs.
func (s *semaphore) register(set *metrics.Set, kind string) {
	set.GetOrCreateGauge(fmt.Sprintf(`muster_console_slots_running{kind=%q}`, kind), func() float64 { return float64(s.running()) })
	set.GetOrCreateGauge(fmt.Sprintf(`muster_console_slots_waiting{kind=%q}`, kind), func() float64 { return float64(s.inQueue()) })
	set.GetOrCreateGauge(fmt.Sprintf(`muster_console_slots_turned_away_total{kind=%q}`, kind), func() float64 { return float64(s.turnedAway.Load()) })
}

// acquireFor waits for a slot. done must follow; the context ends with
// ctx, and after the time given.
func (s *semaphore) acquireFor(ctx context.Context, timeout time.Duration) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	release, err := s.acquire(ctx)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, func() {
		release()
		cancel()
	}, nil
}
