// Package feed carries resolved rows to history, off the acknowledgement path.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/lowpriority"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/statefiles"
	"github.com/musterhq/muster/resolver/internal/wake"
)

// Feed carries resolved rows to history, off the acknowledgement path. Rows
// wait in memory; when history lags they move to spool files, up to a bound at
// which Apply waits. What history has not stored yet is part of each
// checkpoint, so a history that is down does not hold up checkpoints. The
// log is not trimmed meanwhile: history may turn out to have lost rows.
type Feed struct {
	// These do not change.
	opts    Options
	part    int           // number of the partition
	history query.History // takes the rows
	fs      vfs.FS
	dir     string // of spool files
	log     *slog.Logger

	// mu guards the queue between Apply, which fills it, and the loop that stores rows.
	mu struct {
		sync.Mutex
		cur     *query.Batch // being filled by Apply; From is always set
		curAt   time.Time    // when cur got its first row
		items   []*Item      // sealed and not stored, oldest first
		mem     int64        // bytes of items in memory
		disk    int64        // bytes of spool files
		stored  int64        // history's position
		demand  int64        // a reader waits for this position
		free    *query.Batch // has memory for rows to come; nil for none
		held    *query.Batch // will be free when no checkpoint writes it any more
		freeAt  time.Time    // when a batch was last stored; zero once the free ones are let go
		hold    int          // checkpoints that are linking spool files
		doomed  []string     // spool files to be removed once hold is 0
		lastErr error        // of the newest attempt to store rows; nil after a success
		closed  bool         // no rows are taken any more
		// next is the offset of the next record to be applied.
		next int64
		// compare says that history may have lost rows.
		compare bool
		// lack says that history lacks rows which only the log still has.
		lack lack
		// losses is how often it was found to lack rows.
		losses int
	}
	// crowded says that SpoolBytes are in use: see [Feed.Crowded].
	crowded atomic.Bool
	// keep is held while the log is trimmed, and from the look at where it begins to the note
	// that rows have to come from it; before mu.
	keep    sync.Locker
	discard query.Batch        // takes rows that history has already
	fileMu  sync.Mutex         // one spool file is written at a time; before mu
	wake    chan struct{}      // has a token when the loop has something to do
	changed *wake.Broadcast    // signalled when what others wait for in mu has changed
	stop    context.CancelFunc // ends the loop; done waits for it
	done    sync.WaitGroup
	// Lacking is sent to when rows have to be rebuilt from the log.
	Lacking chan struct{}
	// logStart returns the offset of the oldest record that the log has.
	logStart func(ctx context.Context) (int64, error)
}

// Options bound the way from Apply to history.
type Options struct {
	// Rows is how many rows are stored in one go while there are that many.
	Rows int
	// Delay is how long a row waits for others at most.
	Delay time.Duration
	// MemoryBytes is how much may wait in memory beside the batch that is being filled, which
	// ends at as much; more goes to spool files.
	MemoryBytes int64
	// SpoolBytes is how much may wait in spool files; at this bound events are refused, see
	// [Feed.Crowded].
	SpoolBytes int64
	// LateBytes is how much more may wait for what was accepted before that: in memory, and of
	// requests under way. At this bound Apply waits, and readers wait for what is not applied.
	LateBytes int64
	// RetryMax is the longest wait before history is tried again after it
	// refused rows.
	RetryMax time.Duration
}

// Item is a sealed batch, in memory or in a spool file.
type Item struct {
	From, To int64        // the offsets that it covers, without To
	batch    *query.Batch // nil when only in the file
	File     string       // name in the spool directory, "" when only in memory
	bytes    int64        // in memory
	FileSize int64
	busy     bool // being stored
	// losses is how often history had been found to lack rows when the item was made.
	losses int
	// part says that these are the rows so far of a batch that is still being filled. The
	// file is a checkpoint's alone, and nothing is stored from here.
	part bool
}

// New makes a feed of a partition whose spool files are in dir. logStart returns the offset
// of the oldest record that its log has; keep is held while that is trimmed, and by those who
// need to know where it begins. It does nothing before Start.
func New(opts Options, part int, history query.History, logStart func(ctx context.Context) (int64, error), keep sync.Locker, fs vfs.FS, dir string, log *slog.Logger) *Feed {
	return &Feed{opts: opts, part: part, history: history, logStart: logStart, keep: keep, fs: fs, dir: dir, log: log,
		wake: make(chan struct{}, 1), changed: wake.NewBroadcast(), Lacking: make(chan struct{}, 1)}
}

