package handler

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Semaphore bounds how many of something run at once, and how many wait for it.
type Semaphore struct {
	free    chan struct{}
	waiting atomic.Int64
	queue   int64
	// turnedAway counts those who found the queue full.
	turnedAway atomic.Uint64
	what       string
}

// NewSemaphore returns a semaphore of n slots, for which up to queue callers wait. what
// says in the answer to others that it is full.
func NewSemaphore(n, queue int, what string) *Semaphore {
	s := &Semaphore{free: make(chan struct{}, n), queue: int64(queue), what: what}
	for range n {
		s.free <- struct{}{}
	}
	return s
}

// Acquire waits for a slot; release must follow. The error is a [*Problem], or
// ctx's.
func (s *Semaphore) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case <-s.free:
		return s.release, nil
	default:
	}
	if s.waiting.Add(1) > s.queue {
		s.waiting.Add(-1)
		s.turnedAway.Add(1)
		return nil, Busy(s.what)
	}
	defer s.waiting.Add(-1)
	select {
	case <-s.free:
		return s.release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Semaphore) release() { s.free <- struct{}{} }

// Running is how many slots are taken.
func (s *Semaphore) Running() int { return cap(s.free) - len(s.free) }

// Queued is how many wait for a slot.
func (s *Semaphore) Queued() int64 { return s.waiting.Load() }

// Register adds the numbers of the semaphore to set. kind says what runs.
func (s *Semaphore) Register(set *metrics.Set, kind string) {
	set.GetOrCreateGauge(fmt.Sprintf(`muster_console_computations_running{kind=%q}`, kind), func() float64 { return float64(s.Running()) })
	set.GetOrCreateGauge(fmt.Sprintf(`muster_console_computations_waiting{kind=%q}`, kind), func() float64 { return float64(s.Queued()) })
	set.GetOrCreateGauge(fmt.Sprintf(`muster_console_computations_turned_away_total{kind=%q}`, kind), func() float64 { return float64(s.turnedAway.Load()) })
}

// AcquireFor waits for a slot. done must follow; the context ends with
// ctx, and after the time given.
func (s *Semaphore) AcquireFor(ctx context.Context, timeout time.Duration) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	release, err := s.Acquire(ctx)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, func() {
		release()
		cancel()
	}, nil
}
