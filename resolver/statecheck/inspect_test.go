package statecheck

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/node"
)

// TestInspectMissingState: a state that is gone beside a log with records is damage that
// a start mends.
func TestInspectMissingState(t *testing.T) {
	fs := vfs.NewMem()
	found, err := Inspect(fs, "state", "log", 0, 0, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Err == nil || !found[0].Repairable {
		t.Errorf("%+v", found)
	}
	if found, err = Inspect(fs, "state", "log", 0, 0, 0, nil); err != nil || len(found) != 0 {
		t.Errorf("beside an empty log: %+v, %v", found, err)
	}
}

// tried counts how often rows were offered.
type tried struct {
	*fake.History
	times atomic.Int64
}

func (h *tried) Append(ctx context.Context, b *query.Batch) error {
	h.times.Add(1)
	return h.History.Append(ctx, b)
}

// TestInspectDamagedSpoolFile: a file of rows for history that was damaged before a checkpoint
// took it, with whatever checksum it had then, is found in the checkpoint. A start rebuilds its
// rows if the log has its beginning.
func TestInspectDamagedSpoolFile(t *testing.T) {
	ctx := context.Background()
	fs := vfs.NewMem()
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	history := &tried{History: &fake.History{Rand: rand.New(rand.NewPCG(1, 1)), Failures: 1 << 30}}
	now := time.UnixMilli(1_000_000_000_000)
	n, err := node.Open(ctx, node.Options{FS: fs, Dir: "state", Log: log, LogName: "log", History: history, Now: func() time.Time { return now },
		Rand: &fake.Random{Rand: rand.New(rand.NewPCG(2, 2))}, Feed: node.FeedOptions{Delay: time.Hour, MemoryBytes: 10_000, RetryMax: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		_ = errors.Join(n.Close(stopped), log.Close()) // history takes nothing
	}()
	const account = 1
	if _, err := n.Command(ctx, account, resolver.CommandBootstrap, resolver.Bootstrap{
		ApplyVersion: resolver.ApplyVersion, Company: resolver.Company{ID: "com_1", Name: "Test"},
		HashKey: hex.EncodeToString(make([]byte, 16)), SecretHash: hex.EncodeToString(make([]byte, 32)),
		Settings: resolver.DefaultSettings(), User: access.User{ID: "usr_1", Email: "a@b.c"}, APIKey: access.APIKey{ID: "key_1"},
	}); err != nil {
		t.Fatal(err)
	}
	ev := fake.Event("email", "a@x.io")
	ev.Properties = []byte(`{"x":"` + strings.Repeat("y", 20_000) + `"}`)
	for i := range 3 {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, ID: eventlog.RecordID{9, byte(i)}, StampMs: now.UnixMilli()}
		var out resolver.Outcome
		if err := n.Submit(ctx, account, fake.AppendEvents(env.Append(nil), []eventlog.Event{ev}), &out); err != nil {
			t.Fatal(err)
		}
	}
	record := func(id eventlog.RecordID) func(int64) ([]byte, error) {
		return func(int64) ([]byte, error) {
			return fake.AppendEvents((&eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, ID: id}).Append(nil), []eventlog.Event{ev}), nil
		}
	}
	last := record(eventlog.RecordID{9, 2})
	inspect := func(start int64, record func(int64) ([]byte, error)) (bad []Finding) {
		t.Helper()
		_, end, err := log.Bounds(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		found, err := Inspect(fs, "state", "log", 0, start, end, record)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Err != nil {
				bad = append(bad, f)
			}
		}
		return bad
	}
	const spool = "state/p0/spool"
	var waiting string
	eventually.Succeeds(t, func() error {
		// One that is still being written would be whole again in a moment.
		names, err := fs.List(spool)
		whole := int64(0)
		for _, name := range names {
			path := fs.PathJoin(spool, name)
			if f, err := fs.Stat(path); err == nil && strings.HasSuffix(name, ".spool") && f.Size() > 0 {
				waiting, whole = path, whole+f.Size()
			}
		}
		if counted := n.Stats()[0].SpoolBytes; err == nil && (whole == 0 || whole != counted) {
			err = fmt.Errorf("%d bytes are in %v, %d are counted", whole, names, counted)
		}
		return err
	})
	// Each try reads the files, and later than the one before: right after one, a checkpoint has
	// the damage before the next one finds it.
	before := history.times.Load()
	eventually.Holds(t, "history is tried again", func() bool { return history.times.Load() > before })
	if !fake.DamageFile(t, fs, waiting, fake.DamageKinds[5]) {
		t.Fatal("not damaged")
	}
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	bad := inspect(0, last)
	if len(bad) != 1 || !bad[0].Repairable || !strings.Contains(bad[0].Err.Error(), fs.PathBase(waiting)) {
		t.Errorf("%+v", bad)
	}
	if bad = inspect(1, last); len(bad) != 1 || bad[0].Repairable {
		t.Errorf("beside a log that was trimmed: %+v", bad)
	}
	if bad = inspect(0, record(eventlog.RecordID{9, 3})); len(bad) != 1 || !bad[0].Foreign || !bad[0].Repairable || !strings.Contains(bad[0].Err.Error(), "state away: the state is then rebuilt") {
		t.Errorf("beside a log that has another record there: %+v", bad)
	}
	// The log replaces a state only where it has its beginning.
	if bad = inspect(1, record(eventlog.RecordID{9, 3})); len(bad) == 0 || bad[0].Repairable || strings.Contains(bad[0].Err.Error(), "away") || !strings.Contains(bad[0].Err.Error(), "Keep state") {
		t.Errorf("beside a trimmed log that has another record there: %+v", bad)
	}
}
