package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/columns"
)

// Resilient is a [query.History] in one DuckDB file that outlives damage to the file.
// A file that is damaged, missing or of another log is set aside under another name
// and an empty one takes its place, at the start or while it is used. What the empty
// one lacks is the caller's to bring: [Resilient.Append] answers [query.ErrGap] for
// rows behind those that are missing, and until they are there whatever needs them is
// answered with a [query.RebuildingError]. A file whose rows the log has not any more stays
// where it is, and is out of use: no call is answered until a backup is restored.
//
// After the start ([Resilient.Scrub]), and whenever an answer of DuckDB speaks of damage,
// all of the file is read, which compares the checksums of its blocks.
type Resilient struct {
	path    string
	log     string
	options Options
	now     func() time.Time
	logger  *slog.Logger
	// rebuildable and trimming are of ResilientOptions.
	rebuildable func(ctx context.Context) (bool, error)
	trimming    sync.Locker
	life        context.Context
	end         context.CancelFunc
	work        sync.WaitGroup
	// opened is closed when the file was opened for the first time, or openErr says why not.
	opened  chan struct{}
	openErr error
	scrubs  sync.Once
	// scrubbed is closed when the file was read whole after the start, or scrubErr says why not.
	scrubbed chan struct{}
	scrubErr error

	mu struct {
		sync.Mutex
		current *opened // nil while the file is being opened, looked at or replaced, and after Close
		closed  bool
		// positions are how far the file in use is known to be, by partition.
		positions map[int]int64
		replaced  int64
		onLoss    func() // nil until it is set
		lost      error  // why no file is in use any more, nil while one is or may be
	}
}

// opened is a file in use.
type opened struct {
	store *Store
	users int
	// suspect is why it is to be looked at once it has no users; drained is closed
	// then.
	suspect error
	drained chan struct{}
}

// ResilientOptions say which file a [Resilient] opens.
type ResilientOptions struct {
	Options
	// Path is the database file. Its directory must exist.
	Path string
	// Log names the log whose events the file holds; one of another log is set aside.
	Log string
	// Rebuildable reports whether the log still has all records that the file has rows of.
	// When it is nil it has.
	Rebuildable func(ctx context.Context) (bool, error)
	// Trimming is held while the log is trimmed, which happens only when the file says that it
	// has its rows, and from the call of Rebuildable until the file is set aside.
	Trimming sync.Locker
	// Now is the wall clock, for the names of files that are set aside.
	Now    func() time.Time
	Logger *slog.Logger
}

var _ query.History = (*Resilient)(nil)

// setAsideMark stands in the name of a file that was set aside, before the time.
const (
	setAsideMark = ".damaged-"
	setAsideTime = "20060102T150405.000Z"
)

