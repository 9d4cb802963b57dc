package duckdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// TestS1Replay compares replays of random histories with what a naive filter
// leaves of them: at random cuts, with the merges below the cut, at the edges of
// AfterMs, with filters, in pieces of a few rows.
func TestS1Replay(t *testing.T) {
	histories := 5
	if os.Getenv("MUSTER_LONG") != "" {
		histories = 60
	}
	if testing.Short() {
		histories = 2
	}
	rows, filtered, pieced, mapped := 0, 0, 0, 0
	for seed := range uint64(histories) {
		w := drawWorld(seed+1, 100)
		s := openTest(t)
		s.groupRows, s.pieceRows = 50, 20
		if err := s.Append(context.Background(), &query.Batch{To: 100}); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(context.Background(), &w.batch); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			q := w.drawReplay()
			want, moved := w.naiveReplay(q)
			got := replayed(t, s, q)
			if !slices.Equal(got, want) {
				t.Fatalf("S1: seed %d, %+v: %d rows, want %d\ngot  %q\nwant %q", seed+1, q, len(got), len(want), got, want)
			}
			rows += len(got)
			mapped += moved
			if len(q.Where) > 0 {
				filtered += len(got)
			}
		}
		pieced += len(piecesOf(t, s, w.end))
	}
	t.Logf("%d rows, %d of filtered replays, %d of merged profiles, %d pieces", rows, filtered, mapped, pieced)
	if filtered < 40 || mapped < 40 || pieced < 3*histories {
		t.Fatal("the replays hit too little to tell anything")
	}
}

