package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestQ1RowsForHistoryAreBounded: while history is down, events are refused before there is no
// room for their rows, so that all that is in the log is applied, and reads go on. Once history
// is back, all of it is there.
func TestQ1RowsForHistoryAreBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	fs := vfs.NewMem()
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	history := &downHistory{History: &fake.History{Rand: rand.New(rand.NewPCG(1, 3))}}
	n, err := Open(ctx, Options{FS: fs, Dir: "state", Log: log, History: history, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(1, 4))},
		Now:  func() time.Time { return time.UnixMilli(1_000_000_000_000) },
		Feed: FeedOptions{Delay: time.Millisecond, RetryMax: time.Millisecond, MemoryBytes: 50_000, SpoolBytes: 800_000, LateBytes: 8_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(n, log)
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	history.down.Store(true)
	const batch = 10
	event := eventlog.Event{Type: []byte("viewed"), Email: []byte("a@x.io"), Properties: fmt.Appendf(nil, `{"what":%q}`, strings.Repeat("x", 10_000))}
	var sent, taken atomic.Uint64
	send := func() error {
		id := sent.Add(1)
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, ID: eventlog.RecordID{9, byte(id), byte(id >> 8)}, StampMs: 1_000_000_000_000}
		var out resolver.Outcome
		err := n.Submit(ctx, testAccount, fake.AppendEvents(env.Append(nil), slices.Repeat([]eventlog.Event{event}, batch)), &out)
		if err == nil {
			taken.Add(batch)
		}
		return err
	}
	// What is under way when the bound is reached is more than the bound.
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() {
			for {
				if err := send(); err != nil {
					if !errors.Is(err, resolver.ErrOverloaded) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	clients.Wait()
	if taken.Load() < 50 {
		t.Fatalf("%d events were taken", taken.Load())
	}
	if count, err := viewed(ctx, n, testAccount); err != nil || count != taken.Load() {
		t.Errorf("the state has %d events of %d: %v", count, taken.Load(), err)
	}
	history.down.Store(false)
	eventually.Succeeds(t, send)
	p := n.partitions[0].Load()
	if err := waitHistory(t, n, query.Cut{UpTo: p.position.applied.Load()}); err != nil {
		t.Fatal(err)
	}
	history.Mu.Lock()
	defer history.Mu.Unlock()
	if uint64(len(history.Rows)) != taken.Load() {
		t.Errorf("history has %d rows of %d", len(history.Rows), taken.Load())
	}
}
