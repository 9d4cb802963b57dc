package file

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/musterhq/muster/eventlog"
)

// ErrInUse means another process, or another Log of this one, has the
// directory open.
var ErrInUse = errors.New("log directory is in use by another process")

// Log is an [eventlog.Log] in a directory. See the package documentation.
type Log struct {
	opts Options
	dir  string
	// id is the log's random identity, repeated in every segment.
	id         uint64
	partitions []*partition
	// flags are those of the meta file. endsMu guards them and partition.noted once the
	// log is open; no other lock is taken but partition.mu.
	flags  uint32
	endsMu sync.Mutex
	lock   io.Closer

	// noticed is the damage that was met.
	noticed noticed

	// failure is set once, by the first write or fsync that failed.
	failure atomic.Pointer[error]
	// closing is closed when Close begins.
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
	writers   sync.WaitGroup
}

// Open opens the log in dir, creating directory and log when there is none.
// The error is [ErrInUse] when the directory is taken, a
// [*eventlog.CorruptError] when stored records are damaged.
func Open(dir string, opts Options) (*Log, error) {
	l, err := open(dir, opts)
	if err != nil {
		return nil, err
	}
	for _, p := range l.partitions {
		l.writers.Go(p.run)
	}
	return l, nil
}

// open is Open without the writer goroutines: tests commit by hand.
func open(dir string, opts Options) (_ *Log, err error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("log options: %w", err)
	}
	l := &Log{opts: opts.withDefaults(), dir: dir, closing: make(chan struct{})}
	fsys := l.opts.FS
	defer func() {
		if err != nil {
			_ = l.release((*partition).abandon)
			err = fmt.Errorf("open log in %s: %w", dir, err)
		}
	}()
	for i := range l.opts.Partitions {
		l.partitions = append(l.partitions, l.newPartition(i))
	}
	_, err = fsys.Stat(dir)
	isNew := isNotExist(err)
	if isNew {
		if err := l.check(); err != nil {
			return nil, err
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory: %w", err)
	}
	if l.lock, err = fsys.Lock(fsys.PathJoin(dir, lockName)); err != nil {
		l.lock = nil
		if isLocked(err) {
			return nil, fmt.Errorf("%w: stop it or choose another directory", ErrInUse)
		}
		return nil, fmt.Errorf("lock the directory: %w", err)
	}
	meta, found, err := readSmall(fsys, fsys.PathJoin(dir, metaName), metaMagic)
	if err != nil {
		return nil, withSmallRemedy(err)
	}
	if !found {
		if err := l.checkUnfinished(); err != nil {
			return nil, withSmallRemedy(err)
		}
		if !isNew {
			if err := l.check(); err != nil {
				return nil, err
			}
		}
		if err := l.create(); err != nil {
			return nil, err
		}
		return l, nil
	}
	if int64(meta.number) != int64(l.opts.Partitions) {
		return nil, fmt.Errorf("the log has %d partitions, %d were asked for; the number is fixed when a log is created: open it with %d",
			meta.number, l.opts.Partitions, meta.number)
	}
	l.id, l.flags = meta.value, meta.flags
	// All that may be a reason to refuse comes before the first change.
	for _, p := range l.partitions {
		if err := p.look(); err != nil {
			return nil, err
		}
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	// The file may have been renamed into place by a start that was killed
	// before the new name was durable.
	if err := syncDir(fsys, dir); err != nil {
		return nil, err
	}
	for _, p := range l.partitions {
		if err := p.recover(); err != nil {
			return nil, err
		}
	}
	// A crash may have come between records and the note of them.
	l.noteEndsQuietly(false)
	return l, nil
}

// withSmallRemedy says what to do about a small file that is lost or damaged.
func withSmallRemedy(err error) error {
	var damaged *eventlog.CorruptError
	if errors.As(err, &damaged) {
		damaged.Remedy = "muster repair rebuilds it from the segment files, if they are whole"
	}
	return err
}

// check asks Options.Check whether what was found may be opened.
func (l *Log) check() error {
	if l.opts.Check == nil {
		return nil
	}
	bounds := make([]Bounds, len(l.partitions))
	for i, p := range l.partitions {
		bounds[i].Start, bounds[i].End = p.bounds()
	}
	return l.opts.Check(l.id, bounds)
}

// ID is the log's random identity, drawn when it was made.
func (l *Log) ID() uint64 { return l.id }

func (l *Log) newPartition(id int) *partition {
	p := &partition{
		log: l, id: id,
		dir:  l.opts.FS.PathJoin(l.dir, fmt.Sprintf("p%d", id)),
		wake: make(chan struct{}, 1), linked: map[string]struct{}{},
	}
	p.noted.next = -1
	p.mu.readers = make(map[*Reader]struct{})
	p.mu.chain.maxFree = int((l.opts.TailBytes + 2*maxBatchBytes) / blockBytes)
	return p
}

// create makes the files of a new log. The meta file comes last: a log without
// it has never taken a record.
func (l *Log) create() error {
	fsys := l.opts.FS
	if err := l.removeUnfinished(); err != nil {
		return err
	}
	var err error
	if l.id, err = l.random64(); err != nil {
		return err
	}
	for _, p := range l.partitions {
		if err := fsys.MkdirAll(p.dir, 0o700); err != nil {
			return fmt.Errorf("create directory %s: %w", p.dir, err)
		}
		f, seg, err := p.create(0, 0)
		if err != nil {
			return err
		}
		p.begin(f, seg, 0)
		p.w.pos, p.w.filled = segmentHeaderSize, seg.bytes
		p.mu.durablePos = p.w.pos
	}
	if err := syncDir(fsys, l.dir); err != nil {
		return err
	}
	if err := syncAbove(fsys, l.dir); err != nil {
		return err
	}
	return writeSmall(fsys, l.dir, metaName, l.meta(l.flags))
}

// meta is the content of the log's meta file with flags.
func (l *Log) meta(flags uint32) small {
	return small{magic: metaMagic, number: uint32(len(l.partitions)), value: l.id, flags: flags}
}

// unfinished lists the directories that a creation that did not come to its end
// has left.
func (l *Log) unfinished() ([]string, error) {
	fsys := l.opts.FS
	names, err := fsys.List(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.dir, err)
	}
	var dirs []string
	for _, name := range names {
		var id int
		if n, err := fmt.Sscanf(name, "p%d", &id); n != 1 || err != nil || name != fmt.Sprintf("p%d", id) {
			continue
		}
		dirs = append(dirs, fsys.PathJoin(l.dir, name))
	}
	return dirs, nil
}