// Start begins feeding. stored is history's position, next the offset Apply goes
// on from, start and end those of the log; items are the spool files that belong to
// the state at next. Rows that neither history nor a spool file has are rebuilt
// from the log (resolver/node/rebuild.go), if it still has its beginning.
func (f *Feed) Start(stored, next, start, end int64, items []*Item) error {
	from := next
	for _, it := range items {
		f.spooled(it.FileSize)
	}
	f.mu.items = items
	if len(items) > 0 {
		from = items[0].From
	}
	if err := CheckPosition(stored, from, start, end); err != nil {
		return err
	}
	f.mu.stored, f.mu.next = stored, next
	f.mu.cur = &query.Batch{Partition: f.part, From: max(next, stored), To: max(next, stored)}
	if stored < from {
		f.lackRows(stored)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	f.done.Add(2)
	go f.run(ctx)
	go f.spill(ctx)
	return nil
}

// CheckPosition refuses a history that is not that of the log and of a state which has
// what follows from.
// Rows that neither history nor a spool file has must be in the log, which has the
// records from start on.
func CheckPosition(stored, from, start, end int64) error {
	if stored < from && start > 0 {
		return fmt.Errorf("history can be read up to record %d only, but the state starts at %d and the log at %d: rows are missing, or the history file is damaged, which muster check tells. Restore a backup with muster restore, with --log for what is left of the log; or put the history back that belongs to this log (the file history.duckdb, or its database in ClickHouse)", stored, from, start)
	}
	if stored > end {
		// Only what is durable in the log is ever stored.
		return fmt.Errorf("history has stored records up to %d, but the log ends at %d: the log has lost its end, or this is the history of another log. Put the missing part of the log back (its files, or its topic in Kafka), or restore a backup with muster restore; of another log take the history that belongs to it", stored, end)
	}
	return nil
}

// Begin begins records whose rows Rows takes. It waits while the bound on waiting rows is
// reached. End or Abort must follow.
func (f *Feed) Begin(ctx context.Context) error {
	f.mu.Lock()
	for f.full() {
		changed := f.changed.Wait()
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mu.Lock()
	}
	return nil
}

// Rows returns the batch for the rows of the record at the offset, after Begin.
func (f *Feed) Rows(offset int64) *query.Batch {
	if offset < f.mu.cur.From || f.mu.lack.rows {
		f.discard.Reset()
		return &f.discard
	}
	return f.mu.cur
}

// waiting is how many bytes wait in memory. The lock is held.
func (f *Feed) waiting() int64 { return f.mu.mem + int64(f.mu.cur.Bytes()) }

func (f *Feed) full() bool {
	return f.waiting() > 2*f.opts.MemoryBytes || f.mu.disk > f.opts.SpoolBytes+f.opts.LateBytes
}

// spooled notes that files with rows grew by so many bytes. The lock is held.
func (f *Feed) spooled(bytes int64) {
	f.mu.disk += bytes
	crowded := f.mu.disk > f.opts.SpoolBytes
	if was := f.crowded.Swap(crowded); was == crowded {
		return
	}
	if crowded {
		f.log.Error("history is down or behind, and as many rows wait for it as may: events are refused until it takes them", "waiting_bytes", f.mu.disk, "bound", f.opts.SpoolBytes)
	} else {
		f.log.Info("fewer rows wait for history, and events are no longer refused", "waiting_bytes", f.mu.disk)
	}
}

// Crowded reports whether SpoolBytes are in use. Events are refused then before they are in the
// log.
func (f *Feed) Crowded() bool { return f.crowded.Load() }

// Abort ends what Begin began if no record could be applied.
func (f *Feed) Abort() { f.mu.Unlock() }

// End ends what Begin began; the record at the offset is the last of it that was applied.
func (f *Feed) End(offset int64) {
	c := f.mu.cur
	f.mu.next = offset + 1
	signal := false
	if offset >= c.From && !f.mu.lack.rows {
		if c.To == c.From || f.mu.curAt.IsZero() {
			f.mu.curAt = time.Now()
			signal = true
		}
		c.To = offset + 1
		if c.Rows() >= f.opts.Rows || int64(c.Bytes()) >= f.opts.MemoryBytes {
			f.seal()
			signal = true
		}
	}
	f.mu.Unlock()
	if signal {
		f.nudge()
	}
}

func (f *Feed) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// seal closes the current batch. The lock is held.
func (f *Feed) seal() {
	c := f.mu.cur
	if c.To == c.From {
		return
	}
	it := &Item{From: c.From, To: c.To, batch: c, bytes: int64(c.Bytes()), losses: f.mu.losses}
	f.mu.items = append(f.mu.items, it)
	f.mu.mem += it.bytes
	var next *query.Batch
	if f.mu.free != nil {
		next, f.mu.free = f.mu.free, nil
		next.Reset()
	} else {
		next = c.Next()
	}
	next.Partition, next.From, next.To = f.part, it.To, it.To
	f.mu.cur, f.mu.curAt = next, time.Time{}
}

// minRetry is the first pause before history is tried again.
const minRetry = 100 * time.Millisecond

// ErrUnavailable means that rows cannot be stored now.
var ErrUnavailable = errors.New("not serving now")

// ErrClosed means that this feed stores nothing more.
var ErrClosed = errors.New("the feed is closed")

// WaitStored waits until history holds all records below the offset.
func (f *Feed) WaitStored(ctx context.Context, upTo int64) error {
	f.mu.Lock()
	for f.mu.stored < upTo {
		f.mu.demand = max(f.mu.demand, upTo)
		err := f.mu.lastErr
		if f.mu.lack.is() {
			err = f.rebuilding()
		}
		if f.mu.closed {
			err = ErrClosed
		}
		changed := f.changed.Wait()
		f.mu.Unlock()
		if errors.Is(err, ErrClosed) {
			return err
		}
		var rebuilding *query.RebuildingError
		if errors.As(err, &rebuilding) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err != nil {
			return fmt.Errorf("%w: history does not take rows: %w", ErrUnavailable, err)
		}
		f.nudge()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mu.Lock()
	}
	f.mu.Unlock()
	return nil
}

// run stores items in order until ctx ends.
func (f *Feed) run(ctx context.Context) {
	defer f.done.Done()
	backoff := time.Duration(0)
	for {
		if err := f.compared(ctx); err != nil && ctx.Err() == nil {
			f.log.Error("history cannot be compared; trying again", "error", err)
			_ = pause.For(ctx, f.opts.RetryMax)
			continue
		}
		it, wait := f.next()
		if it == nil {
			if !f.sleep(ctx, wait) {
				return
			}
			continue
		}
		var err error
		if store := func() { err = f.store(ctx, it) }; f.hurried() {
			store()
		} else {
			lowpriority.Do(store)
		}
		if errors.Is(err, query.ErrGap) || errors.Is(err, errSpool) {
			err = f.lost(ctx, it, err)
		}
		f.mu.Lock()
		it.busy = false
		f.mu.lastErr = err
		switch {
		case f.dropped(it):
			// History was found to lack rows meanwhile: the item is in the list no more, and
			// its rows are rebuilt from the log, whether history has taken them or not.
			err = nil
		case err == nil:
			f.drop(it)
			backoff = 0
		}
		f.mu.Unlock()
		f.changed.Signal()
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			backoff = min(max(2*backoff, minRetry), f.opts.RetryMax)
			f.log.Error("history does not take rows; they wait in the spool", "from", it.From, "to", it.To, "retry_in", backoff, "error", err)
			_ = pause.For(ctx, backoff) // the next step tells
		}
	}
}

