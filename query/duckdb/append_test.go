package duckdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

func openTest(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "h.duckdb"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func appendRecords(t *testing.T, s *Store, partition int, from, to int64) {
	t.Helper()
	b := new(query.Batch)
	historytest.FillRecords(b, partition, from, to)
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// TestL2Overlap repeats and overlaps batches in every way; each record stays
// there once.
func TestL2Overlap(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	s.groupRows = 90
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		partition := rng.IntN(3)
		position, err := s.Position(context.Background(), partition)
		if err != nil {
			t.Fatal(err)
		}
		from := max(0, position-rng.Int64N(30))
		to := from + rng.Int64N(60)
		appendRecords(t, s, partition, from, to)
		if got := checkRecords(t, s, partition); got != max(position, to) {
			t.Fatalf("position %d after %d and a batch to %d", got, position, to)
		}
	}
	if sealed, recent := scalar(t, s, "SELECT count(*) FROM events_sealed"), scalar(t, s, "SELECT count(*) FROM events_recent"); sealed == 0 || sealed%90 != 0 || recent >= 90 {
		t.Fatalf("%d sealed rows and %d recent ones, want whole groups of 90 and less than one", sealed, recent)
	}
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
	if p := checkRecords(t, s, 0); p != 10 {
		t.Fatalf("position %d", p)
	}
}

func TestEmptyBatchMovesThePosition(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	if err := s.Append(context.Background(), &query.Batch{To: 5}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Position(context.Background(), 0); p != 5 || err != nil {
		t.Fatal(p, err)
	}
}

func TestBadBatches(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	for name, spoil := range map[string]func(b *query.Batch){
		"columns differ":             func(b *query.Batch) { b.TimeMs = b.TimeMs[1:] },
		"offset 12":                  func(b *query.Batch) { b.Offset[len(b.Offset)-1] = 12 },
		"row 2 has offset":           func(b *query.Batch) { b.Offset[2] = 0 },
		"alias 0 has offset":         func(b *query.Batch) { b.Aliases[0].Offset = 99 },
		"transition 1 has offset 99": func(b *query.Batch) { b.Transitions[1].Key.Offset = 99 },
		"transition 1 has offset 0":  func(b *query.Batch) { b.Transitions[1].Key.Offset = 0 },
		"number 0":                   func(b *query.Batch) { b.Transitions[0].Key.Seq = 0 },
		"number 1 after 2 of": func(b *query.Batch) {
			b.Transitions = append(b.Transitions, historytest.RecordTransition(0, 9, 2), historytest.RecordTransition(0, 9, 1))
		},
		"number 2 after 2 of": func(b *query.Batch) {
			b.Transitions = append(b.Transitions, historytest.RecordTransition(0, 9, 2), historytest.RecordTransition(0, 9, 2))
		},
		"transition 0 names no":  func(b *query.Batch) { b.Transitions[0].Segment = "" },
		"which is not UTF-8":     func(b *query.Batch) { b.Transitions[2].Segment = "s\xff" },
		"partition is -1":        func(b *query.Batch) { b.Partition = -1 },
		"records 10 to 0":        func(b *query.Batch) { b.From, b.To = b.To, b.From },
		"event type of row 8":    func(b *query.Batch) { b.EventType.Ends = b.EventType.Ends[:8] },
		"properties of row 0":    func(b *query.Batch) { b.Properties.Data[3] = 0xff },
		"properties of row 1 of": func(b *query.Batch) { copy(b.Properties.Data[b.Properties.Ends[0]-1:], "é") },
		"idempotency key of row": func(b *query.Batch) { b.IdempotencyKey.Ends[1] = 1 << 31 },
	} {
		b := new(query.Batch)
		historytest.FillRecords(b, 0, 0, 10)
		spoil(b)
		if err := s.Append(context.Background(), b); !errors.Is(err, query.ErrBadBatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if p := checkRecords(t, s, 0); p != 0 {
		t.Fatalf("position %d", p)
	}
}

// TestL2Cancelled cancels appends at any moment: a batch is there or not.
func TestL2Cancelled(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	b := new(query.Batch)
	refused := 0
	for i := range 40 {
		position, err := s.Position(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx := &countdown{Context: context.Background(), left: i}
		historytest.FillRecords(b, 0, position, position+500)
		err = s.Append(ctx, b)
		want := position + 500
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			refused++
			want = position
		}
		if p, err := s.Position(context.Background(), 0); err != nil || p != want {
			t.Fatalf("position %d, want %d (%v)", p, want, err)
		}
	}
	checkRecords(t, s, 0)
	if refused == 0 || refused == 40 {
		t.Fatalf("%d of 40 refused", refused)
	}
}

// countdown is cancelled once it has been asked left times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestTextRoundTrip stores strings of all sizes around what DuckDB treats
// differently, in both tables, and reads them back after reopening.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	s.groupRows = 400
	b := &query.Batch{To: 600}
	var want []string
	for i := range 600 {
		n := i % 40
		switch i % 97 {
		case 5:
			n = 4095 + i%4
		case 6:
			n = 70_000 + i
		case 7:
			n = 1 << 20
		}
		text := strings.Repeat(fmt.Sprintf("ä%d€😀", i), n/5+1)
		for n < len(text) && text[n]&0xC0 == 0x80 {
			n++
		}
		text = text[:min(n, len(text))]
		want = append(want, text)
		b.Account = append(b.Account, 1)
		b.Offset = append(b.Offset, int64(i))
		b.Index = append(b.Index, 0)
		b.Ordinal = append(b.Ordinal, 0)
		b.TimeMs = append(b.TimeMs, int64(-i))
		b.EventType.Append([]byte(text[:min(len(text), 2)]))
		b.Properties.Append([]byte(text))
		b.IdempotencyKey.Append([]byte(text))
	}
	// Event types are cut after a character of two bytes.
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	compare := func() {
		t.Helper()
		got, err := s.Timeline(context.Background(), query.TimelineQuery{Cut: query.Cut{UpTo: 600}, Account: 1, Ordinals: []uint32{0}, Limit: 1000})
		if err != nil || len(got) != len(want) {
			t.Fatal(len(got), err)
		}
		for i, e := range got {
			if e.Properties != want[i] || e.IdempotencyKey != want[i] || e.EventType != want[i][:min(len(want[i]), 2)] {
				t.Fatalf("row %d: %d bytes, want %d", i, len(e.Properties), len(want[i]))
			}
		}
	}
	compare()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	s = again
	compare()
}

// TestWideRowsAreSealedEarly: rows that wait for a full row group are bounded
// in bytes too.
func TestWideRowsAreSealedEarly(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	s.tailBytes = 100_000
	wide := []byte(`"` + strings.Repeat("x", 3000) + `"`)
	for o := range int64(80) {
		b := &query.Batch{From: o, To: o + 1, Account: []uint64{1}, Offset: []int64{o}, Index: []uint32{0}, Ordinal: []uint32{0}, TimeMs: []int64{o}}
		b.EventType.Append([]byte("wide"))
		b.Properties.Append(wide)
		b.IdempotencyKey.Append(nil)
		if err := s.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		if n := textBytes(&s.writer.stored.tail.Batch); n > s.tailBytes {
			t.Fatalf("%d bytes wait", n)
		}
	}
	if n := scalar(t, s, "SELECT count(*) FROM events"); n != 80 {
		t.Fatalf("%d rows", n)
	}
	if n := scalar(t, s, "SELECT count(*) FROM events_sealed"); n == 0 {
		t.Fatal("nothing was sealed")
	}
}
