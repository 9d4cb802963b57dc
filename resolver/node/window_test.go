package node

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
)

// TestWindow: records that became durable while none could be applied are applied in one
// go, each once and in order. One that cannot be applied stops the node, is named, and
// takes neither those before it nor their answers along.
func TestWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	p := n.partitions[0].Load()
	const good = 40
	var done sync.WaitGroup
	outs, errs := make([]resolver.Outcome, good), make([]error, good)
	send := func(i int, out *resolver.Outcome, err *error, body func(rec []byte) []byte) {
		_, end, _ := f.log.Bounds(t.Context(), 0)
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount}
		if e := n.stamp(&env); e != nil {
			t.Fatal(e)
		}
		done.Go(func() { *err = n.Submit(t.Context(), testAccount, body(env.Append(nil)), out) })
		eventually.Succeeds(t, func() error { // one after the other, so that places are known
			if _, now, _ := f.log.Bounds(t.Context(), 0); now == end {
				return fmt.Errorf("record %d is not stored", i)
			}
			return nil
		})
	}
	p.mu.RLock() // keeps Apply out, and not the log
	before := p.position.applied.Load()
	for i := range good {
		send(i, &outs[i], &errs[i], func(rec []byte) []byte {
			return eventlog.AppendEvent(eventlog.AppendEventCount(rec, 1), &eventlog.Event{Type: []byte("seen"), ExternalID: fmt.Appendf(nil, "p%d", i/2)})
		})
	}
	var badOut, lateOut resolver.Outcome
	var bad, late error
	send(good, &badOut, &bad, func(rec []byte) []byte { return append(rec, "no events"...) })
	send(good+1, &lateOut, &late, func(rec []byte) []byte {
		return eventlog.AppendEvent(eventlog.AppendEventCount(rec, 1), &eventlog.Event{Type: []byte("seen"), ExternalID: []byte("late")})
	})
	if n := p.requests.count.Load(); n != good+2 {
		t.Errorf("%d requests wait for their records, want %d", n, good+2)
	}
	p.mu.RUnlock()
	done.Wait()
	for i := range good {
		switch o := &outs[i]; {
		case errs[i] != nil:
			t.Fatalf("record %d: %v", i, errs[i])
		case o.Offset != before+int64(i) || len(o.Events) != 1 || o.Events[0].Status != resolver.EventAccepted:
			t.Fatalf("record %d: %+v", i, o)
		case i%2 == 1 && o.Events[0].Profile != outs[i-1].Events[0].Profile:
			t.Fatalf("records %d and %d are of two profiles", i-1, i)
		}
	}
	for what, err := range map[string]error{"that cannot be applied": bad, "behind it": late} {
		if !errors.Is(err, resolver.ErrUnavailable) {
			t.Errorf("the record %s: %v", what, err)
		}
	}
	if applied := p.position.applied.Load(); applied != before+good {
		t.Errorf("%d records are applied, want %d", applied-before, good)
	}
	if err := n.Err(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("record %d of partition 0 cannot be applied", before+good)) {
		t.Errorf("the node's failure: %v", err)
	}
	_ = n.Close(t.Context()) // it says what we have seen
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
}
