// Package wake wakes goroutines after a change.
package wake

import "sync"

// Broadcast wakes all that wait for a change. A waiter takes the channel before
// it looks at the condition. Signalling costs little while there are no waiters.
type Broadcast struct {
	mu    sync.Mutex
	ch    chan struct{}
	taken bool
}

// NewBroadcast makes one without waiters.
func NewBroadcast() *Broadcast { return &Broadcast{ch: make(chan struct{})} }

// Wait is closed at the next Signal.
func (b *Broadcast) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = true
	return b.ch
}

// Signal wakes all that have waited.
func (b *Broadcast) Signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken {
		close(b.ch)
		b.ch, b.taken = make(chan struct{}), false
	}
}
