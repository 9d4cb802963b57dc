package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestL1StateOfOtherRecords: a state is not continued with a log that bears the name of its own
// and has other records, such as a topic made anew, another partition, or a log that went on
// from an older backup. With its own it is.
func TestL1StateOfOtherRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	open := func(log, state string, seed uint64) (*Node, *file.Log, error) {
		t.Helper()
		l, err := file.Open(log, file.Options{FS: fs, Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		n, err := Open(ctx, Options{FS: fs, Dir: state, Log: l, LogName: "a topic", History: &fake.History{Rand: rand.New(rand.NewPCG(1, 3))},
			Rand: &fake.Random{Rand: rand.New(rand.NewPCG(1, seed))}, Now: func() time.Time { return time.UnixMilli(1_000_000_000_000) },
			Feed: FeedOptions{Delay: time.Millisecond, RetryMax: time.Millisecond}})
		return n, l, err
	}
	halt := func(n *Node, l *file.Log) {
		t.Helper()
		if n != nil {
			if err := n.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for i, log := range []string{"one", "other"} {
		n, l, err := open(log, "state of "+log, uint64(i+10))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
			t.Fatal(err)
		}
		for range 3 + i { // the other log is longer
			submitEvents(t, n, eventlog.Event{Type: []byte("bought"), Email: []byte("a@x.io")})
		}
		if err := n.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		halt(n, l)
	}
	n, l, err := open("other", "state of one", 20)
	if !errors.Is(err, checkpoint.ErrOtherLog) {
		t.Errorf("another log's state: %v", err)
	}
	halt(n, l)
	n, l, err = open("one", "state of one", 21)
	if err != nil {
		t.Fatal(err)
	}
	halt(n, l)
}