// OpenResilient begins to open the file: DuckDB applies its write-ahead log then, and a
// start has other things to do meanwhile. [Resilient.Opened] says what came of it.
func OpenResilient(o ResilientOptions) *Resilient {
	r := &Resilient{path: o.Path, log: o.Log, options: o.Options, now: o.Now, logger: o.Logger, rebuildable: o.Rebuildable, trimming: o.Trimming,
		opened: make(chan struct{}), scrubbed: make(chan struct{})}
	r.options.logName = o.Log
	if r.options.Logger == nil {
		r.options.Logger = o.Logger
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.mu.positions = map[int]int64{}
	r.work.Go(r.openFirst)
	return r
}

// openFirst opens the file for the first time.
func (r *Resilient) openFirst() {
	defer close(r.opened)
	s, err := r.openWhole(r.life)
	if err != nil {
		r.openErr = err
		return
	}
	r.mu.Lock()
	closed := r.mu.closed
	if !closed {
		r.mu.current = newOpened(s)
	}
	r.mu.Unlock()
	if closed {
		s.abandon()
	}
}

// Opened waits until the file is open. It fails for reasons that are not in the file: it is
// in use, it was written by a newer version, the disk is full. Then nothing but Close is
// left to do.
func (r *Resilient) Opened(ctx context.Context) error {
	return waitFor(ctx, r.opened, &r.openErr)
}

// waitFor waits until a channel is closed, and returns the error that was noted before.
func waitFor(ctx context.Context, closed <-chan struct{}, err *error) error {
	select {
	case <-closed:
		return *err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Scrub begins to read all of the file once, beside those who use it. Calls after the first
// do nothing.
func (r *Resilient) Scrub() {
	r.scrubs.Do(func() { r.work.Go(r.scrub) })
}

func newOpened(s *Store) *opened { return &opened{store: s, drained: make(chan struct{})} }

// openWhole opens the file, or an empty one in its place.
func (r *Resilient) openWhole(ctx context.Context) (*Store, error) {
	if _, err := os.Stat(r.path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(r.path + ".wal"); err == nil {
			if err := r.replace(ctx, errors.New("the file is missing, its write-ahead log is there")); err != nil {
				return nil, err
			}
		}
	}
	if err := checkWAL(r.path + ".wal"); err != nil {
		if !inFile(err) {
			return nil, fmt.Errorf("history: %w", err)
		}
		if err := r.replaceWAL(ctx, err); err != nil {
			return nil, err
		}
	}
	s, err := r.open(ctx)
	if err == nil || !inFile(err) {
		return s, err
	}
	if err := r.replace(ctx, err); err != nil {
		return nil, err
	}
	return r.open(ctx)
}

// open opens the file and compares whose it is.
func (r *Resilient) open(ctx context.Context) (*Store, error) {
	s, err := Open(r.path, r.options)
	if err != nil {
		return nil, err
	}
	owner, err := s.claim(ctx, r.log)
	if err == nil && owner != r.log {
		err = fmt.Errorf("%w: %s has the events of %s, the log here is %s", errOtherLog, r.path, owner, r.log)
	}
	if err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

// replace sets the file aside, of which something is wrong: the next one to be opened is
// empty. The error wraps errLost, and the file stays, where the log cannot fill that. Files
// that were set aside before are for looking at, and go, since the disk is bounded.
func (r *Resilient) replace(ctx context.Context, wrong error) error {
	release, err := r.rebuilt(ctx, wrong)
	if err != nil {
		return err
	}
	defer release()
	r.logger.Error("the history file is set aside and rebuilt from the log", "file", r.path, "reason", wrong)
	if err := SetAside(r.path, r.now()); err != nil {
		return err
	}
	r.mu.Lock()
	r.mu.replaced++
	r.mu.Unlock()
	return nil
}

// replaceWAL is replace for the write-ahead log alone: DuckDB would take it for one that is to
// be continued.
func (r *Resilient) replaceWAL(ctx context.Context, wrong error) error {
	release, err := r.rebuilt(ctx, wrong)
	if err != nil {
		return err
	}
	defer release()
	r.logger.Error("the write-ahead log of history is set aside; rows that it had are rebuilt from the log", "reason", wrong)
	return setAside(r.path, r.now(), ".wal")
}

// rebuilt returns an error that wraps errLost unless the log can rebuild what a file had, of
// which something is wrong. It stays so until release is called.
func (r *Resilient) rebuilt(ctx context.Context, wrong error) (release func(), err error) {
	if r.rebuildable == nil {
		return func() {}, nil
	}
	r.trimming.Lock()
	can, err := r.rebuildable(ctx)
	switch {
	case err != nil:
		err = fmt.Errorf("history: %w; whether the log can rebuild it is not known: %w", wrong, err)
	case !can:
		err = fmt.Errorf("%w: %s: %w", errLost, r.path, wrong)
	default:
		return r.trimming.Unlock, nil
	}
	r.trimming.Unlock()
	return nil, err
}

// errLost means that a file cannot be used and that nothing replaces it.
var errLost = fmt.Errorf("%w: the file is damaged, and cannot be rebuilt, since the log was trimmed (--trim-log): restore a backup with muster restore, with --log for what is left of the log", query.ErrUnavailable)

// SetAside renames the file at path, which no process has open, and its write-ahead log, as
// is done with damaged ones: the next start makes another. Earlier ones that were set
// aside are removed.
func SetAside(path string, now time.Time) error {
	return errors.Join(setAside(path, now, "", ".wal"), columns.Remove(path+ColumnsSuffix))
}

// setAside renames the files with those suffixes as damaged ones, and removes earlier ones of
// the same suffixes.
func setAside(path string, now time.Time, suffixes ...string) error {
	old, err := asides(path)
	if err != nil {
		return err
	}
	aside := path + setAsideMark + now.UTC().Format(setAsideTime)
	for _, suffix := range suffixes {
		if e := os.Rename(path+suffix, aside+suffix); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	for _, name := range old {
		suffix := ""
		if strings.HasSuffix(name, ".wal") {
			suffix = ".wal"
		}
		if slices.Contains(suffixes, suffix) {
			err = errors.Join(err, os.RemoveAll(name))
		}
	}
	if err != nil {
		return fmt.Errorf("history: set the damaged file aside: %w", err)
	}
	return nil
}

// asides are the files that were set aside.
func asides(path string) ([]string, error) {
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n.Name(), filepath.Base(path)+setAsideMark) {
			out = append(out, filepath.Join(filepath.Dir(path), n.Name()))
		}
	}
	return out, nil
}

// Replaced is how many files were set aside since the start.
func (r *Resilient) Replaced() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.replaced
}

// OnLoss makes fn be called whenever the file was taken out of use and another one, or
// the same again, took its place: positions may be lower from then on.
func (r *Resilient) OnLoss(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.onLoss = fn
}

// use returns the store and what ends its use. need is the cut that is asked, nil
// where nothing has to be there.
func (r *Resilient) use(ctx context.Context, need *query.Cut) (*opened, error) {
	r.mu.Lock()
	o := r.mu.current
	switch {
	case r.mu.closed:
		r.mu.Unlock()
		return nil, ErrClosed
	case r.mu.lost != nil:
		err := r.mu.lost
		r.mu.Unlock()
		return nil, err
	case o == nil || o.suspect != nil:
		r.mu.Unlock()
		return nil, errInspected
	}
	o.users++
	at, known := int64(0), true
	if need != nil {
		at, known = r.mu.positions[need.Partition]
		known = known || need.UpTo == 0
	}
	r.mu.Unlock()
	if need == nil || known && need.UpTo <= at {
		return o, nil
	}
	// Not known yet, or moved by another call meanwhile.
	at, err := o.store.Position(ctx, need.Partition)
	if err == nil {
		r.moved(o, need.Partition, at)
		if need.UpTo > at {
			err = &query.RebuildingError{Done: at, Total: need.UpTo}
		}
	}
	if err != nil {
		return nil, r.done(o, err)
	}
	return o, nil
}

// moved notes how far a partition is stored in a file.
func (r *Resilient) moved(o *opened, partition int, position int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.current == o {
		r.mu.positions[partition] = max(r.mu.positions[partition], position)
	}
}

// done ends a use and hands on the error it ended with. One that speaks of damage
// takes the file out of use.
func (r *Resilient) done(o *opened, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.users--
	if err != nil && inFile(err) {
		if o.suspect == nil && !r.mu.closed {
			o.suspect = err
			r.work.Go(func() { r.inspect(o) })
		}
		err = fmt.Errorf("%w: %w", errInspected, err)
	}
	if o.suspect != nil && o.users == 0 {
		close(o.drained)
	}
	return err
}

// with calls do with the store.
func (r *Resilient) with(ctx context.Context, need *query.Cut, do func(s *Store) error) error {
	o, err := r.use(ctx, need)
	if err != nil {
		return err
	}
	return r.done(o, do(o.store))
}

// inspect looks at a file that seems to be damaged, once it has no users, and puts
// it or another one into use.
func (r *Resilient) inspect(o *opened) {
	r.logger.Error("history seems to be damaged; looking at all of it", "file", r.path, "reason", o.suspect)
	<-o.drained
	o.store.abandon()
	for wait := inspectRetry; ; wait = min(2*wait, inspectRetryMax) {
		s, err := r.whole(r.life)
		r.mu.Lock()
		if err == nil && !r.mu.closed {
			r.mu.current = newOpened(s)
			r.mu.positions = map[int]int64{}
			onLoss := r.mu.onLoss
			r.mu.Unlock()
			if onLoss != nil {
				onLoss()
			}
			return
		}
		closed := r.mu.closed
		if errors.Is(err, errLost) {
			r.mu.lost = err
		}
		r.mu.Unlock()
		if err == nil {
			s.abandon()
		}
		if closed || r.life.Err() != nil {
			return
		}
		if errors.Is(err, errLost) {
			r.logger.Error("history cannot be used", "error", err)
			return
		}
		r.logger.Error("history cannot be opened; trying again", "file", r.path, "retry_in", wait, "error", err)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-r.life.Done():
		}
		t.Stop()
	}
}

const (
	inspectRetry    = time.Second
	inspectRetryMax = time.Minute
)

// whole opens the file if all of it can be read, else an empty one.
func (r *Resilient) whole(ctx context.Context) (*Store, error) {
	s, err := r.openWhole(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err = s.check(ctx); err == nil {
		return s, nil
	}
	s.abandon()
	if !inFile(err) {
		return nil, err
	}
	if err := r.replace(ctx, err); err != nil {
		return nil, err
	}
	return r.open(ctx)
}

// Scrubbed waits until the file was read whole after the start, see [Resilient.Scrub], and
// returns why that failed.
func (r *Resilient) Scrubbed(ctx context.Context) error {
	return waitFor(ctx, r.scrubbed, &r.scrubErr)
}

// freeRetry is the time between two tries to free what a check has read.
const freeRetry = time.Second

// scrub reads all of the file once, beside those who use it, and frees what it has read once
// no statement is under way.
func (r *Resilient) scrub() {
	var used int64
	freed := false
	o, err := r.use(r.life, nil)
	if err == nil {
		used, freed, err = o.store.check(r.life)
		err = r.done(o, err)
	}
	if err != nil && r.life.Err() == nil {
		r.logger.Warn("history could not be read whole", "error", err)
	}
	r.scrubErr = err
	close(r.scrubbed)
	// An error means that the file is closed, or out of use, with what was read.
	for err == nil && !freed {
		if err = pause.For(r.life, freeRetry); err == nil {
			err = r.with(r.life, nil, func(s *Store) (err error) {
				freed, err = s.freeBlocks(r.life, used)
				return err
			})
		}
	}
}

// Close implements [query.History]. A file that turns out to be damaged is set aside,
// and the next start rebuilds it.
func (r *Resilient) Close() error {
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		return ErrClosed
	}
	r.mu.closed = true
	o := r.mu.current
	r.mu.Unlock()
	r.end()
	r.work.Wait()
	if o == nil || o.suspect != nil {
		return nil // closed by inspect, or to be looked at by the next start
	}
	err := o.store.Close()
	if err == nil || !inFile(err) {
		return err
	}
	if err = r.replace(context.Background(), err); errors.Is(err, errLost) {
		r.logger.Error("history cannot be used again", "error", err) // the next start says so, too
		return nil
	}
	return err
}

// Position implements [query.History]. It waits until the file is open, and for a while where
// it is being looked at: a caller that begins with a history needs to know how far it is.
func (r *Resilient) Position(ctx context.Context, partition int) (at int64, err error) {
	if err := r.Opened(ctx); err != nil {
		return 0, err
	}
	tick := time.NewTicker(inspectLook)
	defer tick.Stop()
	for range inspectLooks {
		err = r.with(ctx, nil, func(s *Store) error {
			at, err = s.Position(ctx, partition)
			return err
		})
		if !errors.Is(err, errInspected) {
			return at, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return at, err
}

const (
	inspectLook  = 10 * time.Millisecond
	inspectLooks = 3000
)

// errInspected means that the file is out of use because it seems to be damaged.
var errInspected = fmt.Errorf("%w: its file is being looked at, because it seems to be damaged", query.ErrUnavailable)

// Append implements [query.History].
func (r *Resilient) Append(ctx context.Context, b *query.Batch) error {
	o, err := r.use(ctx, nil)
	if err != nil {
		return err
	}
	if err = o.store.Append(ctx, b); err == nil {
		r.moved(o, b.Partition, b.To)
	}
	return r.done(o, err)
}

// ask answers a question by a method of the open [Store], see [Resilient.with].
func ask[Q, A any](ctx context.Context, r *Resilient, cut *query.Cut, q Q, answer func(*Store, context.Context, Q) (A, error)) (out A, err error) {
	err = r.with(ctx, cut, func(s *Store) error {
		out, err = answer(s, ctx, q)
		return err
	})
	return out, err
}

// Timeline implements [query.History].
func (r *Resilient) Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error) {
	return ask(ctx, r, &q.Cut, q, (*Store).Timeline)
}

// Activity implements [query.History].
func (r *Resilient) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	return ask(ctx, r, &q.Cut, q, (*Store).Activity)
}

// Matches is that of [Store].
func (r *Resilient) Matches(ctx context.Context, q query.MatchQuery, fn func(*query.MatchBlock) error) error {
	return r.with(ctx, &q.Cut, func(s *Store) error { return s.Matches(ctx, q, fn) })
}

// Quick is that of [Store].
func (r *Resilient) Quick(ctx context.Context, q query.MatchQuery) (quick bool) {
	err := r.with(ctx, &q.Cut, func(s *Store) error {
		quick = s.Quick(ctx, q)
		return nil
	})
	return quick && err == nil
}

// ExpectQuestions is that of [Store]. It does nothing while the file is being inspected.
func (r *Resilient) ExpectQuestions() {
	// A fault is of the file, and the question that is expected returns it.
	_ = r.with(context.Background(), nil, func(s *Store) error {
		s.ExpectQuestions()
		return nil
	})
}

// Replay implements [query.History].
func (r *Resilient) Replay(ctx context.Context, q query.ReplayQuery, fn func(*query.ReplayBlock) error) error {
	return r.with(ctx, &q.Cut, func(s *Store) error { return s.Replay(ctx, q, fn) })
}

// Transitions implements [query.History].
func (r *Resilient) Transitions(ctx context.Context, q query.TransitionsQuery) ([]query.Transition, error) {
	return ask(ctx, r, &q.Cut, q, (*Store).Transitions)
}

// ProfileTransitions implements [query.History].
func (r *Resilient) ProfileTransitions(ctx context.Context, q query.ProfileTransitionsQuery) ([]query.Transition, error) {
	return ask(ctx, r, &q.Cut, q, (*Store).ProfileTransitions)
}

// Series implements [query.History].
func (r *Resilient) Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	return ask(ctx, r, &q.Cut, q, (*Store).Series)
}

