package duckdb

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/columns"
	"github.com/musterhq/muster/segment"
)

// openColumned opens a store with columns whose files are only made when the test says
// so.
func openColumned(t testing.TB, path string, groupRows int) *Store {
	t.Helper()
	s, err := Open(path, Options{Columns: true})
	if err != nil {
		t.Fatal(err)
	}
	s.groupRows, s.pieceRows = groupRows, groupRows
	return s
}

// match is an event of an answer.
type match struct {
	ordinal uint32
	timeMs  int64
	micros  int64
}

func gatherMatches(t testing.TB, q query.MatchQuery, ask func(context.Context, query.MatchQuery, func(*query.MatchBlock) error) error) (out []match) {
	t.Helper()
	err := ask(context.Background(), q, func(b *query.MatchBlock) error {
		for i := range b.Ordinal {
			m := match{b.Ordinal[i], b.TimeMs[i], 0}
			if q.As == query.AsMicros {
				m.micros = b.Micros[i]
			}
			out = append(out, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(x, y match) int {
		return cmp.Or(cmp.Compare(x.ordinal, y.ordinal), cmp.Compare(x.timeMs, y.timeMs), cmp.Compare(x.micros, y.micros))
	})
	return out
}

// gatherReplay is the same of a replay.
func gatherReplay(t testing.TB, s *Store, q query.MatchQuery) []match {
	t.Helper()
	r := query.ReplayQuery{Cut: q.Cut, Account: q.Account, EventType: q.EventType, AfterMs: q.AfterMs, Where: q.Where, Number: q.Value}
	return gatherMatches(t, q, func(ctx context.Context, _ query.MatchQuery, fn func(*query.MatchBlock) error) error {
		return s.Replay(ctx, r, func(b *query.ReplayBlock) error {
			return fn(&query.MatchBlock{Ordinal: b.Ordinal, TimeMs: b.TimeMs, Micros: b.Micros})
		})
	})
}

// columnWorld appends, merges and erases at random.
type columnWorld struct {
	t    *testing.T
	rng  *rand.Rand
	s    *Store
	next int64
	gone map[uint32]bool
	// merged are the profiles merged into one, by that one.
	merged map[uint32][]uint32
}

const worldOrdinals = 60

func (w *columnWorld) value() string {
	rng := w.rng
	return []string{"null", "true", "false", "0", "-0", "2.5", "1e-7", "1234567.1234565", "1e13", `"a"`, `"b"`, `"ab"`, `"a\"b"`, `"ä\n"`, `"2.5"`,
		`"2025-01-01"`, `[]`, `["a","b"]`, `[2.5,"a",null]`, `{}`, `{"x":1,"y":{"x":"a"}}`, strconv.Itoa(rng.IntN(2000)), fmt.Sprintf("%d.%02d", rng.IntN(100), rng.IntN(100))}[rng.IntN(23)]
}

// object is properties in canonical text: keys in any order, each once.
func (w *columnWorld) object() string {
	if w.rng.IntN(8) == 0 {
		return ""
	}
	text := ""
	for _, k := range w.rng.Perm(len(worldKeys))[:w.rng.IntN(5)] {
		if text != "" {
			text += ","
		}
		text += worldKeys[k] + ":" + w.value()
	}
	if w.rng.IntN(6) == 0 {
		if text != "" {
			text += ","
		}
		text += fmt.Sprintf(`"unlike":%q`, fmt.Sprintf("%0200d", w.rng.Int64())) // too many different values
	}
	return "{" + text + "}"
}

var worldKeys = []string{`"v"`, `"s"`, `"n.1"`, `"7"`, `"a/b"`, `"q\"k"`}

func (w *columnWorld) append(records int) {
	b := &query.Batch{From: w.next, To: w.next + int64(records)}
	for o := b.From; o < b.To; o++ {
		for i := range w.rng.IntN(4) {
			ordinal := uint32(w.rng.IntN(worldOrdinals))
			if w.gone[ordinal] {
				continue
			}
			b.Account, b.Offset, b.Index = append(b.Account, uint64(1+w.rng.IntN(2))), append(b.Offset, o), append(b.Index, uint32(i))
			at := 1000*o + w.rng.Int64N(1000)
			switch w.rng.IntN(20) {
			case 0:
				at = w.rng.Int64N(at + 1) // late
			case 1:
				at -= 1 << 33 // beyond what four bytes hold
			}
			b.Ordinal, b.TimeMs = append(b.Ordinal, ordinal), append(b.TimeMs, at)
			b.EventType.Append([]byte(fmt.Sprintf("t%d", w.rng.IntN(3))))
			b.Properties.Append([]byte(w.object()))
			b.IdempotencyKey.Append(nil)
		}
	}
	if w.rng.IntN(4) == 0 {
		winner, merged := uint32(w.rng.IntN(worldOrdinals)), uint32(w.rng.IntN(worldOrdinals))
		if winner != merged && !w.gone[winner] && !w.gone[merged] && len(w.gone) < worldOrdinals/2 {
			w.gone[merged] = true
			for _, o := range append(w.merged[merged], merged) {
				b.Aliases = append(b.Aliases, query.Alias{Account: 1, Offset: b.To - 1, Ordinal: o, Winner: winner})
				w.merged[winner] = append(w.merged[winner], o)
			}
		}
	}
	if err := w.s.Append(context.Background(), b); err != nil {
		w.t.Fatal(err)
	}
	w.next = b.To
}

func (w *columnWorld) erase() {
	o := uint32(w.rng.IntN(worldOrdinals))
	w.gone[o] = true
	w.s.changing.Lock()
	w.s.nextRewrite = w.s.nextRewrite.Add(-1 << 50) // the pace is not what is tested
	w.s.changing.Unlock()
	if err := w.s.Erase(context.Background(), query.EraseQuery{Cut: query.Cut{UpTo: w.next}, Account: 1, Ordinals: append([]uint32{o}, w.merged[o]...)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *columnWorld) question() query.MatchQuery {
	rng := w.rng
	q := query.MatchQuery{Cut: query.Cut{UpTo: w.next}, Account: uint64(1 + rng.IntN(2)), EventType: fmt.Sprintf("t%d", rng.IntN(3))}
	switch rng.IntN(6) {
	case 0:
		q.Cut.UpTo = rng.Int64N(w.next + 1)
	case 1:
		q.From = rng.Int64N(w.next + 1)
	case 2:
		q.To = rng.Int64N(w.next + 1)
	}
	if rng.IntN(3) == 0 {
		after := 1000 * rng.Int64N(w.next+1)
		q.AfterMs = &after
	}
	if rng.IntN(3) == 0 {
		until := 1000 * rng.Int64N(w.next+1)
		q.UntilMs = &until
	}
	for range rng.IntN(3) {
		q.Where = append(q.Where, worldFilters[rng.IntN(len(worldFilters))])
	}
	if rng.IntN(2) == 0 {
		q.As, q.Value = query.AsMicros, worldPaths[rng.IntN(len(worldPaths))]
	}
	return q
}

var worldPaths = [][]string{{"v"}, {"s"}, {"n.1"}, {"7"}, {"a/b"}, {`q"k`}, {"v", "x"}, {"s", "y", "x"}, {"never"}, {"unlike"}}

var worldFilters = func() (out []segment.Predicate) {
	text := func(s string) segment.Value { return segment.Value{Kind: segment.ValueString, Str: s} }
	number := func(f float64) segment.Value { return segment.Value{Kind: segment.ValueNumber, Num: f} }
	for _, p := range worldPaths {
		for _, x := range []segment.Predicate{
			{Op: segment.OpExists}, {Op: segment.OpNotExists},
			{Op: segment.OpEq, Values: []segment.Value{text("a")}}, {Op: segment.OpNe, Values: []segment.Value{text("a")}},
			{Op: segment.OpEq, Values: []segment.Value{number(2.5)}}, {Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueBool, Bool: true}}},
			{Op: segment.OpIn, Values: []segment.Value{text("b"), number(0)}}, {Op: segment.OpNotIn, Values: []segment.Value{text("b"), number(0)}},
			{Op: segment.OpGt, Values: []segment.Value{number(50)}}, {Op: segment.OpLe, Values: []segment.Value{number(50)}},
			{Op: segment.OpBetween, Values: []segment.Value{number(0), number(900)}}, {Op: segment.OpGe, Values: []segment.Value{text("ab")}},
			{Op: segment.OpContains, Values: []segment.Value{text("b")}}, {Op: segment.OpNotContains, Values: []segment.Value{text("b")}},
			{Op: segment.OpStartsWith, Values: []segment.Value{text("a")}}, {Op: segment.OpEndsWith, Values: []segment.Value{text("b")}},
			{Op: segment.OpBefore, TimeMs: 1_800_000_000_000}, {Op: segment.OpAfter, TimeMs: 1_700_000_000_000},
		} {
			x.Path = p
			if x.Op == segment.OpBefore || x.Op == segment.OpAfter {
				x.Values = []segment.Value{text("2027-01-15")}
			}
			out = append(out, x)
		}
	}
	return out
}()

// TestS1ColumnsEqualTables: whatever was appended, merged, erased, put into files and lost
// of them, the columns answer as the tables. MUSTER_SEED is the seed.
func TestS1ColumnsEqualTables(t *testing.T) {
	t.Parallel()
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("MUSTER_SEED=%d", seed)
	path := t.TempDir() + "/h.duckdb"
	w := &columnWorld{t: t, rng: rand.New(rand.NewPCG(seed, 5)), gone: map[uint32]bool{}, merged: map[uint32][]uint32{}}
	w.s = openColumned(t, path, 40)
	defer func() {
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
	}()
	steps := testlevel.Count(30, 60)
	whole, found, happened := 0, 0, map[string]int{}
	for step := range steps {
		switch n := w.rng.IntN(12); {
		case n < 7:
			w.append(1 + w.rng.IntN(40))
		case n < 9 && w.next > 0:
			// One file after another, or some of them.
			for range 1 + w.rng.IntN(12) {
				more, err := w.s.buildColumns(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if !more {
					break
				}
			}
			happened["built"]++
		case n == 9 && w.rng.IntN(3) == 0 && len(w.gone) < worldOrdinals/2:
			w.erase()
			happened["erased"]++
		case n == 10 && w.rng.IntN(3) == 0:
			if err := w.s.Close(); err != nil {
				t.Fatal(err)
			}
			if w.rng.IntN(2) == 0 {
				if err := damageOne(w.rng, path+ColumnsSuffix); err != nil {
					t.Fatal(err)
				}
				happened["damaged"]++
			}
			w.s = openColumned(t, path, 40)
			happened["opened"]++
		case n == 11 && w.rng.IntN(2) == 0 && w.s.columns.set.Seal(0, 1):
			happened["sealed"]++ // and not yet written
		case n == 11:
			files := w.s.columns.set.Files(0)
			if len(files) < 2 {
				break
			}
			from := w.rng.IntN(len(files) - 1)
			joined, err := w.s.columns.set.Join(context.Background(), 0, files[from].From, files[from+1+w.rng.IntN(len(files)-from-1)].To)
			if err != nil {
				t.Fatal(err)
			}
			if joined {
				happened["joined"]++
			}
		}
		for range 12 {
			q := w.question()
			if !columns.Answers(&q) {
				t.Fatalf("not answered: %+v", q)
			}
			if w.s.columns.set.Whole(&q) {
				whole++
			}
			got, want := gatherMatches(t, q, w.s.Matches), gatherMatches(t, q, w.s.matchTables)
			found += len(want)
			if !slices.Equal(got, want) {
				t.Fatalf("S1: step %d, MUSTER_SEED=%d, %+v: columns have %d events, tables %d\n%v\n%v", step, seed, q, len(got), len(want), got, want)
			}
			if q.From, q.To, q.UntilMs = 0, 0, nil; !slices.Equal(gatherReplay(t, w.s, q), gatherMatches(t, q, w.s.matchTables)) {
				t.Fatalf("S1: step %d, MUSTER_SEED=%d, %+v: a replay differs from the tables", step, seed, q)
			}
			for _, m := range want {
				if q.Account == 1 && q.Cut.UpTo == w.next && w.gone[m.ordinal] {
					t.Fatalf("profile %d is gone", m.ordinal)
				}
			}
		}
	}
	t.Logf("%d of %d questions from columns alone, %d events found, %v, files %v", whole, 12*steps, found, happened, w.s.columns.set.Files(0))
	if whole < 3*steps || found < 1000 || happened["built"] == 0 || seed == 1 && !testlevel.Quick() && happened["joined"] == 0 {
		t.Error("that tells nothing")
	}
}

// damageOne changes a byte of a file of columns, or cuts one off.
func damageOne(rng *rand.Rand, dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil || len(names) == 0 {
		return err
	}
	path := dir + "/" + names[rng.IntN(len(names))].Name()
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if rng.IntN(3) == 0 {
		b = b[:rng.IntN(len(b))]
	} else {
		b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
	}
	return os.WriteFile(path, b, 0o600)
}

// openSteady opens a store with columns that only the test brings up to the newest row.
func openSteady(t *testing.T) *Store {
	t.Helper()
	s := openColumned(t, t.TempDir()+"/h.duckdb", 1000)
	s.columns.end()
	<-s.columns.done
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// steadyBatch has an event of another profile in each record.
func steadyBatch(from, to int64) *query.Batch {
	b := &query.Batch{From: from, To: to}
	for o := from; o < to; o++ {
		b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, o), append(b.Index, 0)
		b.Ordinal, b.TimeMs = append(b.Ordinal, uint32(o)), append(b.TimeMs, o)
		b.EventType.Append([]byte("t"))
		b.Properties.Append([]byte(`{"v":1}`))
		b.IdempotencyKey.Append(nil)
	}
	return b
}

func mustAppend(t *testing.T, s *Store, b *query.Batch) {
	t.Helper()
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// mustBuild makes memory have all rows.
func mustBuild(t *testing.T, s *Store) {
	t.Helper()
	if more, err := s.buildColumns(t.Context()); err != nil || more {
		t.Fatal(more, err)
	}
}

// answersAsTables compares what columns and tables say of all events below a cut.
func answersAsTables(t *testing.T, s *Store, upTo int64) {
	t.Helper()
	q := query.MatchQuery{Cut: query.Cut{UpTo: upTo}, Account: 1, EventType: "t"}
	if got, want := gatherMatches(t, q, s.Matches), gatherMatches(t, q, s.matchTables); !slices.Equal(got, want) {
		t.Errorf("below %d columns have\n%v, tables\n%v", upTo, got, want)
	}
}

// TestColumnsAfterCommitThatWasStored: where a commit fails and is stored all the same,
// columns have its events and merges. A full disk was not seen to cause that: where DuckDB
// cannot move its write-ahead log within a commit, it has not written the batch there.
func TestColumnsAfterCommitThatWasStored(t *testing.T) {
	t.Parallel()
	events := steadyBatch(10, 15)
	merge := &query.Batch{From: 10, To: 15, Aliases: []query.Alias{{Account: 1, Offset: 14, Ordinal: 2, Winner: 3}}}
	for name, b := range map[string]*query.Batch{"events": events, "a merge": merge} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSteady(t)
			mustAppend(t, s, steadyBatch(0, 10))
			mustBuild(t, s)
			answersAsTables(t, s, 10)
			// An append whose commit fails does nothing after it but this.
			s.writer.Lock()
			err := s.store(t.Context(), &addition{batch: b, known: true, aliases: b.Aliases})
			s.writer.stored = nil
			s.writer.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, s, b) // as the feed tries again
			answersAsTables(t, s, 15)
			mustBuild(t, s)
			answersAsTables(t, s, 15)
			if lag, _, known := s.columns.lag(0); lag != 0 || !known {
				t.Errorf("%d rows are not in memory, known: %v", lag, known)
			}
		})
	}
}

// TestColumnsCountedTwice: memory is not taken for complete where rows were counted twice,
// by a question that read them and in the background.
func TestColumnsCountedTwice(t *testing.T) {
	t.Parallel()
	s := openSteady(t)
	mustAppend(t, s, steadyBatch(0, 10))
	mustBuild(t, s)
	mustAppend(t, s, steadyBatch(10, 15))
	// A question reads the rows, and before it counts them all this happens.
	read := int64(0)
	if err := s.extendColumns(t.Context(), 0, 15, &read); err != nil || read != 5 {
		t.Fatal(read, err)
	}
	mustBuild(t, s)
	mustAppend(t, s, steadyBatch(15, 18))
	s.columns.readRows(read)
	answersAsTables(t, s, 18)
}

// TestColumnsPassOverRecordsWithoutRows: memory goes on over records without rows, however
// many rows of another partition are not in memory.
func TestColumnsPassOverRecordsWithoutRows(t *testing.T) {
	t.Parallel()
	s := openSteady(t)
	mustAppend(t, s, steadyBatch(0, 10))
	mustBuild(t, s)
	other := steadyBatch(0, 10)
	other.Partition = 1
	mustAppend(t, s, other)
	mustAppend(t, s, &query.Batch{From: 10, To: 12})
	answersAsTables(t, s, 12)
	if to := s.columns.set.MemoryTo(0); to != 12 {
		t.Errorf("memory ends at %d", to)
	}
	// Those with rows are read.
	mustAppend(t, s, steadyBatch(12, 14))
	answersAsTables(t, s, 14)
	if to := s.columns.set.MemoryTo(0); to != 14 {
		t.Errorf("memory ends at %d", to)
	}
}

// TestColumnsForgetTwice: events that a question has read into memory while they are
// erased are not there after it.
func TestColumnsForgetTwice(t *testing.T) {
	t.Parallel()
	s := openSteady(t)
	mustAppend(t, s, steadyBatch(0, 10))
	mustBuild(t, s)
	q := query.EraseQuery{Cut: query.Cut{UpTo: 10}, Account: 1, Ordinals: []uint32{3}}
	again, err := s.columns.forget(&q)
	if err != nil {
		t.Fatal(err)
	}
	// A question that was to read into memory before goes on now.
	if err := s.extendColumns(t.Context(), 0, 10, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.eraseRows(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	again()
	if to := s.columns.set.MemoryTo(0); to != 0 {
		t.Errorf("memory has events up to %d", to)
	}
	answersAsTables(t, s, 10)
	mustBuild(t, s)
	answersAsTables(t, s, 10)
}

// wholeAsTables is answersAsTables where columns have everything.
func wholeAsTables(t *testing.T, s *Store, upTo int64) {
	t.Helper()
	if q := (query.MatchQuery{Cut: query.Cut{UpTo: upTo}, Account: 1, EventType: "t"}); !s.columns.set.Whole(&q) {
		t.Errorf("columns do not have all events below %d", upTo)
	}
	answersAsTables(t, s, upTo)
}

// TestColumnsOfMemory: memory that has as many events as a file should becomes one, without the
// tables being read again. Questions find its events before it is written, while that fails, and
// after it.
func TestColumnsOfMemory(t *testing.T) {
	t.Parallel()
	s := openSteady(t)
	set := s.columns.set
	mustAppend(t, s, steadyBatch(0, 900))
	mustBuild(t, s)
	if set.Seal(0, s.groupRows) {
		t.Error("900 events are sealed, of 1,000")
	}
	mustAppend(t, s, steadyBatch(900, 1500))
	mustBuildMore(t, s)
	if files := set.Files(0); len(files) != 0 {
		t.Fatalf("files %v are made of events that memory is to have first", files)
	}
	dir := s.path + ColumnsSuffix
	temp := fmt.Sprintf("%s/0-%016x-%016x.col.tmp", dir, 0, 1500)
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, upTo := range []int64{1500, 1550} {
		if upTo > 1500 {
			mustAppend(t, s, steadyBatch(1500, upTo))
			if err := s.extendColumns(t.Context(), 0, upTo, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.buildColumns(t.Context()); err == nil {
			t.Fatal("a file is made where it cannot be")
		}
		wholeAsTables(t, s, upTo)
	}
	// Memory does not grow while it cannot become a file.
	mustAppend(t, s, steadyBatch(1550, 1600))
	answersAsTables(t, s, 1600)
	if to := set.MemoryTo(0); to != 1550 {
		t.Errorf("memory has events up to %d", to)
	}
	if err := s.extendColumns(t.Context(), 0, 1600, nil); err != nil {
		t.Fatal(err)
	}
	for _, upTo := range []int64{700, 1500, 1550, 1600} {
		wholeAsTables(t, s, upTo)
	}
	if err := os.Remove(temp); err != nil {
		t.Fatal(err)
	}
	if more, err := s.buildColumns(t.Context()); err != nil || !more {
		t.Fatal(more, err)
	}
	if files, memory := set.Files(0), set.Memory(0); !slices.Equal(files, []columns.Range{{From: 0, To: 1500, Rows: 1500}}) || memory != (columns.Range{From: 1500, To: 1600, Rows: 100}) {
		t.Errorf("files %v, memory %v", files, memory)
	}
	for _, upTo := range []int64{1500, 1550, 1600} {
		wholeAsTables(t, s, upTo)
	}
	mustBuild(t, s)
	if files := set.Files(0); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// TestColumnsOfMemoryOfPartitions: memory of several partitions becomes files once it has as many
// events of all together as a file of one should.
func TestColumnsOfMemoryOfPartitions(t *testing.T) {
	t.Parallel()
	s := openSteady(t)
	for partition := range 2 {
		b := steadyBatch(0, 499+2*int64(partition))
		b.Partition = partition
		mustAppend(t, s, b)
	}
	mustBuildAll(t, s)
	if files, other := s.columns.set.Files(0), s.columns.set.Files(1); len(files) != 0 || !slices.Equal(other, []columns.Range{{From: 0, To: 501, Rows: 501}}) {
		t.Errorf("files %v and %v", files, other)
	}
	answersAsTables(t, s, 499)
}

// openSealed opens a store whose first 1,000 events are sealed, and not yet written.
func openSealed(t *testing.T) *Store {
	t.Helper()
	s := openSteady(t)
	mustAppend(t, s, steadyBatch(0, 1000))
	mustBuildMore(t, s)
	if !s.columns.set.Seal(0, 1000) {
		t.Fatal("not sealed")
	}
	return s
}

// TestColumnsOfMemoryBehindAFile: a file of the tables that ends within what is sealed takes its
// place, and so does one that ends with it.
func TestColumnsOfMemoryBehindAFile(t *testing.T) {
	t.Parallel()
	for _, to := range []int64{600, 1000, 1200} {
		s := openSealed(t)
		mustAppend(t, s, steadyBatch(1000, 1400))
		answersAsTables(t, s, 1400) // memory has them
		if err := s.buildFile(t.Context(), 0, []int64{0, to}); err != nil {
			t.Fatal(err)
		}
		answersAsTables(t, s, 1400)
		mustBuildAll(t, s)
		wholeAsTables(t, s, 1400)
	}
}

// mustBuildMore makes memory have all rows, which are enough for a file.
func mustBuildMore(t *testing.T, s *Store) {
	t.Helper()
	if more, err := s.buildColumns(t.Context()); err != nil || !more {
		t.Fatal(more, err)
	}
}

// TestColumnsWhileQuestionsRead: memory becomes files also where each question reads what is
// newest, so that never many rows are missing in memory.
func TestColumnsWhileQuestionsRead(t *testing.T) {
	t.Parallel()
	s := openColumned(t, t.TempDir()+"/h.duckdb", 1000)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	next := int64(0)
	eventually.Holds(t, "memory becomes files", func() bool {
		mustAppend(t, s, steadyBatch(next, next+500))
		next += 500
		answersAsTables(t, s, next)
		return len(s.columns.set.Files(0)) > 2
	})
}

// TestColumnsOfExpectedQuestions: columns are not made before a question, and are made when
// one is expected.
func TestColumnsOfExpectedQuestions(t *testing.T) {
	t.Parallel()
	s := openColumned(t, t.TempDir()+"/h.duckdb", 100)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	mustAppend(t, s, steadyBatch(0, 1000))
	if s.columns.wanted() {
		t.Error("columns are made before anybody asks")
	}
	s.ExpectQuestions()
	eventually.Holds(t, "files", func() bool { return len(s.columns.set.Files(0)) > 0 })
}

// TestSmallFilesBecomeOne: files of like size do, and not one with few others, whose rows would be
// read again for each of those.
func TestSmallFilesBecomeOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows []int
		want bool
	}{
		{[]int{100, 100, 100, 100, 100, 100, 100, 100}, true},
		{[]int{200, 100, 100, 100, 100, 100, 100, 100}, true},
		{[]int{201, 200, 200, 200, 200, 200, 200, 200}, false}, // of two row groups and more
		{[]int{80, 10, 10, 10, 10, 10, 10, 10}, false},
		{[]int{80, 80, 80, 80, 10, 10, 10, 10}, true},
	} {
		var files []columns.Range
		at := int64(0)
		for _, n := range c.rows {
			files = append(files, columns.Range{From: at, To: at + int64(n), Rows: n})
			at += int64(n)
		}
		got := nextFile(files, columns.Range{From: at, To: at}, []int64{at}, at, 100)
		if (got != nil) != c.want {
			t.Errorf("files of %v rows become %v", c.rows, got)
		}
	}
}

// mustBuildAll makes all files that are due, and memory have the rest.
func mustBuildAll(t *testing.T, s *Store) {
	t.Helper()
	for range 100 {
		if more, err := s.buildColumns(t.Context()); err != nil {
			t.Fatal(err)
		} else if !more {
			return
		}
	}
	t.Fatal("there is always more to build")
}

// TestColumnsForgetWhatIsSealed: an erasure removes what is sealed with events of the account.
func TestColumnsForgetWhatIsSealed(t *testing.T) {
	t.Parallel()
	for _, account := range []uint64{1, 2} {
		s := openSealed(t)
		mustAppend(t, s, steadyBatch(1000, 1010))
		answersAsTables(t, s, 1010)
		if err := s.Erase(t.Context(), query.EraseQuery{Cut: query.Cut{UpTo: 1010}, Account: account, Ordinals: []uint32{3, 1005}}); err != nil {
			t.Fatal(err)
		}
		if have := s.columns.set.MemoryTo(0); (have == 0) != (account == 1) {
			t.Errorf("account %d is erased from, and columns have events up to %d", account, have)
		}
		mustBuildAll(t, s)
		wholeAsTables(t, s, 1010)
		q := query.MatchQuery{Cut: query.Cut{UpTo: 1010}, Account: 1, EventType: "t"}
		if got := gatherMatches(t, q, s.Matches); len(got) != 1010-2*int(2-account) {
			t.Errorf("account %d is erased from: %d events", account, len(got))
		}
	}
}

// TestReplayOfColumnsStops: after the context has ended a replay calls no more, also within a
// file and in memory.
func TestReplayOfColumnsStops(t *testing.T) {
	t.Parallel()
	s := openSteady(t)
	for at := range int64(20) {
		mustAppend(t, s, steadyBatch(2000*at, 2000*at+2000))
	}
	q := query.ReplayQuery{Cut: query.Cut{UpTo: 40_000}, Account: 1, EventType: "t"}
	for _, where := range []string{"memory", "files"} {
		if where == "memory" {
			if err := s.extendColumns(t.Context(), 0, 40_000, nil); err != nil {
				t.Fatal(err)
			}
		} else {
			for more := true; more; { // several files
				var err error
				if more, err = s.buildColumns(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if m := q.Matching(); !s.columns.set.Whole(&m) {
			t.Fatalf("%s: columns do not have all", where)
		}
		for stopAt := range 3 {
			t.Logf("%s, block %d", where, stopAt+1)
			endsWithItsContext(t, s, q, stopAt)
		}
	}
}
