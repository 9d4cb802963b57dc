package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestL1LogIsNotTrimmedWhileHistoryLacksRows: while rows are rebuilt, the log is all that has
// them, and it stays; afterwards it is trimmed.
func TestL1LogIsNotTrimmedWhileHistoryLacksRows(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	history := &downHistory{History: &fake.History{Rand: rand.New(rand.NewPCG(1, 3))}}
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1, SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000_000_000)
	n, err := Open(ctx, Options{FS: fs, Dir: "state", Log: log, History: history, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(1, 4))}, TrimLog: true,
		Now: func() time.Time { return now }, CheckpointInterval: time.Hour, Feed: FeedOptions{Delay: time.Millisecond, RetryMax: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(n, log)
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	// Each round fills some segments of the log.
	round := func() (start int64) {
		t.Helper()
		for range 20 {
			submitEvents(t, n, eventlog.Event{Type: []byte("bought"), Email: []byte("a@x.io"), Properties: fmt.Appendf(nil, `{"what":%q}`, strings.Repeat("x", 20_000))})
		}
		if err := n.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		start, _, err := log.Bounds(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		return start
	}
	history.down.Store(true)
	n.partitions[0].Load().feed.LackAll()
	for range 4 {
		if start := round(); start != 0 {
			t.Fatalf("the log begins at %d while history lacks rows", start)
		}
	}
	history.down.Store(false)
	eventually.Succeeds(t, func() error {
		if lacks, _ := n.partitions[0].Load().feed.Lacks(); lacks {
			return errors.New("history lacks rows")
		}
		return nil
	})
	eventually.Succeeds(t, func() error {
		if round() == 0 {
			return errors.New("the log is not trimmed")
		}
		return nil
	})
}