// Deeds implements [query.History].
func (r *Resilient) Deeds(ctx context.Context, q query.DeedsQuery) ([]query.Deed, error) {
	return ask(ctx, r, &q.Cut, q, (*Store).Deeds)
}

// Moves implements [query.History].
func (r *Resilient) Moves(ctx context.Context, q query.MovesQuery) ([]query.MovesRow, error) {
	return ask(ctx, r, &q.Cut, q, (*Store).Moves)
}

// Erase implements [query.History]. Files that were set aside go: they may have what
// is erased.
func (r *Resilient) Erase(ctx context.Context, q query.EraseQuery) error {
	if err := r.with(ctx, nil, func(s *Store) error { return s.Erase(ctx, q) }); err != nil {
		return err
	}
	old, err := asides(r.path)
	for _, path := range old {
		// There may be a directory where the file was.
		if e := os.RemoveAll(path); e != nil {
			err = errors.Join(err, fmt.Errorf("history: erase: %w", e))
		}
	}
	return err
}

// Usage implements [query.History].
func (r *Resilient) Usage(ctx context.Context) (u query.Usage, err error) {
	err = r.with(ctx, nil, func(s *Store) error {
		u, err = s.Usage(ctx)
		return err
	})
	return u, err
}

// errOtherLog means that a history file belongs to another log.
var errOtherLog = errors.New("history belongs to another log")

// damageWords are parts of what DuckDB answers when a file is not what it wrote. It
// has no codes for them. An internal error may have other reasons, so the file is
// inspected.
var damageWords = []string{
	"Corrupt", "corrupt", "checksum", "has been invalidated", "INTERNAL Error", "Serialization Error",
	"Could not read", "could not read", "not a valid DuckDB database file", "database file with version number",
	"the file is damaged", "Invalid bitpacking", "WAL",
	// It takes a file that begins like one of another database for that, and may not load what reads it.
	"Loading external extensions is disabled",
}

// inFile reports whether an error is the file's fault, as far as one can tell.
func inFile(err error) bool {
	if errors.Is(err, errOtherLog) {
		return true
	}
	if errors.Is(err, ErrOtherVersion) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	text := err.Error()
	if !strings.Contains(text, "duckdb") && !strings.Contains(text, "the file is damaged") {
		return false
	}
	if strings.Contains(text, "No space left") || strings.Contains(text, "Out of Memory") || strings.Contains(text, "Permission denied") {
		return false
	}
	return slices.ContainsFunc(damageWords, func(w string) bool { return strings.Contains(text, w) })
}
