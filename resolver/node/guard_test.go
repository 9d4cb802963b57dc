package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
)

// TestHistoryAheadOfTheLog: history that holds more than the log is that of
// another log; nothing is applied beside it.
func TestHistoryAheadOfTheLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.history.Stored = 1
	n, err := f.open()
	if err == nil || !strings.Contains(err.Error(), "stored records up to 1, but the log ends at 0") {
		t.Errorf("opened: %v", err)
	}
	if n != nil {
		t.Error("a node came with the error")
	}
	f.history.Stored = 0
	f.close(t, f.mustOpen(t))
}

// TestFail: a node that must fail answers nothing, appends nothing and
// leaves its checkpoints as they were.
func TestFail(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(context.Background(), testAccount, eventtypes.CommandDefine, eventtypes.Define{Name: "X"}); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("another node owns the log")
	n.Fail(lost)
	select {
	case <-n.Failed():
	case <-time.After(time.Minute):
		t.Fatal("the node continues")
	}
	_, end, err := f.log.Bounds(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(context.Background(), testAccount, eventtypes.CommandDefine, eventtypes.Define{Name: "Y"}); !errors.Is(err, resolver.ErrUnavailable) || !errors.Is(err, lost) {
		t.Errorf("a command: %v", err)
	}
	if err := n.Read(context.Background(), testAccount, func(*resolver.View) error { return nil }); !errors.Is(err, resolver.ErrUnavailable) {
		t.Errorf("a read: %v", err)
	}
	checkpoint := n.partitions[0].Load().checkpoint.last.Load()
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, after, err := f.log.Bounds(context.Background(), 0); err != nil || after != end || n.partitions[0].Load().checkpoint.last.Load() != checkpoint {
		t.Errorf("the log went from %d to %d, the checkpoint from %d to %d: %v", end, after, checkpoint, n.partitions[0].Load().checkpoint.last.Load(), err)
	}
	f.close(t, f.mustOpen(t))
}
