package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/internal/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fixture struct {
	fs      vfs.FS
	log     *file.Log
	history *fake.History
	now     time.Time
	opened  uint64 // nodes
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{fs: vfs.NewMem(), history: &fake.History{Rand: rand.New(rand.NewPCG(1, 1))}, now: time.UnixMilli(1_000_000_000_000)}
	f.openLog(t)
	return f
}

func (f *fixture) openLog(t *testing.T) {
	t.Helper()
	var err error
	if f.log, err = file.Open("log", file.Options{FS: f.fs, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) open(skip ...int64) (*Node, error) {
	return Open(context.Background(), f.options(func(o *Options) {
		o.Rand, o.Skip = &fake.Random{Rand: rand.New(rand.NewPCG(2, uint64(len(skip))))}, map[int][]int64{0: skip}
	}))
}

// options are those of a node of the fixture, changed by change.
func (f *fixture) options(change func(*Options)) Options {
	f.opened++
	o := Options{FS: f.fs, Dir: "state", Log: f.log, History: f.history,
		Now: func() time.Time { return f.now }, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(3, f.opened))}, Feed: FeedOptions{Delay: time.Millisecond}}
	change(&o)
	return o
}

func (f *fixture) mustOpen(t *testing.T) *Node {
	t.Helper()
	n, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Accounts()) == 0 {
		if _, err := n.Command(context.Background(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (f *fixture) close(t *testing.T, n *Node) {
	t.Helper()
	if n != nil {
		if err := n.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestL3RecordThatCannotBeApplied: the node stops and names the offset, again
// after a restart, and passes over the record when told to.
func TestL3RecordThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	if _, err := f.log.Append(context.Background(), 0, []byte("no record at all, but long enough for an envelope")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.Failed():
	case <-time.After(time.Minute):
		t.Fatal("the node must stop")
	}
	if err := n.Err(); !strings.Contains(err.Error(), "record 1 of partition 0") {
		t.Fatalf("the error must name the record: %v", err)
	}
	if _, err := n.Command(context.Background(), testAccount, eventtypes.CommandDefine, eventtypes.Define{Name: "X"}); !errors.Is(err, resolver.ErrUnavailable) {
		t.Fatalf("nothing is acknowledged any more: %v", err)
	}
	f.close(t, n)
	f.openLog(t)
	if n, err := f.open(); err == nil {
		f.close(t, n)
		t.Fatal("the record is still there")
	}
	n, err := f.open(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(context.Background(), testAccount, eventtypes.CommandDefine, eventtypes.Define{Name: "X"}); err != nil {
		t.Fatal(err)
	}
	f.close(t, n)
}

// TestL3PlaceholdersAreDetachedByTheNode: the node appends continue records by
// itself, also after a restart in the middle.
func TestL3PlaceholdersAreDetachedByTheNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	ctx := context.Background()
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, ID: eventlog.RecordID{1}, StampMs: f.now.UnixMilli()}
	var out resolver.Outcome
	if err := n.Submit(ctx, testAccount, fake.AppendEvents(env.Append(nil), []eventlog.Event{fake.Event("external_id", "shared", "email", "a@x.io")}), &out); err != nil {
		t.Fatal(err)
	}
	s := resolver.DefaultSettings()
	s.Placeholders = append(s.Placeholders, "shared")
	if _, err := n.Command(ctx, testAccount, resolver.CommandSettingsSet, s); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		found := true
		if err := n.Read(ctx, testAccount, func(v *resolver.View) error {
			_, found = v.Profiles().Find(resolver.IdentityExternalID, "shared")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the identifier was not taken off")
		}
	}
	f.close(t, n)
}

// TestHistoryThatLostRowsIsRefused: a history that lacks rows which the log does not
// have any more either cannot be made whole.
func TestHistoryThatLostRowsIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	for i := range 3 {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, ID: eventlog.RecordID{9, byte(i)}, StampMs: f.now.UnixMilli()}
		var out resolver.Outcome
		if err := n.Submit(context.Background(), testAccount, fake.AppendEvents(env.Append(nil), []eventlog.Event{fake.Event("email", "a@x.io")}), &out); err != nil {
			t.Fatal(err)
		}
		if err := f.log.Roll(0); err != nil {
			t.Fatal(err)
		}
	}
	// Rows that history does not have yet are in the checkpoint.
	if err := waitHistory(t, n, query.Cut{UpTo: 3}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Checkpoint(), f.log.Trim(0, 3)); err != nil {
		t.Fatal(err)
	}
	if start, _, err := f.log.Bounds(context.Background(), 0); err != nil || start == 0 {
		t.Fatalf("the log begins at %d: %v", start, err)
	}
	f.close(t, n)
	f.history = &fake.History{Rand: rand.New(rand.NewPCG(1, 1))}
	f.openLog(t)
	if n, err := f.open(); err == nil || !strings.Contains(err.Error(), "rows are missing") {
		t.Fatalf("a history that is behind its checkpoint must be refused: %v", err)
	} else if n != nil {
		t.Fatal("no node expected")
	}
	f.close(t, nil)
}

func TestStampTooFarAheadIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, StampMs: f.now.UnixMilli() + 5001}
	var out resolver.Outcome
	if err := n.Submit(context.Background(), testAccount, fake.AppendEvents(env.Append(nil), []eventlog.Event{fake.Event("email", "a@x.io")}), &out); !errors.Is(err, resolver.ErrUnavailable) {
		t.Fatalf("%v", err)
	}
	f.close(t, n)
}

