package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
)

// countedLog counts what one node asks of the log.
type countedLog struct {
	eventlog.Log
	appends, reads atomic.Int64
}

func (l *countedLog) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	l.appends.Add(1)
	return l.Log.Append(ctx, partition, data)
}

func (l *countedLog) Read(partition int, from int64) (eventlog.Reader, error) {
	l.reads.Add(1)
	return l.Log.Read(partition, from)
}

// TestW1W2W3Warm: a warm partition follows the log, answers nothing and appends
// nothing, whatever falls due; taken, it continues from there under an epoch of its
// own, without loading anything again. One that is cooled leaves nothing behind.
func TestW1W2W3Warm(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestCluster(t, 1, 2)
	shelf := newShelf()
	counted := &countedLog{Log: c.log}
	one := c.open(0, func(o *Options) { o.NodeID, o.Shared = "one", shelf.of(o.FS) })
	two := c.open(1, func(o *Options) { o.NodeID, o.Shared, o.Log = "two", shelf.of(o.FS), counted })
	defer c.close()
	mustTake(t, one, 0, 1, 2)
	c.found(one)
	account := clusterAccount(1)
	post := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := c.event(ctx, one, account, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	post(0, 20)
	if err := one.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the checkpoint is shared", func() bool { return len(shelf.has(1)) > 0 })
	post(20, 30)

	if err := two.Warm(ctx, 1); err != nil {
		t.Fatal(err)
	}
	post(30, 40)
	c.clock.Add(int64(2 * time.Hour / time.Millisecond)) // ticks fall due
	post(40, 50)
	p := two.slots[1].partition()
	if p == nil {
		t.Fatal("a warm partition is not there")
	}
	want, _, err := one.StateHash(1)
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the warm partition is at the end of the log", func() bool { return p.position.applied.Load() >= want })
	if two.Owns(1) || len(two.Owned()) > 0 {
		t.Error("W1: a warm partition is served")
	}
	if _, err := c.event(ctx, two, account, "x"); !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("W1: an event: %v", err)
	}
	if _, err := viewed(ctx, two, account); !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("W1: a reader: %v", err)
	}
	if err := two.Barrier(ctx, account); !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("W1: a barrier: %v", err)
	}
	if _, ok := two.App([]byte(resolver.AppID(account))); ok {
		t.Error("W1: an app is known")
	}
	if _, ok := two.Lease(account); ok || two.HoldsLease(1) {
		t.Error("W2: it holds the lease")
	}
	if n := counted.appends.Load(); n > 0 {
		t.Errorf("W2: %d records appended", n)
	}
	if err := two.Warm(ctx, 1); err != nil || two.slots[1].partition() != p {
		t.Errorf("warmed twice: %v", err)
	}
	before, _ := one.Epoch(1)
	if !one.HoldsLease(1) {
		t.Error("W2: the owner does not act any more")
	}

	// The owner may still be at it when the next one takes it.
	post(50, 60)
	opened := counted.reads.Load()
	mustTake(t, two, 1)
	if n := counted.reads.Load() - opened; n != 0 {
		t.Errorf("the log was opened %d times more", n)
	}
	after, ok := two.Epoch(1)
	if !ok || after.Node != "two" || after.Number <= before.Number || !two.HoldsLease(1) {
		t.Errorf("W3: the epoch is %+v after %+v", after, before)
	}
	eventually.Holds(t, "the former owner knows", func() bool { return !one.HoldsLease(1) })
	if n, err := viewed(ctx, two, account); err != nil || n != 60 {
		t.Errorf("L1: %d events of 60, %v", n, err)
	}
	mustRelease(t, one, 1)
	if _, err := c.event(ctx, two, account, "60"); err != nil {
		t.Error(err)
	}

	// Cooled: nothing stays, and it can be warmed and taken again.
	mustTake(t, one, 1)
	mustRelease(t, two, 1)
	if err := two.Warm(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := two.Cool(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if two.slots[1].partition() != nil {
		t.Error("a cooled partition is there")
	}
	if names, err := c.fs[1].List("state/p1"); err == nil {
		t.Errorf("a cooled partition leaves %q", names)
	}
	if err := errors.Join(two.Cool(ctx, 1), two.Cool(ctx, 0)); err != nil {
		t.Errorf("cooling what is not warm: %v", err)
	}
	mustTake(t, two, 1)
	if err := two.Cool(ctx, 1); err != nil || !two.HoldsLease(1) {
		t.Errorf("cooling what is served: %v", err)
	}
	if n, err := viewed(ctx, two, account); err != nil || n != 61 {
		t.Errorf("L1: %d events of 61, %v", n, err)
	}
	if err := one.Warm(ctx, 1); err != nil { // served there still; nothing happens
		t.Fatal(err)
	}
	mustRelease(t, one, 1)
	if err := one.Warm(ctx, 1); err != nil { // and left to Close
		t.Fatal(err)
	}
}

// TestR1WarmIsTheSameState: a partition that was warm while the log grew has the
// same state, to the byte, as its owner, and as one that replayed.
func TestR1WarmIsTheSameState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestCluster(t, 3, 2)
	one, two := c.open(0, nil), c.open(1, nil)
	defer c.close()
	mustTake(t, one, 0, 1, 2)
	c.found(one)
	account := clusterAccount(1)
	var posting sync.WaitGroup
	posting.Go(func() {
		for i := range 300 {
			if _, err := c.event(ctx, one, account, fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		}
	})
	eventually.Holds(t, "some are there", func() bool { n, err := viewed(ctx, one, account); return err == nil && n > 50 })
	if err := two.Warm(ctx, 1); err != nil {
		t.Fatal(err)
	}
	posting.Wait()
	next, want, err := one.StateHash(1)
	if err != nil {
		t.Fatal(err)
	}
	mustTake(t, two, 1) // without an id there is no epoch record: the state stays
	if n, have, err := two.StateHash(1); err != nil || n != next || have != want {
		t.Errorf("R1: %s at %d, want %s at %d, %v", have, n, want, next, err)
	}
}

// TestWarmThatFails: what cannot be loaded leaves nothing behind, and a stop ends
// what is being warmed.
func TestWarmThatFails(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestCluster(t, 2, 1)
	n := c.open(0, nil)
	defer c.close()
	c.log.away.Store(true)
	if err := n.Warm(ctx, 0); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("%v", err)
	}
	if n.slots[0].partition() != nil {
		t.Error("a partition that could not be loaded is there")
	}
	c.log.away.Store(false)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := n.Warm(ended, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := n.Warm(ctx, clusterPartitions); err == nil {
		t.Error("a partition is warm that does not exist")
	}
	if err := n.Warm(ctx, 0); err != nil {
		t.Error(err)
	}
}
