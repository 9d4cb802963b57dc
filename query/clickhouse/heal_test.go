package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

func do(t *testing.T, s *Store, sql string) {
	t.Helper()
	if err := s.alter(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// rebuild appends records as a node does that finds history behind: from its position on.
func rebuild(t *testing.T, s *Store, to int64) {
	t.Helper()
	eventually.Succeeds(t, func() error {
		at, err := s.Position(context.Background(), 0)
		if err != nil || at >= to {
			return err
		}
		b := new(query.Batch)
		historytest.FillRecords(b, 0, at, min(at+60, to))
		if err := s.Append(context.Background(), b); err != nil {
			return err
		}
		return fmt.Errorf("at %d of %d", b.To, to)
	})
}

// lostThings are what may be dropped, and whether rows are lost with it.
var lostThings = []struct {
	drop string
	rows bool
}{
	{"DROP TABLE events SYNC", true}, {"DROP TABLE aliases SYNC", true}, {"DROP TABLE transitions SYNC", true}, {"DROP TABLE commits SYNC", true},
	{"DROP TABLE schema_versions SYNC", false}, {"DROP VIEW stored_events SYNC", false}, {"DROP VIEW positions SYNC", false},
}

// TestL2LostTableAtAStart: what is not there when a store is opened is made again, and no
// position stays that the rows are not there for.
func TestL2LostTableAtAStart(t *testing.T) {
	t.Parallel()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	first := openOptions(t, opts)
	for _, x := range lostThings {
		rebuild(t, first, 150)
		do(t, first, x.drop)
		s := openOptions(t, opts)
		at, err := s.Position(context.Background(), 0)
		if want := map[bool]int64{true: 0, false: 150}[x.rows]; err != nil || at != want {
			t.Errorf("%s: the position is %d (%v), want %d", x.drop, at, err, want)
		}
		rebuild(t, s, 150)
		checkRecords(t, s, 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestL2LostTableInUse: what is dropped while several stores use it is made again by
// whichever meets it first; those who need rows are refused, and never answered without.
func TestL2LostTableInUse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	owner, other := openOptions(t, opts), openOptions(t, opts)
	var losses atomic.Int64
	owner.OnLoss(func() { losses.Add(1) })
	rebuild(t, owner, 150)
	count := func(s *Store) (query.Counts, error) {
		return s.Counts(ctx, query.Cut{Partition: 0, UpTo: 150}, 0, 1)
	}
	want, err := count(owner)
	if err != nil || want.Events == 0 || want.Aliases == 0 || want.Transitions == 0 {
		t.Fatal(want, err)
	}
	for _, x := range append(slices.Clone(lostThings[:4]), struct {
		drop string
		rows bool
	}{"DROP DATABASE " + opts.Database + " SYNC", true}) {
		do(t, other, x.drop)
		stop := make(chan struct{})
		wrong := make(chan error, 1)
		go func() { // the owner knows a cover, and asks by it all the time
			defer close(wrong)
			for {
				select {
				case <-stop:
					return
				default:
				}
				n, err := count(owner)
				if err == nil && n != want || err != nil && !errors.Is(err, query.ErrUnavailable) {
					wrong <- fmt.Errorf("%+v of %+v: %w", n, want, err)
					return
				}
			}
		}()
		rebuild(t, other, 150)
		close(stop)
		if err := <-wrong; err != nil {
			t.Errorf("%s: an answer in between: %v", x.drop, err)
		}
		eventually.Succeeds(t, func() error {
			n, err := count(owner)
			if err == nil && n != want {
				err = fmt.Errorf("%+v of %+v", n, want)
			}
			return err
		})
		checkRecords(t, owner, 0)
		checkRecords(t, other, 0)
	}
	if losses.Load() == 0 {
		t.Error("OnLoss was not called")
	}
}

// TestL2CommitToLostTable: an append under way when its table is lost, and made again, does
// not count.
func TestL2CommitToLostTable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 100)
	k, now, err := s.readCover(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := new(query.Batch)
	historytest.FillRecords(b, 0, 100, 120)
	a := addition{batch: b, writer: 77, from: 100, tables: k.tables}
	if err := s.insert(ctx, &a); err != nil {
		t.Fatal(err)
	}
	do(t, s, "DROP TABLE events SYNC")
	if err := s.ensureSchema(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.commit(ctx, &a, now+time.Minute.Milliseconds()); err == nil || !strings.Contains(err.Error(), textRemade) {
		t.Errorf("the commit to the table of before: %v", err)
	}
	commitBlindly(t, s, &a) // as one that was checked a moment earlier
	rebuild(t, s, 150)
	checkRecords(t, s, 0)
}

// TestMissingColumn: a table without a column is refused, with what to do, at a start and in
// use; and that helps.
func TestMissingColumn(t *testing.T) {
	t.Parallel()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	s := openOptions(t, opts)
	appendRecords(t, s, 0, 0, 50)
	do(t, s, "ALTER TABLE events DROP COLUMN readable")
	if o, err := Open(context.Background(), opts); !errors.Is(err, ErrMissingColumn) || !strings.Contains(err.Error(), "the table events has no readable: DROP TABLE") {
		if err == nil {
			o.Close()
		}
		t.Fatalf("a start: %v", err)
	}
	do(t, s, "DROP TABLE events SYNC")
	rebuild(t, s, 80)
	checkRecords(t, s, 0)
}

// TestFirstSchema: what version 1 made goes on, and a table of it that is lost is made again.
func TestFirstSchema(t *testing.T) {
	t.Parallel()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	old := openOptions(t, opts)
	appendRecords(t, old, 0, 0, 100)
	for _, table := range rowTables {
		do(t, old, "ALTER TABLE "+table+" MODIFY COMMENT ''")
	}
	do(t, old, "DROP VIEW positions SYNC")
	do(t, old, "ALTER TABLE commits DROP COLUMN generation")
	do(t, old, `CREATE VIEW positions AS SELECT "partition", max(next_offset) AS next_offset FROM commits GROUP BY "partition"`)
	do(t, old, "TRUNCATE TABLE schema_versions")
	do(t, old, "INSERT INTO schema_versions (version) VALUES (1)")
	s := openOptions(t, opts)
	appendRecords(t, s, 0, 100, 150)
	if at := checkRecords(t, s, 0); at != 150 {
		t.Errorf("the position is %d", at)
	}
	do(t, s, "DROP TABLE transitions SYNC")
	again := openOptions(t, opts)
	if at, err := again.Position(context.Background(), 0); err != nil || at != 0 {
		t.Errorf("without transitions the position is %d (%v)", at, err)
	}
	rebuild(t, again, 150)
	checkRecords(t, again, 0)
}

// TestL2SweepAfterALoss: when commits was lost, an append under way may insert below where the
// position had been; the sweep leaves its rows alone.
func TestL2SweepAfterALoss(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	var w sweep
	appendRecords(t, s, 0, 0, 100)
	if err := w.run(ctx, s); err != nil {
		t.Fatal(err)
	}
	do(t, s, "TRUNCATE TABLE commits")
	appendRecords(t, s, 0, 0, 20)
	k, now, err := s.readCover(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := new(query.Batch)
	historytest.FillRecords(b, 0, 20, 60)
	a := addition{batch: b, writer: 77, from: 20, tables: k.tables}
	if err := s.insert(ctx, &a); err != nil {
		t.Fatal(err)
	}
	if err := w.run(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := s.commit(ctx, &a, now+time.Minute.Milliseconds()); err != nil {
		t.Fatal(err)
	}
	if at := checkRecords(t, s, 0); at != 60 {
		t.Errorf("the position is %d", at)
	}
}

// TestTablePutBack: what was committed to a table that was dropped, and is put back in the
// place of the empty one made meanwhile, counts again.
func TestTablePutBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 100)
	var text bytes.Buffer
	s.opts.Logger = slog.New(slog.NewTextHandler(&text, nil))
	do(t, s, "DROP TABLE events")
	if err := s.ensureSchema(ctx); err != nil {
		t.Fatal(err)
	}
	if at, err := s.Position(ctx, 0); err != nil || at != 0 {
		t.Fatalf("the position is %d (%v)", at, err)
	}
	for _, want := range []string{"names=[events]", "system.dropped_tables", "UNDROP TABLE events UUID"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log does not have %q: %s", want, text.String())
		}
	}
	putBack(t, s, "events")
	if at := checkRecords(t, s, 0); at != 100 {
		t.Errorf("the position is %d", at)
	}
}
