package duckdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestS1Replay: in pieces of a few rows.
func TestS1Replay(t *testing.T) {
	t.Parallel()
	pieced := 0
	// Runs last: what is cleaned up by the stores counts.
	t.Cleanup(func() {
		if pieced < 3*2 {
			t.Errorf("%d pieces", pieced)
		}
	})
	historytest.Replays(t, func(t *testing.T) query.History {
		s := openTest(t)
		s.groupRows, s.pieceRows = 50, 20
		t.Cleanup(func() { pieced += len(piecesOf(t, s, 1<<40)) })
		return s
	}, 5)
}

func TestReplayRefusesFiltersOfTheInstant(t *testing.T) {
	t.Parallel()
	historytest.ReplayRefusesFiltersOfTheInstant(t, openHistory)
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

// openReplay is a store that runs one replay at a time, with rows in several
// pieces; each record o has historytest.RecordRows(o) rows.
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
		rows += historytest.RecordRows(o)
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

// endsWithItsContext cancels a replay within a block: fn is not called again.
func endsWithItsContext(t *testing.T, s *Store, q query.ReplayQuery, stopAt int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	blocks := 0
	err := s.Replay(ctx, q, func(*query.ReplayBlock) error {
		if blocks++; blocks == stopAt+1 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || blocks != stopAt+1 {
		t.Fatalf("cancelled in block %d: %d blocks, %v", stopAt+1, blocks, err)
	}
}

// TestReplayStops: after the context has ended, or fn has returned an error, fn
// is not called again, and the connection serves the next replay.
func TestReplayStops(t *testing.T) {
	t.Parallel()
	s, q, rows := openReplay(t)
	for stopAt := range 12 {
		endsWithItsContext(t, s, q, stopAt)
		own, blocks := errors.New("own"), 0
		err := s.Replay(context.Background(), q, func(*query.ReplayBlock) error {
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
	t.Parallel()
	s, q, rows := openReplay(t)
	got, next := 0, q.Cut.UpTo
	log, emptied := int64(0), 0
	err := s.Replay(context.Background(), q, func(b *query.ReplayBlock) error {
		got += len(b.Ordinal)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			batch := new(query.Batch)
			historytest.FillRecords(batch, 0, next, next+2000)
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
	t.Parallel()
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
