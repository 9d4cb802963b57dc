package lowpriority

import (
	"runtime"
	"sync"
	"syscall"
	"testing"
)

func priority(t *testing.T) int {
	t.Helper()
	n, err := niceness()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLowPriority: the work is done at the low priority, and no thread that other goroutines run
// on keeps it.
func TestLowPriority(t *testing.T) {
	before := priority(t)
	// As many at once as take all threads that are idle, the main thread among them.
	const many = 50
	var all sync.WaitGroup
	within, let := make(chan int), make(chan struct{})
	for range many {
		all.Go(func() {
			Do(func() {
				within <- priority(t)
				<-let
			})
		})
	}
	for range many {
		if got, want := <-within, min(before+10, 19); got != want {
			t.Errorf("priority %d within, expected %d", got, want)
		}
	}
	close(let)
	all.Wait()
	if main, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Getpid()); err != nil || 20-main != before {
		t.Errorf("the main thread has priority %d, it had %d (%v)", 20-main, before, err)
	}
	found := make(chan int)
	for range 200 {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			found <- priority(t)
		}()
	}
	for range 200 {
		if p := <-found; p != before {
			t.Fatalf("a goroutine runs at priority %d, expected %d", p, before)
		}
	}
}
