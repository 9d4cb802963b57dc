package deadline_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/deadline"
)

// TestSharedEndsInTime asks for contexts at all times of several slices: each must end after
// the time given, or a slice sooner at most, however long nobody asked before. No timer has
// fired when the next one is asked for, as in a process that stood still.
func TestSharedEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after, slice = 64 * time.Second, time.Second
		s := deadline.NewShared(after)
		seen := map[context.Context]bool{}
		for i := range 300 {
			asked := time.Now()
			ctx := s.Context()
			seen[ctx] = true
			end, ok := ctx.Deadline()
			if soon := after - end.Sub(asked); !ok || soon < 0 || soon >= slice {
				t.Fatalf("call %d: the context ends %v too soon, less than %v is allowed", i, soon, slice)
			}
			if ctx.Err() != nil {
				t.Fatalf("call %d: a context that has ended: %v", i, ctx.Err())
			}
			pause := 100 * time.Millisecond
			if i == 200 {
				pause = 10 * after // longer than a context lives
			}
			time.Sleep(pause)
		}
		if len(seen) < 28 || len(seen) > 32 {
			t.Errorf("%d contexts for 300 calls in 30 slices", len(seen))
		}
		for ctx := range seen {
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("the context ended with %v", ctx.Err())
			}
		}
	})
}

// TestSharedByMany asks from many goroutines at once: all get the same context.
func TestSharedByMany(t *testing.T) {
	s := deadline.NewShared(time.Hour)
	var got [32]context.Context
	var wait sync.WaitGroup
	for i := range got {
		wait.Go(func() { got[i] = s.Context() })
	}
	wait.Wait()
	for _, ctx := range got {
		if ctx != got[0] {
			t.Fatal("two contexts for calls of one moment")
		}
	}
}
