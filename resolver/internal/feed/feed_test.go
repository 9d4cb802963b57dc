package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// counting is a history that only counts.
type counting struct {
	query.History
	mu      sync.Mutex
	at      int64
	rows    int
	batches []int // rows of each
}

func (h *counting) Append(_ context.Context, b *query.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.From > h.at {
		return query.ErrGap
	}
	h.at, h.rows, h.batches = b.To, h.rows+b.Rows(), append(h.batches, b.Rows())
	return nil
}

func (h *counting) Position(context.Context, int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at, nil
}

func (h *counting) stored() (rows, batches int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rows, len(h.batches)
}

// adder has records with one row each go through a feed, from the offset next on.
func adder(t *testing.T, f *Feed, next *int64) func(records int) {
	return func(records int) {
		t.Helper()
		if err := f.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range records {
			b := f.Rows(*next)
			b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, *next), append(b.Index, 0)
			b.Ordinal, b.TimeMs = append(b.Ordinal, 0), append(b.TimeMs, 0)
			b.EventType.Append(nil)
			b.Properties.Append(nil)
			b.IdempotencyKey.Append(nil)
			*next++
		}
		f.End(*next - 1)
	}
}

// started is a feed into a history that has no rows, as that of a log without records. Its files
// are in memory.
func started(t *testing.T, h query.History, o Options) *Feed {
	t.Helper()
	f := New(o, 0, h, beginsAt(0), new(sync.Mutex), vfs.NewMem(), "", slog.New(slog.DiscardHandler))
	if err := f.Start(0, 0, 0, 0, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

// beginsAt is a log that has the records from the offset on.
func beginsAt(offset int64) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) { return offset, nil }
}

// TestHistoryLostOnATrimmedLog: rows that history has lost, and the log as well, are not
// taken for rows that can be rebuilt: those that wait stay, and who needs them is told what to
// do. The log is not trimmed while the rows are only there.
func TestHistoryLostOnATrimmedLog(t *testing.T) {
	h := &counting{at: 5}
	var start atomic.Int64
	begins := func(context.Context) (int64, error) { return start.Load(), nil }
	f := New(Options{Rows: 100, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Millisecond}, 0, h, begins, new(sync.Mutex), vfs.NewMem(), "", slog.New(slog.DiscardHandler))
	if err := f.Start(5, 5, 0, 5, nil); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	next := int64(5)
	add := adder(t, f, &next)
	if err := f.Trim(t.Context(), func() error { start.Store(3); return nil }); err != nil {
		t.Fatal(err)
	}
	lose := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.at = 0
	}
	lose()
	// Nobody has noticed yet.
	if err := f.Trim(t.Context(), func() error { return errors.New("trimmed") }); err != nil {
		t.Error(err)
	}
	add(10)
	told := func(by string) {
		t.Helper()
		eventually.Succeeds(t, func() error {
			err := f.WaitStored(t.Context(), next)
			if err == nil || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "restore a backup") {
				return fmt.Errorf("%s: WaitStored says %w", by, err)
			}
			return nil
		})
		if lacks, _ := f.Lacks(); lacks {
			t.Fatalf("%s: the rows are to be rebuilt", by)
		}
	}
	told("refused rows")
	f.Compare()
	told("comparison")
	// The right file is back.
	h.mu.Lock()
	h.at = 5
	h.mu.Unlock()
	eventually.Succeeds(t, func() error { return f.WaitStored(t.Context(), next) })
	if rows, _ := h.stored(); rows != 10 {
		t.Errorf("%d rows, want 10", rows)
	}
	// The same of a log that is whole.
	start.Store(0)
	lose()
	f.Compare()
	<-f.Lacking
	if err := f.Trim(t.Context(), func() error { return errors.New("trimmed") }); err != nil {
		t.Error(err)
	}
}

// asked is a history that is only asked how far it is.
type asked struct {
	query.History
	position func(context.Context) (int64, error)
}