// hurried reports whether rows are to be stored as fast as can be: somebody waits for them, or
// more of them do than come at a time.
func (f *Feed) hurried() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.demand > f.mu.stored || len(f.mu.items) > 1
}

// next picks the oldest item, sealing the current batch when it is due. Without
// one it says how long to wait. The pace is no logic, so it reads the clock.
func (f *Feed) next() (*Item, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := time.Hour
	if f.mu.lack.is() {
		return nil, wait
	}
	if len(f.mu.items) == 0 && f.mu.cur.To > f.mu.cur.From {
		age := time.Since(f.mu.curAt)
		if f.mu.demand > f.mu.stored || age >= f.opts.Delay {
			f.seal()
		} else {
			wait = f.opts.Delay - age
		}
	}
	if len(f.mu.items) == 0 {
		return nil, min(wait, f.letGo())
	}
	it := f.mu.items[0]
	it.busy = true
	return it, 0
}

// letGoAfter is how long no rows come before the memory that batches took is let go.
const letGoAfter = 10 * time.Second

// letGo gives back the memory of batches when no rows have come for a while, and says how
// long to wait until then. Nothing waits, and the lock is held.
func (f *Feed) letGo() (wait time.Duration) {
	if f.mu.freeAt.IsZero() || f.mu.cur.To > f.mu.cur.From {
		return time.Hour
	}
	if wait = letGoAfter - time.Since(f.mu.freeAt); wait > 0 {
		return wait
	}
	c := f.mu.cur
	f.mu.free, f.mu.held, f.mu.freeAt = nil, nil, time.Time{}
	f.mu.cur = &query.Batch{Partition: c.Partition, From: c.From, To: c.To}
	return time.Hour
}

