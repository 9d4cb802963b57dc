package file

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// maxBatchBytes ends a batch; what waits beyond it is the next batch. At this
// size the cost of an fsync is small against that of the bytes.
const maxBatchBytes = 4 << 20

// indexEveryBytes is how far apart the entries of a segment's index are.
const indexEveryBytes = 256 << 10

// partition is one ordered sequence of records: its files, its queue and its
// readers.
type partition struct {
	log *Log
	id  int
	dir string

	// wake signals the writer that something is in the queue.
	wake chan struct{}

	// rollNext asks the writer for a new segment, see Roll.
	rollNext atomic.Bool

	// trimMu lets one Trim or Redact run at a time. It is taken before mu.
	trimMu sync.Mutex

	// linked are the directories that Link made and LinkSidecars has not completed. trimMu
	// guards it.
	linked map[string]struct{}

	// redactMu is held while the bytes of a segment are redacted, and by readers
	// that look up what was. It is taken behind trimMu, without mu.
	redactMu sync.RWMutex

	mu struct {
		sync.Mutex
		closed bool
		// next is the offset the next appended record gets.
		next int64
		// durable follows the newest durable record; durablePos is the byte
		// position behind it in the last segment.
		durable    int64
		durablePos int64
		// start is the oldest offset kept.
		start int64
		// segments are the files from the oldest to the one being written.
		segments []*segment
		// garbage are trimmed files that could not be removed yet.
		garbage []string

		chain chain
		// queue are the batches that wait, oldest first; the last is open for
		// more records.
		queueHead, queueTail *batch
		freeBatches          *batch
		// queuedBytes and queuedRecords count what is not durable, the batch
		// being written included.
		queuedBytes   int64
		queuedRecords int

		// noSpace is set when the last batch found no space; until retry no
		// other is tried.
		noSpace bool
		retry   time.Time

		readers map[*Reader]struct{}
	}

	counters counters

	// found is set between look and recover.
	found found
	// noted is what the file end says; see Log.endsMu.
	noted noted

	// w belongs to the goroutine that commits.
	w writer
}

// segment is one file of a partition. Guarded by partition.mu.
type segment struct {
	header segmentHeader
	path   string
	// bytes is the file's size.
	bytes int64
	// index holds batch starts in order, sparse. The first entry is the start
	// of the segment's records.
	index []indexEntry
}

// indexEntry says that the batch at byte position pos begins with offset.
type indexEntry struct {
	offset, pos int64
}

func (s *segment) addIndex(offset, pos int64) {
	if n := len(s.index); n == 0 || pos-s.index[n-1].pos >= indexEveryBytes {
		s.index = append(s.index, indexEntry{offset, pos})
	}
}

// seek returns the indexed batch start nearest before the record at offset.
func (s *segment) seek(offset int64) indexEntry {
	i := sort.Search(len(s.index), func(i int) bool { return s.index[i].offset > offset })
	return s.index[i-1]
}

// batch is what one write and one fsync make durable. Guarded by partition.mu
// while it is queued; then it belongs to the writer.
type batch struct {
	// Its records begin at start of block first and end at end of block last.
	first, last *block
	start, end  int
	// offset is that of its first record.
	offset  int64
	records int
	// body is the length of the records with their frames.
	body    int
	waiters *waiter
	next    *batch
}

// waiter is a call of Append that waits for its batch, or the failer of a record for which
// no call waits.
type waiter struct {
	done   chan error
	state  atomic.Int32
	failer eventlog.Failer // nil for one that waits
	next   *waiter
}

const (
	waiterWaiting = iota
	// waiterDone: the writer has sent, or is about to send, the result.
	waiterDone
	// waiterGone: Append has returned; the writer recycles the waiter.
	waiterGone
)

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan error, 1)} }}

