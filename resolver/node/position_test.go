package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver"
)

// TestReach: waiting for an offset ends when it is applied, or with the error of the partition
// that cannot apply it.
func TestReach(t *testing.T) {
	t.Parallel()
	at, failed := newPosition(), newFatal()
	done := make(chan error)
	go func() { done <- at.reach(t.Context(), 2, failed) }()
	at.advance(1)
	select {
	case err := <-done:
		t.Fatalf("reached too early: %v", err)
	case <-time.After(time.Millisecond): // nothing may happen in a while
	}
	at.advance(2)
	if err := <-done; err != nil {
		t.Errorf("record 1 is applied: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := at.reach(gone, 3, failed); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was given up has the error %v", err)
	}
	close(at.ended)
	if err := at.reach(t.Context(), 3, failed); !errors.Is(err, errEnded) {
		t.Errorf("nothing is applied any more: %v", err)
	}
	if err := at.reach(t.Context(), 2, failed); err != nil {
		t.Errorf("what was applied before the end: %v", err)
	}
	why := errors.New("no disk")
	if !failed.set(why) || failed.set(errors.New("second")) {
		t.Error("the first failure counts, and only that")
	}
	if err := at.reach(t.Context(), 3, failed); !errors.Is(err, resolver.ErrUnavailable) || !errors.Is(err, why) {
		t.Errorf("after a failure: %v", err)
	}
}

// TestStateIsRecent: a state is as old as the newest barrier, and a clock that was put back says
// nothing of it.
func TestStateIsRecent(t *testing.T) {
	t.Parallel()
	at := newPosition()
	at.noteBarrier(10_000)
	for now, want := range map[int64]bool{9_999: false, 10_000: true, 10_999: true, 11_000: false} {
		if got := at.isRecent(now, time.Second); got != want {
			t.Errorf("at %d ms: %v", now, got)
		}
	}
}