func (f *Feed) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-f.wake:
		return true
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *Feed) store(ctx context.Context, it *Item) error {
	f.mu.Lock()
	b, file := it.batch, it.File
	f.mu.Unlock()
	if b == nil {
		var err error
		if b, err = readSpoolFile(f.fs, f.fs.PathJoin(f.dir, file), it.From, it.To); err != nil {
			return err
		}
	}
	return f.history.Append(ctx, b)
}

// drop removes the oldest item: history has it. The lock is held.
func (f *Feed) drop(it *Item) {
	f.mu.items = f.mu.items[1:]
	f.mu.stored = max(f.mu.stored, it.To)
	if it.batch != nil {
		f.mu.mem -= it.bytes
		f.mu.freeAt = time.Now()
		if f.mu.hold == 0 {
			f.mu.free = it.batch
		} else { // a checkpoint may still be writing it to a spool file
			f.mu.held = it.batch
		}
	}
	if it.File != "" {
		f.spooled(-it.FileSize)
		f.mu.doomed = append(f.mu.doomed, it.File)
	}
	f.sweep()
}

// sweep removes spool files that are not needed, unless a checkpoint is about
// to link them. The lock is held.
func (f *Feed) sweep() {
	if f.mu.hold > 0 {
		return
	}
	for _, name := range f.mu.doomed {
		if err := f.fs.Remove(f.fs.PathJoin(f.dir, name)); err != nil {
			f.log.Warn("cannot remove a spool file", "file", name, "error", err)
		}
	}
	f.mu.doomed = f.mu.doomed[:0]
}

// spillPause is how long spilling waits after it has failed.
const spillPause = 5 * time.Second

// spill moves waiting batches to files while too many wait in memory.
func (f *Feed) spill(ctx context.Context) {
	defer f.done.Done()
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for ctx.Err() == nil {
			f.mu.Lock()
			var it *Item
			if f.spilling() {
				for _, x := range f.mu.items {
					if x.batch != nil && !x.busy {
						// Held from here on: a batch that is stored meanwhile must
						// not be filled again while it is written.
						it = x
						f.mu.hold++
						break
					}
				}
			}
			f.mu.Unlock()
			if it == nil {
				break
			}
			err := f.ToFile(it, true, func() {})
			f.Thaw()
			f.changed.Signal()
			if err != nil {
				f.log.Error("cannot spill rows to disk", "error", err, "retry_in", spillPause)
				pause.For(ctx, spillPause) // the next step tells
				break
			}
		}
	}
}

// spilling reports whether more batches wait in memory than may. The lock is held.
func (f *Feed) spilling() bool { return f.mu.mem > f.opts.MemoryBytes }