// enqueue puts the record into the queue. Without f, the writer notifies the waiter when
// the record is durable or never will be. With f, the caller must not wait: the writer
// calls f if the record never will be durable.
func (p *partition) enqueue(data []byte, f eventlog.Failer) (*waiter, int64, error) {
	size := len(data) + frameOverhead
	opts := &p.log.opts
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, 0, eventlog.ErrClosed
	}
	if err := p.log.failed(); err != nil {
		p.mu.Unlock()
		p.counters.refusedFailed.Add(1)
		return nil, 0, err
	}
	if p.mu.noSpace && opts.Now().Before(p.mu.retry) {
		p.mu.Unlock()
		p.counters.refusedNoSpace.Add(1)
		return nil, 0, p.noSpace()
	}
	if p.mu.queuedBytes+int64(size) > opts.QueueBytes || p.mu.queuedRecords >= opts.QueueRecords {
		bytes, records := p.mu.queuedBytes, p.mu.queuedRecords
		p.mu.Unlock()
		p.counters.refusedFull.Add(1)
		return nil, 0, fmt.Errorf("%w: %d bytes in %d records wait on partition %d", eventlog.ErrQueueFull, bytes, records, p.id)
	}
	offset := p.mu.next
	b := p.mu.queueTail
	if b == nil || b.body+size > maxBatchBytes {
		b = p.newBatch(size)
	}
	blk := p.room(size)
	blk.n += putFrame(blk.buf[blk.n:], offset, data)
	b.last, b.end = blk, blk.n
	b.body += size
	b.records++
	p.mu.next++
	p.mu.queuedBytes += int64(size)
	p.mu.queuedRecords++
	w := waiters.Get().(*waiter)
	w.state.Store(waiterWaiting)
	w.failer = f
	w.next = b.waiters
	b.waiters = w
	p.mu.Unlock()
	p.kick()
	return w, offset, nil
}

// room returns the block that takes the next size bytes. mu is held.
func (p *partition) room(size int) *block {
	if t := p.mu.chain.tail; t != nil && t.n+size <= len(t.buf) {
		return t
	}
	return p.mu.chain.grow(size, p.mu.next)
}

// newBatch opens a batch whose first record takes size bytes. mu is held.
func (p *partition) newBatch(size int) *batch {
	b := p.mu.freeBatches
	if b != nil {
		p.mu.freeBatches = b.next
		*b = batch{}
	} else {
		b = new(batch)
	}
	blk := p.room(size)
	b.first, b.start = blk, blk.n
	b.offset = p.mu.next
	if p.mu.queueTail == nil {
		p.mu.queueHead = b
	} else {
		p.mu.queueTail.next = b
	}
	p.mu.queueTail = b
	return b
}

// take removes the oldest batch from the queue, nil when nothing waits.
func (p *partition) take() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.mu.queueHead
	if b == nil {
		return nil
	}
	p.mu.queueHead = b.next
	if b.next == nil {
		p.mu.queueTail = nil
	}
	b.next = nil
	return b
}

// kick wakes the writer.
func (p *partition) kick() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// last is the segment being written. mu is held.
func (p *partition) last() *segment {
	return p.mu.segments[len(p.mu.segments)-1]
}

// locate returns the segment that holds offset, which must not be below start,
// and the offset at which the next segment begins. mu is held.
func (p *partition) locate(offset int64) (*segment, int64) {
	segs := p.mu.segments
	i := sort.Search(len(segs), func(i int) bool { return segs[i].header.first > offset })
	if i == len(segs) {
		return segs[i-1], math.MaxInt64
	}
	return segs[i-1], segs[i].header.first
}

func (p *partition) segmentPath(first int64) string {
	return p.log.opts.FS.PathJoin(p.dir, segmentName(first))
}

func (p *partition) bounds() (start, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.start, p.mu.durable
}

// create makes the segment file for records from first on. When it returns the
// file is durable and ready to take batches.
func (p *partition) create(first, prev int64) (vfs.File, *segment, error) {
	fsys := p.log.opts.FS
	salt, err := p.log.random64()
	if err != nil {
		return nil, nil, err
	}
	h := segmentHeader{version: packedVersion, partition: p.id, first: first, prev: prev, salt: salt, logID: p.log.id}
	path := p.segmentPath(first)
	if _, err := fsys.Stat(path); err == nil {
		return nil, nil, fmt.Errorf("create segment %s: it exists", path)
	} else if !isNotExist(err) {
		return nil, nil, fmt.Errorf("create segment %s: %w", path, err)
	}
	f, err := fsys.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, nil, fmt.Errorf("create segment %s: %w", path, eventlog.OutOfSpace(err))
	}
	if _, err = writeZeros(f, segmentHeaderSize, p.log.opts.fillBytes()); err == nil {
		_, err = f.WriteAt(h.encode(), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		if err = eventlog.OutOfSpace(err); errors.Is(err, eventlog.ErrNoSpace) {
			// Nothing depends on the file yet, and its name will be used again.
			if fault := remove(fsys, path); fault != nil {
				err = fault
			}
		}
		return nil, nil, fmt.Errorf("create segment %s: %w", path, err)
	}
	if err = syncDir(fsys, p.dir); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("create segment %s: %w", path, err)
	}
	return f, &segment{
		header: h, path: path, bytes: p.log.opts.fillBytes(),
		index: []indexEntry{{first, segmentHeaderSize}},
	}, nil
}
