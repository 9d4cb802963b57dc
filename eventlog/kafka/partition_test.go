package kafka

import (
	"context"
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
)

// TestBatchWaitsForThoseBeforeQ1: a batch waits for as many records as the last
// two had, for linger at most, and not at all where records come one by one or
// when the log is closed.
func TestBatchWaitsForThoseBeforeQ1(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fill := func(last [2]int, records int) *partition {
		l := &Log{opts: Options{}.withDefaults(), batchBytes: 1 << 20, ctx: ctx}
		p := l.newPartition(0) // no goroutine takes from it
		p.mu.last = last
		for range records {
			if _, err := p.enqueue([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	may := func(p *partition) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.mayTake()
	}
	for _, c := range []struct {
		last    [2]int
		records int
		wait    bool
	}{
		{[2]int{0, 0}, 1, false},
		{[2]int{1, 1}, 1, false},
		{[2]int{1, 1000}, 1, true},
		{[2]int{1000, 1}, 1, true},
		{[2]int{1000, 1}, 999, true},
		{[2]int{1000, 1}, 1000, false},
	} {
		p := fill(c.last, c.records)
		p.mu.Lock()
		due := p.mu.queue[0].due
		waits := !p.mayTake()
		p.mu.Unlock()
		// The time may be over before we look.
		if late := due && c.wait; waits != c.wait && !late {
			t.Errorf("%v, %d records: it waits: %v", c.last, c.records, waits)
		}
		eventually.Holds(t, fmt.Sprintf("%v, %d records: it no longer waits", c.last, c.records), func() bool { return may(p) })
	}
	p := fill([2]int{1000, 1000}, 1)
	p.close()
	if !may(p) {
		t.Error("it waits although the log is closed")
	}
}

// TestThoseWhoComeAgainShareARequest: appenders that each wait for their record
// before the next find themselves in the same requests.
func TestThoseWhoComeAgainShareARequest(t *testing.T) {
	l := mustOpen(t, shared(t))
	const appenders, each = 16, 40
	done := make(chan error, appenders)
	for range appenders {
		go func() {
			for range each {
				if _, err := l.Append(context.Background(), 0, []byte("again")); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range appenders {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	s := l.Stats()
	t.Logf("%d records in %d requests", s.Appended, s.Produces)
	if s.Appended != appenders*each || s.Produces*3 > s.Appended {
		t.Errorf("%d records went out in %d requests", s.Appended, s.Produces)
	}
}
