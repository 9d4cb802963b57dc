// Package deadline has a limit on waiting that many callers share.
package deadline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slices is into how many parts the time of a Shared is divided: as many contexts live at
// once, and a caller gets a part less than the time at most.
const slices = 64

// Shared gives contexts that end a fixed time after they were asked for, or up to a 64th of
// it sooner. All callers of that 64th share one: a context of its own, with its timer, costs
// a call most of a microsecond. It is safe for concurrent use.
type Shared struct {
	after   time.Duration
	current atomic.Pointer[shared]
	mu      sync.Mutex // held where a context is made
}

// shared is a context and until when it is handed out.
type shared struct {
	ctx   context.Context
	until time.Time
}

// NewShared returns contexts that end after a time.
func NewShared(after time.Duration) *Shared { return &Shared{after: after} }

// Context returns a context whose error, at its end, is [context.DeadlineExceeded].
func (s *Shared) Context() context.Context {
	if ctx := s.present(); ctx != nil {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx := s.present(); ctx != nil {
		return ctx
	}
	until := time.Now().Add(s.after / slices)
	ctx, cancel := context.WithTimeout(context.Background(), s.after)
	context.AfterFunc(ctx, cancel) // there is nothing to free before its end
	s.current.Store(&shared{ctx, until})
	return ctx
}

// present is the context that is still handed out. The clock is asked, and no timer relied on:
// a process that stood still has timers that are late.
func (s *Shared) present() context.Context {
	if c := s.current.Load(); c != nil && time.Now().Before(c.until) {
		return c.ctx
	}
	return nil
}
