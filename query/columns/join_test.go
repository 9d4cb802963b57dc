package columns

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// joinEvent is an event as history has it: the record of that place in a slice.
type joinEvent struct {
	account    uint64
	eventType  string
	ordinal    uint32
	timeMs     int64
	properties []byte
}

// joinWorld makes events at random. Of keys some have few values, some one for each event, some
// long ones, and some are in few events; there can be more of them than a group keeps.
type joinWorld struct {
	rng  *rand.Rand
	keys int
	from int  // the first keys are in no event of a file
	few  bool // all keys have few values
	odd  int  // of so many events one has properties that cannot be read, or a text that is too long
}

func (w *joinWorld) event() joinEvent {
	rng := w.rng
	var p strings.Builder
	p.WriteByte('{')
	for k := w.from; k < w.keys; k++ {
		if k%3 == 1 && rng.IntN(4) > 0 || k%7 == 6 && rng.IntN(50) > 0 {
			continue
		}
		if p.Len() > 1 {
			p.WriteByte(',')
		}
		kind := k % 5
		if w.few {
			kind = 0
		}
		switch kind {
		case 0:
			fmt.Fprintf(&p, `"k%d":%d`, k, rng.IntN(5))
		case 1:
			fmt.Fprintf(&p, `"k%d":"%0*d"`, k, 300*rng.IntN(2), rng.Int64()) // unlike all others
		case 2:
			fmt.Fprintf(&p, `"k%d":"%0400d"`, k, rng.IntN(300)) // too many for few events
		case 3:
			fmt.Fprintf(&p, `"k%d":%d.5`, k, rng.IntN(1000))
		default:
			fmt.Fprintf(&p, `"k%d":null`, k)
		}
	}
	if w.odd > 0 && rng.IntN(w.odd) == 0 {
		fmt.Fprintf(&p, `,"k0":"%02000d"`, 1) // valueBytes
	}
	p.WriteByte('}')
	text := []byte(p.String())
	if w.odd > 0 && rng.IntN(4*w.odd) == 0 {
		text = []byte(`{"k0":`)
	}
	return joinEvent{uint64(1 + rng.IntN(2)), []string{"bought", "seen", "seen", "seen"}[rng.IntN(4)], uint32(rng.IntN(50)), rng.Int64N(1 << (10 + 30*int64(rng.IntN(2)))), text}
}

