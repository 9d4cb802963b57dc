package node

import (
	"testing"

	"github.com/musterhq/muster/eventlog"
)

// TestLease: a node holds the lease under the epoch that its own record began, until another
// node's record begins one.
func TestLease(t *testing.T) {
	t.Parallel()
	alone := &lease{}
	if epoch, ok := alone.active(); epoch != 0 || !ok {
		t.Errorf("a node alone: epoch %d, holds the lease: %v", epoch, ok)
	}
	alone.note(5, eventlog.RecordID{1})
	if _, ok := alone.active(); ok {
		t.Error("a node without an id holds the lease in a cluster's partition")
	}

	l := &lease{clustered: true}
	if _, ok := l.active(); ok {
		t.Error("holds the lease without an epoch")
	}
	if won, lost := l.note(5, eventlog.RecordID{}); won || lost {
		t.Errorf("another node's: won %v, lost %v", won, lost)
	}
	own := eventlog.RecordID{7}
	l.ask(own)
	if won, lost := l.note(8, own); !won || lost {
		t.Errorf("its own: won %v, lost %v", won, lost)
	}
	if epoch, ok := l.active(); epoch != 8 || !ok {
		t.Errorf("epoch %d, holds the lease: %v", epoch, ok)
	}
	if won, lost := l.note(9, eventlog.RecordID{2}); won || !lost {
		t.Errorf("taken by another: won %v, lost %v", won, lost)
	}
	if _, ok := l.held(); ok {
		t.Error("holds a lease that another node took")
	}
}

// TestEffectsHoldUpTheEnd: no effect begins under another epoch or after the end, which
// those under way hold up.
func TestEffectsHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	l := &lease{clustered: true}
	own := eventlog.RecordID{7}
	l.ask(own)
	l.note(8, own)
	if _, ok := l.effect(5); ok {
		t.Error("an effect under an epoch that is over")
	}
	first, ok := l.effect(8)
	second, also := l.effect(8)
	if !ok || !also {
		t.Fatal("no effect under the node's own epoch")
	}
	idle := l.end()
	if _, ok := l.effect(8); ok {
		t.Error("an effect begins after the end")
	}
	first()
	if closed(idle) {
		t.Error("ended while an effect is under way")
	}
	second()
	if !closed(idle) {
		t.Error("no effect is under way, and it has not ended")
	}
	if (&lease{}).end() != nil {
		t.Error("waits for effects that never began")
	}
}