func (h asked) Position(ctx context.Context, _ int) (int64, error) { return h.position(ctx) }

// TestL1TrimAsksHistory: the log is trimmed only when history says soon that it has all that it
// had.
func TestL1TrimAsksHistory(t *testing.T) {
	for name, c := range map[string]struct {
		position func(context.Context) (int64, error)
		trims    bool
	}{
		"whole": {beginsAt(5), true},
		"less":  {beginsAt(4), false},
		"down":  {func(context.Context) (int64, error) { return 5, errors.New("down") }, false},
		"silent": {func(ctx context.Context) (int64, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := New(Options{Rows: 100, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second}, 0, asked{position: c.position}, beginsAt(0), new(sync.Mutex), vfs.NewMem(), "", slog.New(slog.DiscardHandler))
				if err := f.Start(5, 5, 0, 5, nil); err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				trimmed := false
				if err := errors.Join(f.Trim(ctx, func() error { trimmed = true; return nil }), ctx.Err()); err != nil {
					t.Error(err)
				}
				if trimmed != c.trims {
					t.Errorf("trimmed: %v, want %v", trimmed, c.trims)
				}
			})
		})
	}
}

// TestRowsWaitForOthers: rows wait for others as long as they may, unless a reader waits
// for them or they are many.
func TestRowsWaitForOthers(t *testing.T) {
	h := new(counting)
	f := started(t, h, Options{Rows: 100, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second})
	defer f.Close()
	var next int64
	add := adder(t, f, &next)
	// As soon as there is a row, a feed that did not wait would store it.
	add(10)
	f.nudge()
	if rows, _ := h.stored(); rows != 0 {
		t.Fatalf("%d rows are stored at once", rows)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.WaitStored(ctx, next); err != nil {
		t.Fatal(err)
	}
	if rows, batches := h.stored(); rows != 10 || batches != 1 {
		t.Fatalf("%d rows in %d batches after a reader waited, want 10 in one", rows, batches)
	}
	add(60)
	add(60) // beyond what is stored in one go
	eventually.Succeeds(t, func() error {
		if rows, _ := h.stored(); rows != 130 {
			return errors.New("a full batch is not stored")
		}
		return nil
	})
}

// TestCheckpointsEndNoBatch: a checkpoint has the rows so far of a batch that is being filled,
// also when it is written late or for the second time, and history gets the batch whole.
func TestCheckpointsEndNoBatch(t *testing.T) {
	h := new(counting)
	fs := vfs.NewMem()
	f := New(Options{Rows: 100, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second}, 0, h, beginsAt(0), new(sync.Mutex), fs, "", slog.New(slog.DiscardHandler))
	if err := f.Start(0, 0, 0, 0, nil); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var next int64
	add := adder(t, f, &next)
	f.Lock()
	if items := f.Freeze(false); len(items) != 0 {
		t.Errorf("a checkpoint of no rows has %d items", len(items))
	}
	f.Unlock()
	f.Thaw()

	add(60)
	f.Lock()
	items := f.Freeze(false)
	f.Unlock()
	if len(items) != 1 || items[0].From != 0 || items[0].To != 60 {
		t.Fatalf("a checkpoint has %v", items)
	}
	it := items[0]
	add(30)
	for try := range 2 { // the first checkpoint fails, and its files are let go
		if try > 0 {
			f.Hold()
		}
		if !f.Pending(it) {
			t.Fatal("the rows are not pending")
		}
		if err := f.ToFile(it, false, func() {}); err != nil {
			t.Fatal(err)
		}
		b, err := readSpoolFile(fs, it.File, it.From, it.To)
		if err != nil {
			t.Fatal(err)
		}
		if b.From != 0 || b.To != 60 || b.Rows() != 60 || b.Offset[59] != 59 {
			t.Errorf("the file has %d rows of records %d to %d", b.Rows(), b.From, b.To)
		}
		f.Thaw()
		if names, err := fs.List(""); err != nil || len(names) != 0 {
			t.Errorf("files %q stay behind (%v)", names, err)
		}
	}
	if s := f.Status(); s.SpoolBytes != 0 || s.Rows != 90 {
		t.Errorf("%d bytes count as spooled, %d rows are in the batch", s.SpoolBytes, s.Rows)
	}
	if rows, _ := h.stored(); rows != 0 {
		t.Fatalf("%d rows are stored", rows)
	}
	add(10)
	eventually.Succeeds(t, func() error {
		if rows, batches := h.stored(); rows != 100 || batches != 1 {
			return fmt.Errorf("%d rows are stored in %d batches, want 100 in one", rows, batches)
		}
		return nil
	})
	eventually.Succeeds(t, func() error {
		if f.Pending(it) {
			return errors.New("the rows are pending although they are stored")
		}
		return nil
	})
	// Its memory may have other rows now.
	f.LackAll()
	if f.Pending(it) {
		t.Error("rows are pending that are made again from the log")
	}
}

// TestAPartAndItsBatch: the file of a checkpoint's part is not that of the whole batch, which
// may have the same records.
func TestAPartAndItsBatch(t *testing.T) {
	h := &slow{began: make(chan struct{}, 10), let: make(chan struct{})}
	fs := vfs.NewMem()
	f := New(Options{Rows: 10, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second}, 0, h, beginsAt(0), new(sync.Mutex), fs, "", slog.New(slog.DiscardHandler))
	if err := f.Start(0, 0, 0, 0, nil); err != nil {
		t.Fatal(err)
	}
	var next int64
	add := adder(t, f, &next)
	add(10)
	<-h.began // the loop is busy with these
	add(5)
	f.Lock()
	items := f.Freeze(false)
	part := items[len(items)-1]
	f.seal()
	whole := f.mu.items[len(f.mu.items)-1]
	f.Unlock()
	if part.From != whole.From || part.To != whole.To {
		t.Fatalf("the part has records %d to %d, the batch %d to %d", part.From, part.To, whole.From, whole.To)
	}
	for _, it := range []*Item{whole, part} {
		if err := f.ToFile(it, true, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	f.Thaw()
	if b, err := readSpoolFile(fs, whole.File, whole.From, whole.To); err != nil || b.Rows() != 5 {
		t.Fatalf("the batch cannot be read from its file: %v", err)
	}
	close(h.let)
	eventually.Succeeds(t, func() error {
		if rows, _ := h.stored(); rows != 15 {
			return fmt.Errorf("%d rows are stored, want 15", rows)
		}
		return nil
	})
	f.Close()
}

// slow is a history that takes a batch when it is let.
type slow struct {
	counting
	began, let chan struct{}
}

func (h *slow) Append(ctx context.Context, b *query.Batch) error {
	h.began <- struct{}{}
	<-h.let
	return h.counting.Append(ctx, b)
}

// TestL2LackingWhileStoring: history is found to lack rows while a batch is on its way to
// it. What comes after the rebuilding is stored, whatever became of that batch, and Close
// ends the feed, also while too much waits in memory.
func TestL2LackingWhileStoring(t *testing.T) {
	h := &slow{began: make(chan struct{}, 10), let: make(chan struct{})}
	f := started(t, h, Options{Rows: 10, Delay: time.Hour, MemoryBytes: 1, SpoolBytes: 1 << 20, RetryMax: time.Second})
	var next int64
	add := adder(t, f, &next)
	add(10)
	<-h.began // it is on its way
	f.LackAll()
	join := f.JoinAt()
	add(5)
	f.Lock()
	items := f.Freeze(false)
	f.Unlock()
	f.Thaw()
	if len(items) != 1 || items[0].From != join {
		t.Fatalf("%d items wait, want those behind %d", len(items), join)
	}
	close(h.let)
	eventually.Succeeds(t, func() error {
		if rows, _ := h.stored(); rows != 10 {
			return errors.New("the batch that was on its way is not stored")
		}
		return nil
	})
	f.Rebuilt()
	eventually.Succeeds(t, func() error {
		if rows, _ := h.stored(); rows != 15 {
			return fmt.Errorf("%d rows are stored, want 15", rows)
		}
		return nil
	})
	ended := make(chan struct{})
	go func() { f.Close(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the feed does not end")
	}
}

// TestL2JoinedTwice: a rebuilding that is done again from the join on does not change the rows
// that a checkpoint is writing.
func TestL2JoinedTwice(t *testing.T) {
	fs := vfs.NewMem()
	f := New(Options{Rows: 100, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second}, 0, new(counting), beginsAt(0), new(sync.Mutex), fs, "", slog.New(slog.DiscardHandler))
	if err := f.Start(0, 0, 0, 0, nil); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var next int64
	add := adder(t, f, &next)
	f.LackAll()
	join := f.JoinAt()
	add(5)
	f.Lock()
	part := f.Freeze(false)[0]
	f.Unlock()
	f.JoinAt()
	add(5)
	if err := f.ToFile(part, false, func() {}); err != nil {
		t.Fatal(err)
	}
	b, err := readSpoolFile(fs, part.File, part.From, part.To)
	if err != nil {
		t.Fatal(err)
	}
	if b.Rows() != 5 || b.Offset[0] != join || b.Offset[4] != join+4 {
		t.Errorf("the checkpoint has rows of the records %v, expected those from %d on", b.Offset, join)
	}
	f.Thaw()
}

// TestL2LossNoticedWhileRebuilding: a history that is to be compared while it is rebuilt is
// compared afterwards.
func TestL2LossNoticedWhileRebuilding(t *testing.T) {
	h := new(counting)
	f := started(t, h, Options{Rows: 1, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second})
	defer f.Close()
	var next int64
	adder(t, f, &next)(10)
	eventually.Holds(t, "all is stored", func() bool { rows, _ := h.stored(); return rows == 10 })
	f.LackAll()
	<-f.Lacking
	f.JoinAt()
	h.mu.Lock()
	h.at = 0
	h.mu.Unlock()
	f.Compare()
	if err := f.compared(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Rebuilt()
	select {
	case <-f.Lacking:
	case <-time.After(time.Minute):
		t.Fatal("history has lost its rows, and the feed does not say so")
	}
}

// TestRoomForRows: a batch has room for as many rows as the one before. The memory of one that
// a checkpoint may be writing is not filled again before the checkpoint ends, and then it is.
func TestRoomForRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := started(t, new(counting), Options{Rows: 100, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second})
		defer f.Close()
		var next int64
		add := adder(t, f, &next)
		filled := func() *query.Batch {
			f.mu.Lock()
			defer f.mu.Unlock()
			if room := cap(f.mu.cur.Account); next > 0 && room < 100 {
				t.Errorf("after %d records there is room for %d rows", next, room)
			}
			return f.mu.cur
		}
		first := filled()
		f.Hold()
		add(100)
		synctest.Wait() // it is stored
		second := filled()
		add(100)
		synctest.Wait()
		third := filled()
		if second == first || third == first || third == second {
			t.Error("memory that a checkpoint may be writing is filled again")
		}
		f.Thaw()
		add(100)
		synctest.Wait()
		if fourth := filled(); fourth != second {
			t.Error("the memory of a batch that a checkpoint held is not used again")
		}
		add(100)
		synctest.Wait()
		if fifth := filled(); fifth != third {
			t.Error("the memory of a batch that is stored is not used again")
		}
	})
}

// TestNoPausesWhileRowsMustBeSpilled: what writes a file may pause, unless too many rows are in
// memory: those that are to be spilled wait for it.
func TestNoPausesWhileRowsMustBeSpilled(t *testing.T) {
	f := started(t, new(counting), Options{Rows: 1000, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second})
	defer f.Close()
	var next int64
	adder(t, f, &next)(5)
	for _, spilling := range []bool{false, true} {
		f.Lock()
		part := f.Freeze(false)[0]
		before := f.mu.mem
		if spilling {
			f.mu.mem = f.opts.MemoryBytes + 1
		}
		f.Unlock()
		pauses := 0
		if err := f.ToFile(part, false, func() { pauses++ }); err != nil {
			t.Fatal(err)
		}
		if (pauses == 0) != spilling {
			t.Errorf("%d pauses; rows must be spilled: %v", pauses, spilling)
		}
		f.Lock()
		f.mu.mem = before
		f.Unlock()
		f.Thaw()
	}
}

// TestMemoryIsLetGo: what batches took is given back when no rows have come for a while,
// and rows that come later are stored.
func TestMemoryIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(counting)
		f := started(t, h, Options{Rows: 100, Delay: time.Second, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second})
		defer f.Close()
		var next int64
		add := adder(t, f, &next)
		kept := func() (n int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, b := range []*query.Batch{f.mu.free, f.mu.held, f.mu.cur} {
				if b != nil {
					n += cap(b.Account)
				}
			}
			return n
		}
		for round := range 2 {
			for range 5 {
				add(70)
			}
			time.Sleep(2 * time.Second) // the bubble's clock passes Delay, so that the batch is stored
			synctest.Wait()
			if rows, _ := h.stored(); rows != (round+1)*350 || kept() == 0 {
				t.Fatalf("%d rows are stored, room for %d is kept", rows, kept())
			}
			time.Sleep(letGoAfter) // on the bubble's clock: no rows come for that long
			synctest.Wait()
			if n := kept(); n != 0 {
				t.Fatalf("room for %d rows is kept", n)
			}
		}
	})
}

