package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query"
)

// lack is the range of rows that neither history nor a spool file has,
// because history was lost, damaged or put back from an earlier time. They are made
// again from the log by a second machine (resolver/node/rebuild.go), in two steps:
//
//   - rows: the machine is far behind. What Apply produces is thrown away, since the
//     log has it and the machine will produce it again. Nothing piles up.
//   - joining: the machine is close. What Apply produces from the offset join on is
//     kept, and is stored when the machine has come to join.
//
// The fields are guarded by the feed's lock.
type lack struct {
	rows, joining bool
	join          int64
	done, total   int64 // records, for those who ask
}

func (l *lack) is() bool { return l.rows || l.joining }

// lackRows begins the first step. stored is history's position. The lock is held.
func (f *Feed) lackRows(stored int64) {
	f.mu.lack = lack{rows: true, done: stored, total: f.mu.next}
	f.mu.stored = stored
	f.mu.losses++
	for _, it := range f.mu.items {
		if it.File != "" {
			f.mu.doomed = append(f.mu.doomed, it.File)
		}
	}
	f.mu.items, f.mu.mem = nil, 0
	f.spooled(-f.mu.disk)
	// A new one: a checkpoint may be writing those before.
	f.mu.cur = &query.Batch{Partition: f.part, From: f.mu.next, To: f.mu.next}
	f.sweep()
	select {
	case f.Lacking <- struct{}{}:
	default:
	}
}

// lost begins the first step where an item could not be stored because history lost what it
// had, or because the item's file is damaged, which err says. It returns err and more where
// the log does not have the rows.
func (f *Feed) lost(ctx context.Context, it *Item, err error) error {
	f.keep.Lock()
	defer f.keep.Unlock()
	if e := f.inLog(ctx); e != nil {
		return fmt.Errorf("%w; %w", err, e)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.dropped(it):
	case errors.Is(err, errSpool):
		f.log.Error("rows that waited for history cannot be read; they are rebuilt from the log", "error", err)
		f.lackRows(f.mu.stored)
	default:
		f.lackRows(0)
	}
	return nil
}

// inLog returns why rows cannot be rebuilt from the log, nil if they can. keep is held.
func (f *Feed) inLog(ctx context.Context) error {
	start, err := f.logStart(ctx)
	if err != nil {
		return fmt.Errorf("whether the log has the rows is not known: %w", err)
	}
	if start > 0 {
		return fmt.Errorf("the log was trimmed, and begins with record %d, so they cannot be rebuilt: restore a backup with muster restore, with --log for what is left of the log", start)
	}
	return nil
}

// Trim calls trim, which trims the log, unless rows are missing that the log alone has, or
// history does not say soon that it has all that it had: its file may be damaged.
func (f *Feed) Trim(ctx context.Context, trim func() error) error {
	f.keep.Lock()
	defer f.keep.Unlock()
	f.mu.Lock()
	lacks, stored := f.mu.lack.is(), f.mu.stored
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, trimAsk)
	defer cancel()
	if at, err := f.history.Position(ctx, f.part); lacks || err != nil || at < stored {
		return nil // a later checkpoint tries again
	}
	return trim()
}

// trimAsk is how long history may take to say how far it is, while the log is to be trimmed.
const trimAsk = time.Second

// LackAll begins the first step of a history that has lost all that it had.
func (f *Feed) LackAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lackRows(0)
}

// Compare makes the feed ask history how far it is: it may have lost rows.
func (f *Feed) Compare() {
	f.mu.Lock()
	f.mu.compare = true
	f.mu.Unlock()
	f.nudge()
}

// compared asks history how far it is if that is due, and returns what went wrong.
func (f *Feed) compared(ctx context.Context) error {
	f.mu.Lock()
	due := f.mu.compare && !f.mu.lack.is() // once all is rebuilt, as more may be lost
	f.mu.compare = f.mu.compare && !due
	f.mu.Unlock()
	if !due {
		return nil
	}
	at, err := f.history.Position(ctx, f.part)
	f.keep.Lock()
	defer f.keep.Unlock()
	inLog := f.inLog(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		err = fmt.Errorf("how far is history: %w", err)
	case at >= f.mu.stored:
		f.mu.lastErr = nil
		return nil
	case inLog != nil:
		err = fmt.Errorf("history has lost rows: it has stored records up to %d, had %d; %w", at, f.mu.stored, inLog)
	default:
		f.lackRows(at)
		return nil
	}
	f.mu.compare, f.mu.lastErr = true, err // those who wait for rows are told
	return err
}

// rebuilding is the error for those who need rows that are missing. The lock is
// held.
func (f *Feed) rebuilding() error {
	return &query.RebuildingError{Done: f.mu.lack.done, Total: max(f.mu.lack.total, f.mu.next)}
}

// Lacks reports whether rows are missing, and how many records there are to read.
func (f *Feed) Lacks() (is bool, next int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.lack.is(), f.mu.next
}

// NoteRebuilt notes how far the machine has come.
func (f *Feed) NoteRebuilt(done int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.lack.done = done
}

// JoinAt begins the second step and returns the offset up to which the machine has
// still to go.
func (f *Feed) JoinAt() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.lack.rows, f.mu.lack.joining, f.mu.lack.join = false, true, f.mu.next
	// A new one, as in lackRows: rows may have been kept before, and are in a checkpoint.
	f.mu.cur = &query.Batch{Partition: f.part, From: f.mu.next, To: f.mu.next}
	return f.mu.next
}

// Rebuilt ends the rebuilding: history has all rows below join.
func (f *Feed) Rebuilt() {
	f.mu.Lock()
	f.mu.stored = f.mu.lack.join
	f.mu.lack, f.mu.lastErr = lack{}, nil
	f.mu.Unlock()
	f.changed.Signal()
	f.nudge()
}

// AppendRows stores rows that were rebuilt. A history that is down is tried again
// until ctx ends; one that has lost its rows once more is query.ErrGap.
func (f *Feed) AppendRows(ctx context.Context, b *query.Batch) error {
	for wait := minRetry; ; wait = min(2*wait, f.opts.RetryMax) {
		err := f.history.Append(ctx, b)
		if err == nil || ctx.Err() != nil || errors.Is(err, query.ErrGap) {
			return err
		}
		f.log.Error("history does not take rows that are rebuilt", "from", b.From, "to", b.To, "retry_in", wait, "error", err)
		if pause.For(ctx, wait) != nil {
			return fmt.Errorf("rebuild history: %w", ctx.Err())
		}
	}
}
