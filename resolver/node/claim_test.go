package node

import (
	"context"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestR1EpochIsInTheState: a node with an id begins an epoch at each start, and
// the newest one is that of a checkpoint and of a replay. One without an id writes
// nothing.
func TestR1EpochIsInTheState(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	open := func(node string) *Node {
		t.Helper()
		n, err := Open(ctx, f.options(func(o *Options) { o.NodeID, o.Advertise = node, node+":1" }))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := open("")
	if _, end, err := f.log.Bounds(ctx, 0); err != nil || end != 0 {
		t.Fatalf("a node alone wrote %d records, %v", end, err)
	}
	if _, ok := n.Epoch(0); ok || !n.HoldsLease(0) || n.Clustered() {
		t.Fatal("a node alone holds the lease without an epoch")
	}
	if epoch, ok := n.Lease(testAccount); epoch != 0 || !ok {
		t.Fatal(epoch, ok)
	}
	f.close(t, n)
	var last uint64
	for range 3 {
		f.openLog(t)
		n = open("one")
		e, ok := n.Epoch(0)
		if !ok || e.Number <= last || e.Node != "one" || e.Address != "one:1" || !n.HoldsLease(0) {
			t.Fatalf("%+v after %d", e, last)
		}
		last = e.Number
		next, sum, err := n.StateHash(0)
		if err != nil {
			t.Fatal(err)
		}
		m, _ := replay(t, f.log, next)
		if fresh, err := m.Hash(); err != nil || fresh != sum {
			t.Fatalf("a replay makes %s of %s, %v", fresh, sum, err)
		}
		if err := n.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		f.close(t, n)
	}
	// A node without an id does not act in a cluster's partition.
	f.openLog(t)
	n = open("")
	if e, ok := n.Epoch(0); !ok || e.Number != last || n.HoldsLease(0) {
		t.Fatalf("%+v, holds the lease: %v", e, n.HoldsLease(0))
	}
	if _, ok := n.Effect(testAccount, 0); ok {
		t.Error("an effect without an epoch")
	}
	f.close(t, n)
}

// TestNodeIsSuperseded: when another node's epoch stands in the log, the first
// one loses the lease, its claims are refused, and it can take the partition again.
func TestNodeIsSuperseded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	open := func(node string) *Node {
		t.Helper()
		n, err := Open(ctx, f.options(func(o *Options) { o.NodeID, o.Dir, o.Log = node, node, untrimmed{f.log} }))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	one := open("one")
	if _, err := one.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	first, ok := one.Lease(testAccount)
	if !ok || first == 0 {
		t.Fatal(first, ok)
	}
	if _, err := one.Claim(ctx, testAccount, first, nil); err != nil {
		t.Fatal(err)
	}
	end, ok := one.Effect(testAccount, first)
	if !ok {
		t.Fatal("it holds the lease")
	}
	changed := one.Changed()
	two := open("two")
	<-changed
	if one.HoldsLease(0) || !one.Owns(0) || !two.HoldsLease(0) {
		t.Fatalf("holders of the lease: one %v, two %v", one.HoldsLease(0), two.HoldsLease(0))
	}
	if _, ok := one.Effect(testAccount, first); ok {
		t.Error("an effect is begun under an epoch that is over")
	}
	if _, err := one.Claim(ctx, testAccount, first, nil); !resolver.IsSuperseded(err) {
		t.Errorf("%v", err)
	}
	if err := one.Take(ctx, 0); err != nil {
		t.Fatal(err)
	}
	again, ok := one.Lease(testAccount)
	if !ok || again <= first {
		t.Fatal(again, ok)
	}
	if err := one.Take(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if now, _ := one.Lease(testAccount); now != again {
		t.Error("what is held is taken again")
	}
	if _, ok := one.Effect(testAccount, first); ok {
		t.Error("an effect is begun under an epoch that is over")
	}
	// What is under way holds up the release, until it ends.
	released := make(chan error)
	go func() { released <- one.Release(ctx, 0) }()
	for _, ok := one.Lease(testAccount); ok; _, ok = one.Lease(testAccount) {
		select {
		case err := <-released:
			t.Fatal("released with an effect under way", err)
		default:
		}
	}
	if _, err := one.Command(ctx, testAccount, messages.CommandOutboxDone, outbox.Done{Seq: 1, Result: outbox.ResultSent}); err != nil {
		t.Errorf("an outcome while the partition is given up: %v", err)
	}
	end()
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if err := two.Close(ctx); err != nil {
		t.Fatal(err)
	}
	f.close(t, one)
}

// untrimmed is a log of which several nodes keep no checkpoints in common.
type untrimmed struct{ eventlog.Log }

func (untrimmed) Trim(int, int64) error { return nil }
