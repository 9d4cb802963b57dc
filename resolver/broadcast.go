package resolver

import "sync"

// broadcast wakes all that wait for a change. A waiter takes the channel before
// it looks at the condition. Signalling costs little while nobody waits.
type broadcast struct {
	mu    sync.Mutex
	ch    chan struct{}
	taken bool
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = true
	return b.ch
}

func (b *broadcast) signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken {
		close(b.ch)
		b.ch, b.taken = make(chan struct{}), false
	}
}
