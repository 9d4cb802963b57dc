package api

import (
	"context"
	"sync/atomic"
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