// checkUnfinished refuses to touch anything that holds a record.
func (l *Log) checkUnfinished() error {
	fsys := l.opts.FS
	dirs, err := l.unfinished()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		files, err := fsys.List(dir)
		if err != nil {
			return fmt.Errorf("list %s: %w", dir, err)
		}
		for _, file := range files {
			path := fsys.PathJoin(dir, file)
			blank, err := blankBehind(fsys, path, segmentHeaderSize)
			if err != nil {
				return err
			}
			if file != segmentName(0) || !blank {
				return &eventlog.CorruptError{
					File:   fsys.PathJoin(l.dir, metaName),
					Reason: fmt.Sprintf("the file is missing, but %s holds data", path),
				}
			}
		}
	}
	return nil
}

// removeUnfinished clears away what checkUnfinished has looked at.
func (l *Log) removeUnfinished() error {
	fsys := l.opts.FS
	dirs, err := l.unfinished()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := fsys.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	return syncDir(fsys, l.dir)
}

// Partitions implements [eventlog.Log].
func (l *Log) Partitions() int { return len(l.partitions) }

func (l *Log) partition(i int) (*partition, error) {
	if i < 0 || i >= len(l.partitions) {
		return nil, fmt.Errorf("partition %d does not exist, the log has %d", i, len(l.partitions))
	}
	return l.partitions[i], nil
}

// Append implements [eventlog.Log].
func (l *Log) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	w, offset, err := l.enqueue(partition, data, nil)
	if err != nil {
		return 0, err
	}
	gone, err := w.wait(ctx.Done())
	if gone {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, err
	}
	return offset, nil
}

// AppendThen implements [eventlog.Notifier].
func (l *Log) AppendThen(partition int, data []byte, f eventlog.Failer) (int64, error) {
	_, offset, err := l.enqueue(partition, data, f)
	return offset, err
}

func (l *Log) enqueue(partition int, data []byte, f eventlog.Failer) (*waiter, int64, error) {
	p, err := l.partition(partition)
	if err != nil {
		return nil, 0, err
	}
	if len(data) > l.opts.MaxRecordBytes {
		p.counters.refusedTooLarge.Add(1)
		return nil, 0, fmt.Errorf("%w: %d bytes, the limit is %d", eventlog.ErrTooLarge, len(data), l.opts.MaxRecordBytes)
	}
	return p.enqueue(data, f)
}

