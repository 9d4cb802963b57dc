package node

import (
	"context"
	"testing"
)

// TestReleaseStopsActingFirst: what a partition does by itself stops at its release, what
// follows the log continues until the end, which waits for both.
func TestReleaseStopsActingFirst(t *testing.T) {
	t.Parallel()
	l := lifetime{left: make(chan struct{})}
	if l.begun() {
		t.Fatal("there is something to end")
	}
	l.begin()
	acted, followed := make(chan struct{}), make(chan struct{})
	l.whileOwned(func(ctx context.Context) { <-ctx.Done(); close(acted) })
	l.follow(func(ctx context.Context) { <-ctx.Done(); close(followed) })
	l.release()
	<-acted
	if closed(l.run.Done()) || closed(followed) || closed(l.left) {
		t.Error("a release ended more than what needs the lease")
	}
	l.leave()
	l.end()
	if !closed(followed) || !closed(l.left) || !l.released.Load() {
		t.Error("the end came before all goroutines had ended")
	}
}
