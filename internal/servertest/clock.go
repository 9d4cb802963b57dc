package servertest

import (
	"sync"
	"time"
)

// Clock is a wall clock that tests move.
type Clock struct {
	mu struct {
		sync.Mutex // guards what follows
		now        time.Time
	}
}

// NewClock returns a clock that stands at now.
func NewClock(now time.Time) *Clock {
	c := &Clock{}
	c.mu.now = now
	return c
}

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.now
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.now = c.mu.now.Add(d)
}
