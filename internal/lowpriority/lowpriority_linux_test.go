package lowpriority

import (
	"runtime"
	"syscall"
	"testing"
)

// priority is that of the calling thread; the system call returns 20 less nice.
func priority(t *testing.T) int {
	t.Helper()
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	return 20 - n
}

// TestLowPriority: the work is done at the low priority, and no thread that other goroutines run
// on keeps it.
func TestLowPriority(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := priority(t)
	for range 50 {
		within := 0
		Do(func() { within = priority(t) })
		if within != nice {
			t.Fatalf("priority %d within, expected %d", within, nice)
		}
	}
	if after := priority(t); after != before {
		t.Errorf("the caller's thread has priority %d, it had %d", after, before)
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
