package clickhouse

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// between is a connection on which something happens before the first statement with a text;
// an error is that statement's answer.
type between struct {
	driver.Conn
	text  string
	first func() error
}

func (b *between) before(sql string) error {
	if f := b.first; f != nil && strings.Contains(sql, b.text) {
		b.first = nil
		return f()
	}
	return nil
}

func (b *between) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if err := b.before(sql); err != nil {
		return nil, err
	}
	return b.Conn.Query(ctx, sql, args...)
}

func (b *between) Exec(ctx context.Context, sql string, args ...any) error {
	if err := b.before(sql); err != nil {
		return err
	}
	return b.Conn.Exec(ctx, sql, args...)
}

// addGarbage inserts rows that are never committed.
func addGarbage(t *testing.T, s *Store, writer uint64, from, to int64) {
	t.Helper()
	a := addition{batch: &query.Batch{}, writer: writer, from: from}
	historytest.FillRecords(a.batch, 0, from, to)
	if err := s.insert(context.Background(), &a); err != nil {
		t.Fatal(err)
	}
}

// openPair opens two stores of one database.
func openPair(t *testing.T) (a, b *Store) {
	t.Helper()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t), Threads: 2}
	return openOptions(t, opts), openOptions(t, opts)
}

// putBack puts a table that was dropped in the place of the one that was made since.
func putBack(t *testing.T, s *Store, table string) {
	t.Helper()
	var uuid string
	err := s.ask(context.Background(), "SELECT toString(argMin(uuid, table_dropped_time)) FROM system.dropped_tables WHERE database = currentDatabase() AND table = "+quote(table),
		func(r driver.Rows) error { return r.Scan(&uuid) })
	if err != nil {
		t.Fatal(err)
	}
	do(t, s, "DROP TABLE "+table+" SYNC")
	do(t, s, "UNDROP TABLE "+table+" UUID '"+uuid+"'")
}

// TestL2LossDuringASweep: a table, or what says which rows count, is lost while the sweep is at
// work, and rebuilt at once: the sweep takes none of the new rows, also where the server
// carries its delete out later.
func TestL2LossDuringASweep(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"FROM events", "DELETE FROM events"} {
		for _, loss := range []string{"DROP TABLE events SYNC", "TRUNCATE TABLE commits"} {
			t.Run(loss+" before "+at, func(t *testing.T) {
				t.Parallel()
				ctx := context.Background()
				s, other := openPair(t)
				rebuild(t, s, 100)
				addGarbage(t, s, 5, 0, 100)
				var w sweep
				if err := w.run(ctx, s); err != nil {
					t.Fatal(err)
				}
				happened := false
				s.conn = &between{Conn: s.conn, text: at, first: func() error {
					happened = true
					do(t, other, loss)
					if err := other.ensureSchema(ctx); err != nil {
						return err
					}
					rebuild(t, other, 150)
					return nil
				}}
				if err := w.run(ctx, s); !happened || err != nil && !errors.Is(err, errCoverChanged) {
					t.Fatalf("the loss happened: %v, the sweep: %v", happened, err)
				}
				if at := checkRecords(t, other, 0); at != 150 {
					t.Errorf("the position is %d", at)
				}
				for range 2 { // begun anew
					if err := w.run(ctx, s); err != nil {
						t.Fatal(err)
					}
				}
				if n := scalar(t, other, "SELECT count() FROM aliases WHERE writer = 5"); n != 0 {
					t.Errorf("%d rows of garbage are left", n)
				}
				checkRecords(t, other, 0)
			})
		}
	}
}

// TestL2PutBackAfterASweep: a table is put back after the sweep removed what had been committed
// with it from the others: that does not count again.
func TestL2PutBackAfterASweep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	rebuild(t, s, 100)
	do(t, s, "DROP TABLE events")
	if err := s.ensureSchema(ctx); err != nil {
		t.Fatal(err)
	}
	rebuild(t, s, 100)
	var w sweep
	for range 2 {
		if err := w.run(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	checkRecords(t, s, 0)
	putBack(t, s, "events")
	checkRecords(t, s, 0)
	rebuild(t, s, 150)
	if at := checkRecords(t, s, 0); at != 150 {
		t.Errorf("the position is %d", at)
	}
}

// TestSweepWithoutARight: who may not ask for damaged parts has all else swept.
func TestSweepWithoutARight(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	rebuild(t, s, 100)
	addGarbage(t, s, 5, 0, 100)
	denied := errors.New("not enough privileges")
	var w sweep
	for range 2 {
		s.conn = &between{Conn: s.conn, text: "system.detached_parts", first: func() error { return denied }}
		if err := w.run(ctx, s); !errors.Is(err, denied) {
			t.Fatalf("the sweep: %v", err)
		}
	}
	if n := scalar(t, s, "SELECT count() FROM events WHERE writer = 5"); n != 0 {
		t.Errorf("%d rows of garbage are left", n)
	}
	checkRecords(t, s, 0)
}

// TestCoverExtends: which covers say that nothing was lost since one before.
func TestCoverExtends(t *testing.T) {
	t.Parallel()
	one, other := tables{"db", "1"}, tables{"db", "2"}
	before := kept{cover{{1, 0, 10}, {2, 10, 20}}, one}
	for _, x := range []struct {
		now  kept
		want bool
	}{
		{before, true},
		{kept{cover{{1, 0, 10}, {2, 10, 30}}, one}, true},
		{kept{cover{{1, 0, 10}, {2, 10, 20}, {3, 20, 30}}, one}, true},
		{kept{cover{{1, 0, 10}, {2, 10, 20}}, other}, false},
		{kept{cover{{1, 0, 10}, {2, 10, 19}}, one}, false},
		{kept{cover{{1, 0, 10}}, one}, false},
		{kept{cover{{1, 0, 12}, {2, 12, 20}}, one}, false},
		{kept{cover{{3, 0, 30}}, one}, false},
		{kept{nil, one}, false},
	} {
		if have := x.now.extends(before); have != x.want {
			t.Errorf("%v extends %v: %v", x.now, before, have)
		}
	}
}
