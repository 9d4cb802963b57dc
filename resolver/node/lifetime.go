package node

import (
	"context"
	"sync"
	"sync/atomic"
)

// lifetime has a partition's goroutines and how it ends. A release first ends owned,
// what the node does by itself as the owner, and keeps run alive for waiting requests; the end of
// run ends everything.
type lifetime struct {
	run, owned      context.Context // nil before begin
	stop, stopOwned context.CancelFunc
	done            sync.WaitGroup // the partition's goroutines
	released        atomic.Bool    // this node gave the partition up; set before left is closed
	discarded       atomic.Bool    // the end leaves nothing behind
	left            chan struct{}  // closed when the partition begins to end
	leaves          sync.Once
	closes          sync.Once
	closeErr        error
}

// begin lets goroutines run.
func (l *lifetime) begin() {
	l.run, l.stop = context.WithCancel(context.Background())
	l.owned, l.stopOwned = context.WithCancel(l.run)
}

// begun reports whether there is anything to end.
func (l *lifetime) begun() bool { return l.run != nil }

// follow starts a goroutine that follows the log until everything ends.
func (l *lifetime) follow(loop func(context.Context)) { l.done.Go(func() { loop(l.run) }) }

// whileOwned starts a goroutine that works for the partition until this is given up.
func (l *lifetime) whileOwned(loop func(context.Context)) { l.done.Go(func() { loop(l.owned) }) }

// release stops what the partition does by itself.
func (l *lifetime) release() {
	l.released.Store(true)
	l.stopOwned()
}

// leave signals the watchers of the partition's end that it has begun.
func (l *lifetime) leave() { l.leaves.Do(func() { close(l.left) }) }

// end ends all goroutines and waits for them.
func (l *lifetime) end() {
	l.stop()
	l.leave()
	l.done.Wait()
}
