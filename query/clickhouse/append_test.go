package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestL2Overlap repeats and overlaps batches in every way, by two stores in
// turn; each record stays there once.
func TestL2Overlap(t *testing.T) {
	t.Parallel()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	stores := []*Store{openOptions(t, opts), openOptions(t, opts)}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 20 {
		s, partition := stores[rng.IntN(2)], rng.IntN(2)
		s.blockRows = 1 + rng.IntN(60)
		position, err := s.Position(context.Background(), partition)
		if err != nil {
			t.Fatal(err)
		}
		from := max(0, position-rng.Int64N(30))
		to := from + rng.Int64N(60)
		appendRecords(t, s, partition, from, to)
		if i%6 == 5 {
			if got := checkRecords(t, stores[rng.IntN(2)], partition); got != max(position, to) {
				t.Fatalf("position %d after %d and a batch to %d", got, position, to)
			}
		}
	}
	writers := scalar(t, stores[0], "SELECT count(DISTINCT writer) FROM commits")
	if commits := scalar(t, stores[0], "SELECT count() FROM commits"); writers < 4 || writers > commits {
		t.Fatalf("%d writers", writers)
	}
}

// TestL2OneWriterKeepsItsNumber: covers stay short as long as nothing happens.
func TestL2OneWriterKeepsItsNumber(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	for o := range int64(5) {
		appendRecords(t, s, 0, 10*o, 10*o+10)
	}
	if n := scalar(t, s, "SELECT count(DISTINCT writer) FROM commits"); n != 1 {
		t.Fatalf("%d writers", n)
	}
	checkRecords(t, s, 0)
}

// TestL2TieTakesANewNumber: when another writer has committed the same records
// and is the one who counts, a writer does not use its number on, though it ends
// where the cover does: what counts below must not change any more.
func TestL2TieTakesANewNumber(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 20)
	b := new(query.Batch)
	historytest.FillRecords(b, 0, 0, 20)
	greater := addition{batch: b, writer: math.MaxUint64}
	if err := s.insert(ctx, &greater); err != nil {
		t.Fatal(err)
	}
	commitBlindly(t, s, &greater)
	appendRecords(t, s, 0, 20, 40)
	c, _, err := s.readCover(ctx, 0)
	if err != nil || len(c.cover) != 2 || c.cover[0] != (span{math.MaxUint64, 0, 20}) {
		t.Fatalf("the cover became %v (%v)", c, err)
	}
	checkRecords(t, s, 0)
}

// TestL2Zombie: a writer is cut off at every step of an append and continues after
// others have appended; with its commit, in time or late, or without.
func TestL2Zombie(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	a, z := openOptions(t, opts), openOptions(t, opts)
	z.blockRows = 40
	for round := range 6 {
		appendRecords(t, z, 0, 0, int64(100*round)+10+int64(round)) // z has a number to continue with
		at := checkRecords(t, a, 0)
		b := new(query.Batch)
		historytest.FillRecords(b, 0, at, at+60)
		frozen := addition{batch: b, writer: z.partition(0).writer, from: at}
		z.partition(0).writer = 0
		if frozen.writer == 0 {
			t.Fatal("z has no number")
		}
		if err := z.insertEvents(ctx, &frozen, 0, b.Rows()/2); err != nil {
			t.Fatal(err)
		}
		checkRecords(t, a, 0)
		if round%2 == 0 {
			appendRecords(t, a, 0, at, at+20+int64(20*round))
			checkRecords(t, a, 0)
		}
		if err := z.insertEvents(ctx, &frozen, b.Rows()/2, b.Rows()); err != nil {
			t.Fatal(err)
		}
		if err := z.insertAliases(ctx, &frozen, b.Aliases); err != nil {
			t.Fatal(err)
		}
		if err := z.insertTransitions(ctx, &frozen, b.Transitions); err != nil {
			t.Fatal(err)
		}
		checkRecords(t, a, 0)
		switch round % 3 {
		case 0: // never committed
		case 1:
			commitBlindly(t, z, &frozen)
		case 2: // too late
			if err := z.commit(ctx, &frozen, time.Now().Add(-time.Minute).UnixMilli()); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("committed behind the fence: %v", err)
			}
		}
		for _, s := range []*Store{a, z} {
			checkRecords(t, s, 0)
		}
		appendRecords(t, a, 0, at, at+100)
		checkRecords(t, z, 0)
	}
}

// commitBlindly commits like a writer that read the others' commits just before the
// newest came.
func commitBlindly(t *testing.T, s *Store, a *addition) {
	t.Helper()
	if a.tables == (tables{}) {
		k, _, err := s.readCover(context.Background(), a.batch.Partition)
		if err != nil {
			t.Fatal(err)
		}
		a.tables = k.tables
	}
	err := s.exec(context.Background(), time.Minute, fmt.Sprintf(`INSERT INTO commits ("partition", writer, first_offset, next_offset, generation) VALUES (%d, %d, %d, %d, %s)`,
		a.batch.Partition, a.writer, a.from, a.batch.To, quote(a.tables.generation)))
	if err != nil {
		t.Fatal(err)
	}
}

// failing is a connection on which one statement on a table fails: before it is
// sent, or after it was carried out, when the answer is lost.
type failing struct {
	driver.Conn
	table string
	after bool
}

var errCut = errors.New("the connection was cut")

func (f *failing) Exec(ctx context.Context, sql string, args ...any) error {
	if !strings.HasPrefix(sql, "INSERT INTO "+f.table+" ") {
		return f.Conn.Exec(ctx, sql, args...)
	}
	f.table = ""
	if !f.after {
		return errCut
	}
	return errors.Join(f.Conn.Exec(ctx, sql, args...), errCut)
}