// TestL2DamagedSpoolFile: rows whose file cannot be read, is gone or is another's are rebuilt
// from the log. Where the log lacks its beginning, WaitStored says to restore a backup.
func TestL2DamagedSpoolFile(t *testing.T) {
	var rows query.Batch
	rows.To = 5
	data := encoded(&rows)
	flipped := slices.Clone(data)
	flipped[20] ^= 1
	rows.To = 4
	others := encoded(&rows)
	for _, c := range []struct {
		name string
		file []byte
	}{{"flipped", flipped}, {"cut off", data[:len(data)-1]}, {"empty", []byte{}}, {"of other records", others}, {"missing", nil}} {
		for _, start := range []int64{0, 3} {
			t.Run(fmt.Sprintf("%s, log from %d", c.name, start), func(t *testing.T) {
				fs := vfs.NewMem()
				if c.file != nil {
					if err := statefiles.Write(fs, "a.spool", c.file); err != nil {
						t.Fatal(err)
					}
				}
				if c.file != nil && !errors.Is(CheckFile(fs, "a.spool", 0, 5), statefiles.ErrDamaged) {
					t.Error("the file is found whole")
				}
				f := New(Options{Rows: 10, Delay: time.Hour, MemoryBytes: 1 << 20, SpoolBytes: 1 << 20, RetryMax: time.Second}, 0, new(counting), beginsAt(start), new(sync.Mutex), fs, "", slog.New(slog.DiscardHandler))
				if err := f.Start(0, 5, start, 5, []*Item{{From: 0, To: 5, File: "a.spool"}}); err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if start == 0 {
					select {
					case <-f.Lacking:
					case <-time.After(time.Minute):
						t.Fatal("the rows are not asked for")
					}
					if lacks, _ := f.Lacks(); !lacks {
						t.Error("the rows are not lacking")
					}
					return
				}
				eventually.Succeeds(t, func() error {
					if err := f.WaitStored(t.Context(), 5); err == nil || !strings.Contains(err.Error(), "restore a backup") {
						return fmt.Errorf("WaitStored says %w", err)
					}
					return nil
				})
			})
		}
	}
	fs := vfs.NewMem()
	if err := errors.Join(statefiles.Write(fs, "a.spool", data), CheckFile(fs, "a.spool", 0, 5)); err != nil {
		t.Error(err)
	}
}