// ask is what a set answers, and of what it leaves to history what the events say; whole tells
// that it left nothing.
func ask(t *testing.T, s *Set, events []joinEvent, q query.MatchQuery) (got []string, whole bool) {
	t.Helper()
	whole = true
	err := s.Matches(context.Background(), &q, nil, func(from, to int64) error {
		whole = false
		got = append(got, naive(events, q, from, to)...)
		return nil
	}, func(b *query.MatchBlock) error {
		for i, o := range b.Ordinal {
			got = append(got, fmt.Sprint(o, b.TimeMs[i], b.Micros[i]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	return got, whole
}

// naive is what events say, in order.
func naive(events []joinEvent, q query.MatchQuery, from, to int64) (out []string) {
	for _, e := range events[from:to] {
		pass := e.account == q.Account && e.eventType == q.EventType
		for i := range q.Where {
			raw, _ := rawjson.Lookup(e.properties, q.Where[i].Path)
			pass = pass && q.Where[i].MatchValue(raw, 0)
		}
		if !pass {
			continue
		}
		micros := int64(query.NoMicros)
		if raw, ok := rawjson.Lookup(e.properties, q.Value); ok {
			if m, ok := segment.MicrosOfJSON(raw); ok {
				micros = m
			}
		}
		out = append(out, fmt.Sprint(e.ordinal, e.timeMs, micros))
	}
	slices.Sort(out)
	return out
}

// openEmpty opens a set without files, and closes it when the test ends.
func openEmpty(t testing.TB) *Set {
	t.Helper()
	s, err := Open(t.TempDir(), "log", nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestJoinedFilesAnswerAsBefore: files that became one answer as their events say; a key that
// has few values is answered without history, as it was.
func TestJoinedFilesAnswerAsBefore(t *testing.T) {
	t.Parallel()
	joinedSets, unread, lost := 0, 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := &joinWorld{rng: rng, keys: []int{1, 6, 30, 90}[rng.IntN(4)], few: rng.IntN(2) == 0, odd: []int{0, 0, 300}[rng.IntN(3)]}
		s := openEmpty(t)
		var events []joinEvent
		for range 2 + rng.IntN(4) {
			b, from := NewBuilder(), len(events)
			w.from = rng.IntN(1 + w.keys/2)
			for range 1 + rng.IntN(400) {
				e := w.event()
				b.Add(e.account, []byte(e.eventType), int64(len(events)), e.ordinal, e.timeMs, e.properties)
				events = append(events, e)
			}
			if err := s.Add(0, int64(from), int64(len(events)), b); err != nil {
				t.Fatal(err)
			}
		}
		questions := make([]query.MatchQuery, 16)
		before := make([]bool, len(questions))
		for i := range questions {
			questions[i] = query.MatchQuery{Account: uint64(1 + rng.IntN(2)), Cut: query.Cut{UpTo: int64(len(events))}, EventType: []string{"bought", "seen"}[rng.IntN(2)],
				As: query.AsMicros, Value: []string{fmt.Sprintf("k%d", rng.IntN(w.keys+1))},
				Where: []segment.Predicate{{Path: []string{fmt.Sprintf("k%d", rng.IntN(w.keys+1))}, Op: segment.OpExists}}}
			_, before[i] = ask(t, s, events, questions[i])
		}
		joined, err := s.Join(context.Background(), 0, 0, int64(len(events)))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.Files(0)); joined != (n == 1) {
			t.Fatalf("seed %d: joined: %v, %d files", seed, joined, n)
		}
		if joined {
			joinedSets++
			if n := s.Files(0)[0].Rows; n != len(events) {
				t.Fatalf("seed %d: %d events of %d", seed, n, len(events))
			}
		}
		for i, q := range questions {
			got, whole := ask(t, s, events, q)
			if want := naive(events, q, 0, int64(len(events))); !slices.Equal(got, want) {
				t.Fatalf("seed %d, joined: %v, %+v: %d events, want %d", seed, joined, q, len(got), len(want))
			}
			few := func(path []string) bool { return strings.HasSuffix(path[0], "0") || strings.HasSuffix(path[0], "5") }
			switch {
			case !joined || !before[i]:
				if whole != before[i] {
					t.Fatalf("seed %d, joined: %v, %+v: answered alone: before %v, now %v", seed, joined, q, before[i], whole)
				}
				unread++
			case !whole && w.keys < maxKeys && (w.few || few(q.Value) && few(q.Where[0].Path)):
				t.Fatalf("seed %d, %+v: is no longer answered alone", seed, q)
			case !whole:
				lost++
			}
		}
	}
	t.Logf("%d of 40 sets joined; %d answers need history as before, %d now", joinedSets, unread, lost)
	if joinedSets < 10 || joinedSets > 37 || unread < 50 || lost == 0 {
		t.Error("that tells nothing")
	}
}

// TestJoinNeedsAllRecords: with a hole, or a file that only partly belongs to the range, none is
// made.
func TestJoinNeedsAllRecords(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	for _, r := range [][2]int64{{0, 10}, {10, 20}, {30, 40}} {
		b := NewBuilder()
		b.Add(1, []byte("bought"), r[0], 1, 1, nil)
		if err := s.Add(0, r[0], r[1], b); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range [][2]int64{{0, 40}, {0, 15}, {5, 20}, {10, 40}, {0, 10}, {0, 30}, {50, 60}} {
		if joined, err := s.Join(context.Background(), 0, r[0], r[1]); joined || err != nil {
			t.Errorf("%v: %v, %v", r, joined, err)
		}
	}
	if joined, err := s.Join(context.Background(), 0, 0, 20); !joined || err != nil {
		t.Error(joined, err)
	}
	if got := s.Files(0); !slices.Equal(got, []Range{{0, 20, 2}, {30, 40, 1}}) {
		t.Error(got)
	}
}

// TestJoinOfDamagedFile: it is removed, and the others stay.
func TestJoinOfDamagedFile(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	for at := range int64(3) {
		b := NewBuilder()
		b.Add(1, []byte("bought"), at, 1, 1, []byte(`{"a":1}`))
		if at == 1 {
			b.accounts[1]["bought"].columns[0].numbers[0] = 2 // with a right sum
		}
		if err := s.Add(0, at, at+1, b); err != nil {
			t.Fatal(err)
		}
	}
	if joined, err := s.Join(context.Background(), 0, 0, 3); joined || err != nil {
		t.Error(joined, err)
	}
	if got := s.Files(0); !slices.Equal(got, []Range{{0, 1, 1}, {2, 3, 1}}) {
		t.Error(got)
	}
}

// TestJoinOfTooMuch: of files that fit alone the bounds hold together, and a column that
// overflows is given up as one that was read from history.
func TestJoinOfTooMuch(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	for at := range int64(2) {
		b := NewBuilder()
		for i := range 100 {
			b.Add(1, []byte("bought"), at, 1, 1, fmt.Appendf(nil, `{"id":"%0400d"}`, 100*at+int64(i)))
		}
		for k := range 40 {
			b.Add(1, []byte("bought"), at, 1, 1, fmt.Appendf(nil, `{"k%d":1}`, 40*at+int64(k)))
		}
		if err := s.Add(0, at, at+1, b); err != nil {
			t.Fatal(err)
		}
	}
	if joined, err := s.Join(context.Background(), 0, 0, 2); !joined || err != nil {
		t.Fatal(joined, err)
	}
	g, err := s.files[0][0].group(1, "bought")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(g.columns, func(c fileColumn) bool { return c.key == "id" })
	if len(g.columns) != maxKeys || g.state != groupPartial || at < 0 || !g.columns[at].dropped {
		t.Errorf("%d keys, state %d, %+v", len(g.columns), g.state, g.columns)
	}
}

// TestJoinOfGivenUpColumns: a key that the first file has given up stays so, since the bound of
// its dictionary depends on the events before; one that only a later one has is read from history.
func TestJoinOfGivenUpColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second int // different values of 400 bytes, others in the second file
		joined, kept  bool
	}{{50, 50, true, true}, {200, 200, true, false}, {200, 50, true, false}, {100, 100, true, false}, {50, 200, false, false}, {0, 200, false, false}} {
		s := openEmpty(t)
		for at, values := range []int{c.first, c.second} {
			b := NewBuilder()
			b.Add(1, []byte("bought"), int64(at), 1, 1, []byte(`{}`))
			for i := range values {
				b.Add(1, []byte("bought"), int64(at), 1, 1, fmt.Appendf(nil, `{"session":"%0400d"}`, 1000*at+i))
			}
			if err := s.Add(0, int64(at), int64(at)+1, b); err != nil {
				t.Fatal(err)
			}
		}
		joined, err := s.Join(context.Background(), 0, 0, 2)
		if err != nil || joined != c.joined {
			t.Errorf("%+v: joined: %v, %v", c, joined, err)
		}
		if joined {
			g, err := s.files[0][0].group(1, "bought")
			if err != nil {
				t.Fatal(err)
			}
			if _, kept := g.column("session"); kept != c.kept || g.rows != 2+c.first+c.second {
				t.Errorf("%+v: kept: %v, %d events", c, kept, g.rows)
			}
		}
	}
}

// BenchmarkJoin is what a row takes that becomes part of a larger file.
func BenchmarkJoin(b *testing.B) {
	s := openEmpty(b)
	const files, rows = 8, 20_000
	at := int64(0)
	for range files {
		c, from := NewBuilder(), at
		for range rows {
			var id [4]byte
			binary.LittleEndian.PutUint32(id[:], uint32(at))
			c.Add(1, []byte("bought"), at, uint32(at*7919%5000), at, fmt.Appendf(nil, `{"value":%d.5,"currency":"EUR","product":"p-%d","order":"%032x"}`, at%1000, at%3000, id))
			at++
		}
		if err := s.Add(0, from, at, c); err != nil {
			b.Fatal(err)
		}
	}
	parts := s.covering(0, 0, at)
	defer s.close(parts)
	for b.Loop() {
		joined, work := NewBuilder(), newScratch()
		for _, x := range parts {
			for _, e := range x.accounts {
				if whole, err := joined.addAccount(x, e, work); err != nil || !whole {
					b.Fatal(whole, err)
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*files*rows), "ns/row")
}
