// Package deadline has a bound on waiting that many callers share.
package deadline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slices is into how many parts the time of a Shared is divided: as many contexts live at
// once, and a context ends late by one part at most.
const slices = 64

// Shared gives contexts that end a fixed time after they were asked for, or up to a 64th of
// it later. All callers of that 64th share one: a context of its own, with its timer, costs
// a call more than a microsecond. It is safe for concurrent use.
type Shared struct {
	after   time.Duration
	current atomic.Pointer[context.Context]
	mu      sync.Mutex // held where a context is made
}

// NewShared returns contexts that end after a time, which is positive.
func NewShared(after time.Duration) *Shared { return &Shared{after: after} }

// Context returns a context whose error, at its end, is [context.DeadlineExceeded].
func (s *Shared) Context() context.Context {
	if ctx := s.current.Load(); ctx != nil {
		return *ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx := s.current.Load(); ctx != nil {
		return *ctx
	}
	slice := s.after / slices
	ctx, cancel := context.WithTimeout(context.Background(), s.after+slice)
	context.AfterFunc(ctx, cancel) // there is nothing to free before its end
	s.current.Store(&ctx)
	time.AfterFunc(slice, func() { s.current.CompareAndSwap(&ctx, nil) })
	return ctx
}
