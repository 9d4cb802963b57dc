package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
)

// TestEmailsWaitForTheRecordBefore: what is asked while a record is under way goes
// into the next one, as much as one takes; a full queue refuses, and closing answers
// the waiting requests.
func TestEmailsWaitForTheRecordBefore(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sizes []int
	hold := make(chan struct{})
	b := newEmailBatches(3, func(ctx context.Context, items []int) ([]string, error) {
		mu.Lock()
		sizes = append(sizes, len(items))
		mu.Unlock()
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		out := make([]string, len(items))
		for i, x := range items {
			out[i] = fmt.Sprint(x)
		}
		return out, nil
	})
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { b.run(ctx) })
	first := b.post(0)
	eventually.Holds(t, "the first is under way", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(sizes) == 1
	})
	var items []*emailItem[int, string]
	for i := range 7 {
		items = append(items, b.post(i+1))
	}
	close(hold)
	<-first.done
	for i, x := range items {
		if <-x.done; x.err != nil || x.answer != fmt.Sprint(i+1) {
			t.Errorf("item %d: %q %v", i+1, x.answer, x.err)
		}
	}
	if fmt.Sprint(sizes) != "[1 3 3 1]" {
		t.Errorf("records of %v items, expected [1 3 3 1]", sizes)
	}
	stop()
	done.Wait()
	if _, err := b.do(context.Background(), 12); !errors.Is(err, resolver.ErrOverloaded) {
		t.Errorf("a queue that has ended: %v", err)
	}
}

// TestQ1EmailsThatWaitAreBounded: a full queue refuses, and closing answers the
// waiting requests.
func TestQ1EmailsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	b := newEmailBatches(1, func(context.Context, []int) ([]int, error) { return []int{1}, nil })
	var items []*emailItem[int, int]
	for i := range maxEmailQueue {
		items = append(items, b.post(i))
	}
	if _, err := b.do(context.Background(), 1); !errors.Is(err, resolver.ErrOverloaded) {
		t.Errorf("a full queue: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	b.run(ctx)
	for _, x := range items {
		if <-x.done; !errors.Is(x.err, resolver.ErrUnavailable) {
			t.Fatalf("the end answered %v", x.err)
		}
	}
}
