package feed

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/query"
)

// noting is a history that takes a batch when it is let, and notes by how much the thread's
// priority is lowered.
type noting struct {
	slow
	nice chan int
}

func (h *noting) Append(ctx context.Context, b *query.Batch) error {
	raised, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid())
	if err != nil {
		return err
	}
	h.nice <- 20 - raised // the system call returns 20 less nice
	return h.slow.Append(ctx, b)
}

// TestStoringGivesWay: rows are stored at a low priority, unless more than one batch waits or a
// reader does.
func TestStoringGivesWay(t *testing.T) {
	h := &noting{slow: slow{began: make(chan struct{}, 10), let: make(chan struct{})}, nice: make(chan int, 10)}
	f := started(t, h, Options{Rows: 10, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second})
	defer f.Close()
	var next int64
	add := adder(t, f, &next)
	add(10)
	<-h.began
	add(10)
	add(10) // two wait behind the one that is being stored
	close(h.let)
	usual, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	usual = 20 - usual
	for i, low := range []bool{true, false, true} {
		if nice := <-h.nice; nice > usual != low {
			t.Errorf("batch %d was stored at nice %d", i, nice)
		}
	}
	add(3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.WaitStored(ctx, next); err != nil {
		t.Fatal(err)
	}
	if nice := <-h.nice; nice != usual {
		t.Errorf("the batch that a reader waits for was stored at nice %d", nice)
	}
}
