package clickhouse

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestManyOpenAtOnce: nodes that start together make the tables once.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	opts := Options{DSN: services.ClickHouse(t), Database: services.DatabaseName(t)}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			s, err := Open(context.Background(), opts)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := openOptions(t, opts)
	appendRecords(t, s, 0, 0, 20)
	checkRecords(t, s, 0)
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	if err := s.exec(context.Background(), time.Minute, "INSERT INTO schema_versions (version) VALUES (99)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), s.opts); !errors.Is(err, ErrNewerSchema) || !strings.Contains(err.Error(), "version 99") {
		t.Fatalf("got %v", err)
	}
}

// TestTTL: off by default; set, changed and removed by the option; old events go
// and others stay.
func TestTTL(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	engine := func(s *Store) (text string) {
		err := s.ask(context.Background(), "SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'events'",
			func(r driver.Rows) error { return r.Scan(&text) })
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if e := engine(s); strings.Contains(e, "TTL") {
		t.Fatal(e)
	}
	b := &query.Batch{To: 4}
	for o, at := range []int64{time.Now().UnixMilli(), time.Now().Add(-30 * 24 * time.Hour).UnixMilli(), 0, math.MaxInt64} {
		b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, int64(o)), append(b.Index, 0)
		b.Ordinal, b.TimeMs = append(b.Ordinal, uint32(o)), append(b.TimeMs, at)
		b.EventType.Append([]byte("e"))
		b.Properties.Append(nil)
		b.IdempotencyKey.Append(nil)
	}
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		days int
		want string
		rows int64
	}{{400, "toIntervalDay(400)", 3}, {400, "toIntervalDay(400)", 3}, {7, "toIntervalDay(7)", 2}, {0, "", 2}, {maxTTLDays, "toIntervalDay(7300)", 2}} {
		opts := s.opts
		opts.TTLDays = c.days
		other := openOptions(t, opts)
		if e := engine(other); !strings.Contains(e, c.want) || strings.Contains(e, "TTL") != (c.days > 0) {
			t.Errorf("%d days: %s", c.days, e)
		}
		if err := other.alter(context.Background(), "OPTIMIZE TABLE events FINAL"); err != nil {
			t.Fatal(err)
		}
		if n := scalar(t, other, "SELECT count() FROM events"); n != c.rows {
			t.Errorf("%d days: %d rows, want %d", c.days, n, c.rows)
		}
	}
}

func TestOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opts Options
		want string
	}{
		{Options{}, "DSN is empty"},
		{Options{DSN: "clickhouse://u:secret@%zz"}, "DSN cannot be read"},
		{Options{DSN: "http://localhost:8123"}, "DSN is of the HTTP protocol"},
		{Options{DSN: "clickhouse://a:9000,b:9000"}, "DSN names 2 hosts"},
		{Options{DSN: "clickhouse://a:9000", MemoryBytes: 5, Readers: -1}, "MemoryBytes is 5, must be at least 64000000"},
		{Options{DSN: "clickhouse://a:9000", TTLDays: 9000}, "TTLDays is 9000, must be at most 7300"},
		{Options{DSN: "clickhouse://a:9000", SweepEvery: time.Minute}, "SweepEvery is 1m0s, must be at least 30m0s"},
		{Options{DSN: "clickhouse://a:9000", AppendTimeout: time.Hour}, "AppendTimeout is 1h0m0s, must be at most 5m0s"},
	} {
		_, err := Open(context.Background(), c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", c.opts, err)
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	_, position := s.Position(ctx, 0)
	_, usage := s.Usage(ctx)
	_, activity := s.Activity(ctx, query.ActivityQuery{Leaf: historytest.CountLeaf("x", 1)})
	replay := s.Replay(ctx, query.ReplayQuery{Cut: query.Cut{UpTo: 1}, EventType: "x"}, nil)
	erase := s.Erase(ctx, query.EraseQuery{Ordinals: []uint32{1}})
	for i, err := range []error{s.Close(), position, usage, activity, replay, erase, s.Append(ctx, &query.Batch{})} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestS2SegmentMembersForAnalysts: the view adds transitions up to members, also
// while there are rows that do not count, and its bitmaps can be combined.
func TestS2SegmentMembersForAnalysts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 150)
	garbage := new(query.Batch)
	historytest.FillRecords(garbage, 0, 100, 250)
	if err := s.insert(ctx, &addition{batch: garbage, writer: 5, from: 100}); err != nil {
		t.Fatal(err)
	}
	appendRecords(t, s, 0, 150, 200)
	var all query.Batch
	historytest.FillRecords(&all, 0, 0, 200)
	want := map[string]*roaring.Bitmap{}
	for _, x := range all.Transitions {
		if want[x.Segment] == nil {
			want[x.Segment] = roaring.New()
		}
		if want[x.Segment].Remove(x.Ordinal); x.Entered {
			want[x.Segment].Add(x.Ordinal)
		}
	}
	union := roaring.New()
	got := 0
	err := s.ask(ctx, "SELECT segment, CAST(members AS String), bitmapCardinality(members) FROM segment_members WHERE account = 7", func(r driver.Rows) error {
		var name string
		var state []byte
		var n uint64
		if err := r.Scan(&name, &state, &n); err != nil {
			return err
		}
		b := roaring.New()
		if err := readBitmap(b, state); err != nil {
			return err
		}
		if want[name] == nil || !b.Equals(want[name]) || n != b.GetCardinality() {
			t.Errorf("S2: %s has %v, want %v", name, b, want[name])
		}
		union.Or(b)
		got++
		return nil
	})
	if err != nil || got < 20 || union.IsEmpty() {
		t.Fatal(got, err)
	}
	if n := scalar(t, s, "SELECT groupBitmapOr(members) FROM segment_members WHERE account = 7"); n != int64(union.GetCardinality()) {
		t.Errorf("%d are in some segment, want %d", n, union.GetCardinality())
	}
	for _, sql := range strings.Split(analystExamples(t), ";") {
		if strings.TrimSpace(sql) == "" {
			continue
		}
		if err := s.ask(ctx, sql, func(driver.Rows) error { return nil }); err != nil {
			t.Errorf("docs/clickhouse.md: %s: %v", sql, err)
		}
	}
}

func TestBadBitmaps(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", "\x00", "\x00\x02\x01\x00\x00\x00", "\x01\x05abc", "\x01\x03abc", "\x02\x00", "\x01\x80"} {
		if err := readBitmap(roaring.New(), []byte(state)); !errors.Is(err, errBadBitmap) {
			t.Errorf("%q: %v", state, err)
		}
	}
}