func piecesOf(t *testing.T, s *Store, upTo int64) []int64 {
	t.Helper()
	c, done, err := s.reader(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ends, err := pieces(context.Background(), c, query.Cut{UpTo: upTo}, s.pieceRows)
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

func (w *world) drawReplay() query.ReplayQuery {
	a := w.gen.Activity()
	q := query.ReplayQuery{Account: w.account, EventType: a.Event, Properties: w.rng.IntN(2) == 0,
		Cut: query.Cut{UpTo: w.first + w.rng.Int64N(w.end-w.first+1)}}
	if w.rng.IntN(3) == 0 {
		q.Cut.UpTo = w.end
	}
	if w.rng.IntN(2) == 0 {
		after := w.rows[w.rng.IntN(len(w.rows))].event.TimeMs + w.rng.Int64N(3) - 1
		q.AfterMs = &after
	}
	for _, p := range a.Where {
		if p.Op != segment.OpInLastDays && p.Op != segment.OpNotInLastDays {
			q.Where = append(q.Where, p)
		}
	}
	return q
}

// naiveReplay is the answer as texts in order, and how many of its rows are of
// profiles that were merged since.
func (w *world) naiveReplay(q query.ReplayQuery) (rows []string, moved int) {
	root := make([]int, len(w.souls))
	for i := range root {
		root[i] = i
	}
	for _, m := range w.merges {
		if m.Offset < q.Cut.UpTo {
			root[m.Ordinal] = int(m.Winner)
		}
	}
	leaf := countLeaf(q.EventType, 1)
	leaf.Where = q.Where
	matches := &segment.Node{Kind: segment.KindActivity, Activity: leaf}
	for i, r := range w.rows {
		alone := &segment.NaiveProfile{Events: []segment.NaiveEvent{r.event}}
		if r.offset >= q.Cut.UpTo || q.AfterMs != nil && r.event.TimeMs <= *q.AfterMs || !matches.Naive(alone, r.event.TimeMs, nil) {
			continue
		}
		properties := ""
		if q.Properties {
			properties = string(r.event.Properties)
		}
		rows = append(rows, fmt.Sprintf("%d %d %s", root[r.soul], r.event.TimeMs, properties))
		if w.batch.Ordinal[i] != uint32(root[r.soul]) {
			moved++
		}
	}
	slices.Sort(rows)
	return rows, moved
}

// replayed is the store's answer as texts in order.
func replayed(t *testing.T, s *Store, q query.ReplayQuery) (rows []string) {
	t.Helper()
	err := s.Replay(context.Background(), q, func(b *query.ReplayBlock) error {
		if n := len(b.Ordinal); n == 0 || len(b.TimeMs) != n || q.Properties && len(b.Properties.Ends) != n || !q.Properties && len(b.Properties.Ends) != 0 {
			return fmt.Errorf("a block of %d ordinals, %d times and %d properties", n, len(b.TimeMs), len(b.Properties.Ends))
		}
		for i, o := range b.Ordinal {
			properties := ""
			if q.Properties {
				properties = string(b.Properties.At(i))
			}
			rows = append(rows, fmt.Sprintf("%d %d %s", o, b.TimeMs[i], properties))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows)
	return rows
}

// TestReplayRefusesFiltersOfTheInstant: a replay has no instant to judge at.
func TestReplayRefusesFiltersOfTheInstant(t *testing.T) {
	s := openTest(t)
	for _, op := range []segment.Op{segment.OpInLastDays, segment.OpNotInLastDays} {
		err := s.Replay(context.Background(), query.ReplayQuery{EventType: "e", Where: []segment.Predicate{
			{Path: []string{"a"}, Op: segment.OpExists}, {Path: []string{"b"}, Op: op, WindowMs: 1000}}},
			func(*query.ReplayBlock) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "filter 1 is "+string(op)) {
			t.Errorf("%s: got %v", op, err)
		}
	}
}

// openReplay is a store that runs one replay at a time, with rows in several
// pieces; each record o has recordRows(o) rows.
func openReplay(t *testing.T) (s *Store, q query.ReplayQuery, rows int) {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "h.duckdb"), Options{Replays: 1, Readers: 1, CheckpointBytes: mb})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.groupRows, s.pieceRows = 10_000, 20_000
	const records = 15_000
	appendRecords(t, s, 0, 0, records)
	for o := range int64(records) {
		rows += recordRows(o)
	}
	return s, query.ReplayQuery{Cut: query.Cut{UpTo: records}, Account: 7, EventType: "tested", Properties: true}, rows
}

// count replays and counts.
func count(t *testing.T, s *Store, q query.ReplayQuery) (rows int) {
	t.Helper()
	err := s.Replay(context.Background(), q, func(b *query.ReplayBlock) error { rows += len(b.Ordinal); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestReplayStops: after the context has ended, or fn has returned an error, fn
// is not called again, and the connection serves the next replay.
func TestReplayStops(t *testing.T) {
	s, q, rows := openReplay(t)
	for stopAt := range 12 {
		ctx, cancel := context.WithCancel(context.Background())
		blocks := 0
		err := s.Replay(ctx, q, func(*query.ReplayBlock) error {
			if blocks++; blocks == stopAt+1 {
				cancel()
			}
			return nil
		})
		cancel()
		if !errors.Is(err, context.Canceled) || blocks != stopAt+1 {
			t.Fatalf("cancelled in block %d: %d blocks, %v", stopAt+1, blocks, err)
		}
		own := errors.New("own")
		blocks = 0
		err = s.Replay(context.Background(), q, func(*query.ReplayBlock) error {
			if blocks++; blocks == stopAt+1 {
				return own
			}
			return nil
		})
		if err != own || blocks != stopAt+1 {
			t.Fatalf("error in block %d: %d blocks, %v", stopAt+1, blocks, err)
		}
	}
	if n := count(t, s, q); n != rows {
		t.Fatalf("%d rows, want %d", n, rows)
	}
}

// TestReplayHoldsNobodyUp: while fn takes its time, batches are appended and
// questions answered, and between pieces the log goes into the file; the replay
// has the rows below its cut, and no others.
func TestReplayHoldsNobodyUp(t *testing.T) {
	s, q, rows := openReplay(t)
	got, next := 0, q.Cut.UpTo
	log, emptied := int64(0), 0
	err := s.Replay(context.Background(), q, func(b *query.ReplayBlock) error {
		got += len(b.Ordinal)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			batch := new(query.Batch)
			fillRecords(batch, 0, next, next+2000)
			next += 2000
			if err := s.Append(ctx, batch); err != nil {
				done <- err
				return
			}
			if p, err := s.Position(ctx, 0); err != nil || p != next {
				done <- fmt.Errorf("position %d, want %d: %w", p, next, err)
				return
			}
			_, err := s.Timeline(ctx, query.TimelineQuery{Cut: query.Cut{UpTo: next}, Account: 7, Ordinals: []uint32{1}, Limit: 1})
			done <- err
		}()
		select {
		case err := <-done:
			info, statErr := os.Stat(s.path + ".wal")
			if statErr != nil {
				return statErr
			}
			if info.Size() < log {
				emptied++
			}
			log = info.Size()
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got != rows {
		t.Fatalf("%d rows, want %d", got, rows)
	}
	if emptied == 0 {
		t.Fatalf("the write-ahead log has only grown, to %d bytes", log)
	}
	checkRecords(t, s, 0)
	// A replay that waits for another one ends with its context.
	err = s.Replay(context.Background(), q, func(*query.ReplayBlock) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		if err := s.Replay(ctx, q, nil); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("a second replay: %w", err)
		}
		return errEnough
	})
	if err != errEnough {
		t.Fatal(err)
	}
}

var errEnough = errors.New("enough")

// TestReplayStreams: the first block comes while the statement is under way, so
// that an answer larger than the buffer is never held as a whole.
func TestReplayStreams(t *testing.T) {
	s, q, rows := openReplay(t)
	c := <-s.replays
	if err := c.exec("SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET streaming_buffer_size = '100KB'"); err != nil {
		t.Fatal(err)
	}
	s.replays <- c
	got := 0
	err := s.Replay(context.Background(), q, func(b *query.ReplayBlock) error {
		if got += len(b.Ordinal); got > len(b.Ordinal) {
			return nil
		}
		progress := bindings.QueryProgress(c.c)
		if percent, _, _ := bindings.QueryProgressTypeMembers(&progress); percent < 0 {
			return errors.New("no statement is under way")
		}
		return nil
	})
	if err != nil || got != rows {
		t.Fatalf("%d rows, want %d: %v", got, rows, err)
	}
}