// TestQ1WaitingRowsAreBoundedInBytes: while history refuses rows, large ones
// are counted, sealed by their bytes and moved to the spool.
func TestQ1WaitingRowsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.history.Failures = 100
	n, err := Open(context.Background(), Options{FS: f.fs, Dir: "state", Log: f.log, History: f.history,
		Now: func() time.Time { return f.now }, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(2, 2))},
		Feed: FeedOptions{Delay: time.Hour, MemoryBytes: 100_000, RetryMax: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	large := fake.Event("email", "a@x.io")
	large.Properties = []byte(`{"x":"` + strings.Repeat("y", 20_000) + `"}`)
	counted := false
	for i := range 50 {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, ID: eventlog.RecordID{9, byte(i)}, StampMs: f.now.UnixMilli()}
		var out resolver.Outcome
		if err := n.Submit(ctx, testAccount, fake.AppendEvents(env.Append(nil), []eventlog.Event{large}), &out); err != nil {
			t.Fatal(err)
		}
		s := n.Stats()[0]
		counted = counted || s.WaitingRows > 0 && s.WaitingBytes >= 20_000
		if s.WaitingBytes > 2*100_000+50_000 {
			t.Fatalf("%d bytes wait in memory, the bound is 100,000 and Apply stops at twice as much", s.WaitingBytes)
		}
	}
	if s := n.Stats()[0]; !counted || s.SpoolBytes == 0 {
		t.Fatalf("rows being filled counted: %v; spooled: %d bytes", counted, s.SpoolBytes)
	}
	f.history.Mu.Lock()
	f.history.Failures = 0
	f.history.Mu.Unlock()
	f.close(t, n)
}

// TestStoredDefinitionIsReadBack: a definition that is longer in canonical form
// than as it was sent is read back at the next start, or is refused.
func TestStoredDefinitionIsReadBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	grown := func(activities int) string {
		var values, list []string
		for i := range 999 {
			values = append(values, fmt.Sprintf("%de15", i+1))
		}
		for i := range activities {
			list = append(list, fmt.Sprintf(`{"kind":"activity","event":"a%d","where":[{"property":"p","op":"in","value":[%s]}]}`, i, strings.Join(values, ",")))
		}
		return `{"match":"any","conditions":[` + strings.Join(list, ",") + `]}`
	}
	save := func(d string) error {
		_, err := n.Command(context.Background(), testAccount, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(d)})
		return err
	}
	if err := save(grown(36)); err != nil {
		t.Fatal(err)
	}
	f.close(t, n)
	f.openLog(t)
	n = f.mustOpen(t)
	if err := n.Read(context.Background(), testAccount, func(v *resolver.View) error {
		if len(v.Segments().All()) != 1 || len(v.Segments().All()[0].Definition) < 256<<10 {
			t.Errorf("%d segments", len(v.Segments().All()))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	f.close(t, n)
}