// ToFile makes sure the item has a spool file; release also frees its memory.
// The caller holds the feed's files (Hold). It calls worked after each piece of work, so that
// the caller can pause, unless too many rows are in memory: then others wait for a file.
func (f *Feed) ToFile(it *Item, release bool, worked func()) error {
	f.fileMu.Lock()
	defer f.fileMu.Unlock()
	f.mu.Lock()
	b, name := it.batch, it.File
	f.mu.Unlock()
	var size int64
	if name == "" || it.part { // after a checkpoint that failed, the file of a part is gone
		name = fmt.Sprintf("%020d-%020d.spool", it.From, it.To)
		if it.part { // the whole batch may get a file at the same time
			name = fmt.Sprintf("%020d-%020d.part", it.From, it.To)
		}
		path := f.fs.PathJoin(f.dir, name)
		tmp := path + ".tmp"
		var err error
		if size, err = writeSpoolFile(f.fs, tmp, b, func() {
			f.mu.Lock()
			hurry := f.spilling()
			f.mu.Unlock()
			if !hurry {
				worked()
			}
		}); err != nil {
			_ = f.fs.Remove(tmp) // it needs space
			return err
		}
		if err := f.fs.Rename(tmp, path); err != nil {
			return err
		}
		if err := statefiles.SyncDir(f.fs, f.dir); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if it.part {
		it.File, it.FileSize = name, size
		if !slices.Contains(f.mu.doomed, name) {
			f.mu.doomed = append(f.mu.doomed, name)
		}
		return nil
	}
	stored := f.mu.stored >= it.To || f.dropped(it)
	if it.File == "" {
		it.File, it.FileSize = name, size
		if stored {
			f.mu.doomed = append(f.mu.doomed, name)
		} else {
			f.spooled(size)
		}
	}
	if release && !stored && !it.busy && it.batch != nil {
		f.mu.mem -= it.bytes
		it.batch = nil
	}
	return nil
}

// Freeze returns what history lacks of the rows that Apply has produced. The batch that is
// being filled goes on unless it is to end: a checkpoint that ends it leaves history with row
// groups that are not full, which it writes twice. One that others fetch ends it, so that
// it need not have the rows. Files are kept until Thaw. The lock is held.
func (f *Feed) Freeze(end bool) []*Item {
	if end {
		f.seal()
		f.nudge()
	}
	f.mu.hold++
	items := append([]*Item(nil), f.mu.items...)
	if c := f.mu.cur; c.To > c.From {
		// Rows are only added behind these, and the memory is filled again only once history
		// has all of them.
		rows := *c
		items = append(items, &Item{From: c.From, To: c.To, batch: &rows, part: true, losses: f.mu.losses})
	}
	return items
}

// dropped reports whether an item is not stored from here, because history was found to
// lack rows since: they are rebuilt from the log. The lock is held.
func (f *Feed) dropped(it *Item) bool { return it.losses != f.mu.losses }

// Pending reports whether history gets the rows of an item from here and does not have them
// yet, so that a checkpoint must have them.
func (f *Feed) Pending(it *Item) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.stored < it.To && !f.dropped(it)
}

// Hold keeps files and batches until Thaw, as Freeze does.
func (f *Feed) Hold() {
	f.mu.Lock()
	f.mu.hold++
	f.mu.Unlock()
}

// Thaw ends Freeze or Hold.
func (f *Feed) Thaw() {
	f.mu.Lock()
	f.mu.hold--
	if f.mu.hold == 0 && f.mu.held != nil {
		f.mu.free, f.mu.held = f.mu.held, nil
	}
	f.sweep()
	f.mu.Unlock()
}

// Position is below which offset history has everything.
func (f *Feed) Position() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.stored
}

// Status is how far a feed is.
type Status struct {
	Stored      int64 // below this offset history has everything
	Wanted      int64 // the greatest offset that a caller has waited for
	SpoolBytes  int64 // in spool files
	Rows, Bytes int64 // rows that Apply produced and that are in no sealed batch; bytes that wait in memory
	Failing     bool  // history refused the newest rows
}

// Status says how far the feed is.
func (f *Feed) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Stored: f.mu.stored, Wanted: f.mu.demand, SpoolBytes: f.mu.disk, Failing: f.mu.lastErr != nil}
	if f.mu.cur != nil { // it has begun
		s.Rows, s.Bytes = int64(f.mu.cur.Rows()), f.waiting()
	}
	return s
}

// Lock keeps Apply and the storing of rows out until Unlock.
func (f *Feed) Lock() { f.mu.Lock() }

// Unlock ends Lock.
func (f *Feed) Unlock() { f.mu.Unlock() }

// Close ends feeding. What is not stored stays in the last checkpoint or is
// replayed from the log.
func (f *Feed) Close() {
	if f.stop == nil {
		return
	}
	f.stop()
	f.done.Wait()
	f.stop = nil
	f.mu.Lock()
	f.mu.closed = true
	f.mu.Unlock()
	f.changed.Signal()
}