func (f *failing) PrepareBatch(ctx context.Context, sql string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if !strings.HasPrefix(sql, "INSERT INTO "+f.table+" ") {
		return f.Conn.PrepareBatch(ctx, sql, opts...)
	}
	f.table = ""
	if !f.after {
		return nil, errCut
	}
	b, err := f.Conn.PrepareBatch(ctx, sql, opts...)
	return cutBatch{b}, err
}

type cutBatch struct{ driver.Batch }

func (b cutBatch) Send() error { return errors.Join(b.Batch.Send(), errCut) }

// TestL2CutAtEachStep: an append fails at each of its statements, carried out or
// not; whatever batch is next, each record is there once. Appends before it, so
// that the writer has a number.
func TestL2CutAtEachStep(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	s.blockRows = 30
	cut := &failing{Conn: s.conn}
	s.conn = cut
	rng := rand.New(rand.NewPCG(51, 52))
	at := int64(0)
	for _, table := range []string{"events", "aliases", "transitions", "commits"} {
		for _, after := range []bool{false, true} {
			appendRecords(t, s, 0, at, at+20)
			at += 20
			cut.table, cut.after = table, after
			b := new(query.Batch)
			historytest.FillRecords(b, 0, at, at+40)
			if err := s.Append(context.Background(), b); !errors.Is(err, errCut) || !errors.Is(err, ErrUnavailable) {
				t.Fatalf("%s: %v", table, err)
			}
			if p := checkRecords(t, s, 0); p != at && (p != at+40 || table != "commits" || !after) {
				t.Fatalf("%s, carried out %t: position %d after %d", table, after, p, at)
			}
			to := at + 25 + rng.Int64N(40)
			appendRecords(t, s, 0, at, to)
			at = max(to, checkRecords(t, s, 0))
		}
	}
	if n := scalar(t, s, "SELECT count() FROM events") - scalar(t, s, "SELECT count() FROM stored_events"); n < 100 {
		t.Fatalf("%d rows of garbage", n)
	}
}

// TestL2RepeatedInsert: the same insert once more, as by a proxy, adds nothing.
func TestL2RepeatedInsert(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	b := new(query.Batch)
	historytest.FillRecords(b, 0, 0, 50)
	a := addition{batch: b, writer: 77}
	for range 2 {
		if err := s.insert(ctx, &a); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.commit(ctx, &a, time.Now().Add(time.Minute).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	checkRecords(t, s, 0)
}

func TestGapIsRefused(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 10)
	b := new(query.Batch)
	historytest.FillRecords(b, 0, 11, 20)
	if err := s.Append(context.Background(), b); !errors.Is(err, query.ErrGap) || !strings.Contains(err.Error(), "stands at 10") {
		t.Fatalf("got %v", err)
	}
	b.From, b.To = 5, 1
	if err := s.Append(context.Background(), b); !errors.Is(err, query.ErrBadBatch) {
		t.Fatalf("got %v", err)
	}
	if err := s.Append(context.Background(), &query.Batch{From: 10, To: 12}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Position(context.Background(), 0); p != 12 || err != nil {
		t.Fatal(p, err)
	}
}

// TestSweep removes what no query sees, and nothing else: rows of appends that
// were never completed once they are old, rows that were erased, also when they
// come again.
func TestSweep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 100)
	garbage := new(query.Batch)
	historytest.FillRecords(garbage, 0, 100, 200)
	under := addition{batch: garbage, writer: 5, from: 100}
	if err := s.insert(ctx, &under); err != nil {
		t.Fatal(err)
	}
	appendRecords(t, s, 0, 100, 150)
	var all query.Batch
	historytest.FillRecords(&all, 0, 0, 150)
	physical := func() string {
		return fmt.Sprint(scalar(t, s, "SELECT count() FROM events"), scalar(t, s, "SELECT count() FROM aliases"), scalar(t, s, "SELECT count() FROM transitions"))
	}
	want := fmt.Sprint(all.Rows(), len(all.Aliases), len(all.Transitions))
	before := physical()
	var w sweep
	if err := w.run(ctx, s); err != nil || physical() != before || before == want {
		t.Fatalf("the first look changed %s to %s, all is %s (%v)", before, physical(), want, err)
	}
	// What was above the position then may be under way.
	if err := w.run(ctx, s); err != nil || physical() == want {
		t.Fatalf("what is above the position was removed (%v)", err)
	}
	checkRecords(t, s, 0)
	appendRecords(t, s, 0, 150, 300)
	for range 2 {
		if err := w.run(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	historytest.FillRecords(&all, 0, 0, 300)
	if want := fmt.Sprint(all.Rows(), len(all.Aliases), len(all.Transitions)); physical() != want {
		t.Fatalf("%s rows, want %s", physical(), want)
	}
	checkRecords(t, s, 0)

	gone := query.EraseQuery{Cut: query.Cut{UpTo: 300}, Account: 7, Ordinals: []uint32{11, 12, 13, 14, 15}}
	if err := s.Erase(ctx, gone); err != nil {
		t.Fatal(err)
	}
	left := physical()
	late := addition{batch: &all, writer: 6}
	if err := s.insert(ctx, &late); err != nil {
		t.Fatal(err)
	}
	parts := func() int64 {
		return scalar(t, s, "SELECT sum(rows) FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active")
	}
	if err := w.run(ctx, s); err != nil {
		t.Fatal(err)
	}
	if physical() != left || fmt.Sprint(parts()) != strings.Fields(left)[0] {
		t.Fatalf("%s rows, %d in parts, want %s", physical(), parts(), left)
	}
	if n := scalar(t, s, "SELECT count() FROM events WHERE ordinal BETWEEN 11 AND 15"); n != 0 {
		t.Fatalf("%d rows of an erased profile", n)
	}
}