// Bounds implements [eventlog.Log].
func (l *Log) Bounds(_ context.Context, partition int) (start, end int64, err error) {
	p, err := l.partition(partition)
	if err != nil {
		return 0, 0, err
	}
	start, end = p.bounds()
	return start, end, nil
}

// Stats returns a snapshot.
func (l *Log) Stats() Stats {
	s := Stats{Failed: l.failed() != nil}
	for _, p := range l.partitions {
		c := &p.counters
		s.Appended += c.appended.Load()
		s.AppendedBytes += c.appendedBytes.Load()
		s.Batches += c.batches.Load()
		s.RefusedFull += c.refusedFull.Load()
		s.RefusedTooLarge += c.refusedTooLarge.Load()
		s.RefusedFailed += c.refusedFailed.Load()
		s.RefusedNoSpace += c.refusedNoSpace.Load()
		s.Fsyncs += c.fsyncs.Load()
		s.FsyncTime += time.Duration(c.fsyncNanos.Load())
		s.CutBytes += c.cutBytes.Load()
		p.mu.Lock()
		s.NoSpace = s.NoSpace || p.mu.noSpace
		s.QueueRecords += p.mu.queuedRecords
		s.QueueBytes += p.mu.queuedBytes
		s.Segments += len(p.mu.segments)
		for _, seg := range p.mu.segments {
			s.DiskBytes += seg.bytes
		}
		p.mu.Unlock()
	}
	return s
}

// Noticed returns the damage that was met while the log was in use, one error for each
// file, in the order of their names. [Log.Scrub] drops that of files which it finds
// whole.
func (l *Log) Noticed() (out []*eventlog.CorruptError) {
	l.noticed.Lock()
	defer l.noticed.Unlock()
	for _, e := range l.noticed.byFile {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *eventlog.CorruptError) int { return strings.Compare(a.File, b.File) })
	return out
}

// Close implements [eventlog.Log]. Records that wait are still made durable;
// readers get ErrClosed.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		for _, p := range l.partitions {
			p.mu.Lock()
			p.mu.closed = true
			p.mu.Unlock()
		}
		close(l.closing)
		l.writers.Wait()
		for _, p := range l.partitions {
			// A redaction or a trim that has begun is ended before another process may open
			// the files. None begins behind this.
			p.trimMu.Lock()
			p.trimMu.Unlock() //nolint:staticcheck // it is waited for
		}
		l.noteEndsQuietly(true)
		l.closeErr = l.release((*partition).stop)
	})
	return l.closeErr
}

// release ends the partitions and gives up the directory.
func (l *Log) release(end func(*partition) error) error {
	var errs []error
	for _, p := range l.partitions {
		errs = append(errs, end(p))
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}

// failed returns the error of a log that has failed, nil before.
func (l *Log) failed() error {
	if p := l.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// fail makes the log fail for good and returns the error that all waiting and
// later appends get: that of the first failure.
func (l *Log) fail(cause error) error {
	err := fmt.Errorf("%w: %w", eventlog.ErrFailed, cause)
	if l.failure.CompareAndSwap(nil, &err) {
		l.opts.Logger.Error("log has failed, nothing more is acknowledged until it is opened again", "dir", l.dir, "err", cause)
		for _, p := range l.partitions {
			p.kick()
		}
	}
	return l.failed()
}

func (l *Log) random64() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(l.opts.Rand, b[:]); err != nil {
		return 0, fmt.Errorf("read random bytes: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// isLocked tells a lock that another process holds from one that cannot be made.
func isLocked(err error) bool {
	var open *fs.PathError
	if errors.As(err, &open) { // the file itself
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "held by current process")
}

// segmentSuffix ends the names of segment files.
const segmentSuffix = ".log"

// segmentName is the file name of the segment whose first record has this
// offset.
func segmentName(first int64) string { return fmt.Sprintf("%020d", first) + segmentSuffix }

// parseSegmentName returns the offset in a segment's file name.
func parseSegmentName(name string) (first int64, ok bool) { return parseName(name, segmentSuffix) }

// parseName returns the offset in the name of a file that ends with suffix.
func parseName(name, suffix string) (first int64, ok bool) {
	const digits = 20
	if len(name) != digits+len(suffix) || !strings.HasSuffix(name, suffix) {
		return 0, false
	}
	for _, c := range name[:digits] {
		if c < '0' || c > '9' || first > (math.MaxInt64-9)/10 {
			return 0, false
		}
		first = first*10 + int64(c-'0')
	}
	return first, true
}
