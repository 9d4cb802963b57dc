package file

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// writer is the state of the goroutine that commits a partition's batches.
type writer struct {
	file vfs.File
	seg  *segment
	// pos is where the next batch goes: behind the last durable one.
	pos int64
	// filled is the file's size: up to there space has been written.
	filled int64
	// marked is set when a mark stands at pos.
	marked bool
	mark   [batchHeaderSize]byte
	// packed is the batch being written as it is on disk, head included. gathered is memory
	// for the records of one that lie in several blocks.
	packed, gathered []byte
}

// zeros is what space ahead of use is written with. It is never changed.
var zeros [64 << 10]byte

// writeZeros writes zeros to [from, to) of f and returns how far it came.
func writeZeros(f vfs.File, from, to int64) (int64, error) {
	for from < to {
		n, err := f.WriteAt(zeros[:min(to-from, int64(len(zeros)))], from)
		from += int64(n)
		if err != nil {
			return from, err
		}
	}
	return from, nil
}

// run commits until the log closes.
func (p *partition) run() {
	for {
		for p.step() {
			// Let the appenders just woken bring their next records, so that
			// they share an fsync instead of taking turns.
			runtime.Gosched()
		}
		p.idle()
		select {
		case <-p.wake:
		case <-p.log.closing:
			for p.step() {
			}
			return
		}
	}
}

// step commits the oldest waiting batch and answers its appenders. It returns
// false when nothing waited.
func (p *partition) step() bool {
	b := p.take()
	if b == nil {
		return false
	}
	err := p.log.failed()
	if err == nil {
		switch err = p.commit(b); {
		case errors.Is(err, eventlog.ErrNoSpace):
			p.refuse(b, fmt.Errorf("partition %d: %w", p.id, err))
			return true
		case err != nil:
			err = p.log.fail(fmt.Errorf("partition %d: %w", p.id, err))
		}
	}
	p.finish(b, err)
	return true
}

// commit makes the batch durable. After [eventlog.ErrNoSpace] nothing of it was
// written, and it may be tried again, or another in its place.
func (p *partition) commit(b *batch) error {
	w := &p.w
	w.pack(b)
	size := int64(len(w.packed))
	if (p.rollNext.Swap(false) || w.pos+size > p.log.opts.SegmentBytes) && w.pos > segmentHeaderSize {
		if err := p.roll(b.offset); err != nil {
			// It is still due: the next try begins the same segment.
			p.rollNext.Store(true)
			return err
		}
	}
	if err := p.fill(size); err != nil {
		return err
	}
	head := batchHeader{kind: batchPacked, first: b.offset, body: uint32(size - batchHeaderSize), records: uint32(b.records), unpacked: uint32(b.body)}
	head.encode(w.packed, w.seg.header.salt, w.pos)
	w.marked = false
	if _, err := w.file.WriteAt(w.packed, w.pos); err != nil {
		return fmt.Errorf("write %s: %w", w.seg.path, err)
	}
	if err := p.sync(); err != nil {
		return err
	}
	w.pos += size
	p.spaceAgain()
	return nil
}

// pack makes the batch as it is on disk, with room for its head.
func (w *writer) pack(b *batch) {
	if cap(w.packed) > 2*maxBatchBytes { // a record as large as that is rare
		w.packed, w.gathered = nil, nil
	}
	records := b.first.buf[b.start:]
	if b.first == b.last {
		records = records[:b.body]
	} else {
		w.gathered = slices.Grow(w.gathered[:0], b.body)
		for blk, from := b.first, b.start; ; blk, from = blk.next, 0 {
			if blk == b.last { // it may be filling with the next batch
				w.gathered = append(w.gathered, blk.buf[from:b.end]...)
				break
			}
			w.gathered = append(w.gathered, blk.buf[from:blk.n]...)
		}
		records = w.gathered
	}
	w.packed = pack(append(w.packed[:0], w.mark[:]...), records)
}

// fill writes space ahead, so that size bytes at pos lie in written space. On a
// full disk it makes do with what there is; if that is too little the error is
// [eventlog.ErrNoSpace], and what was written counts for the next try.
func (p *partition) fill(size int64) error {
	w := &p.w
	end := w.pos + size
	if end <= w.filled {
		return nil
	}
	step := p.log.opts.fillBytes()
	to := (end + step - 1) / step * step
	to = min(to, max(end, p.log.opts.SegmentBytes))
	var err error
	if w.filled, err = writeZeros(w.file, w.filled, to); err == nil {
		return nil
	}
	err = eventlog.OutOfSpace(err)
	if errors.Is(err, eventlog.ErrNoSpace) && end <= w.filled {
		return nil
	}
	return fmt.Errorf("write %s: %w", w.seg.path, err)
}

// sync makes what was written to the segment durable. A failure is final: the
// kernel may have dropped the bytes, and a second fsync would then succeed.
func (p *partition) sync() error {
	w := &p.w
	begin := p.log.opts.Now()
	err := w.file.SyncData()
	took := p.log.opts.Now().Sub(begin)
	p.counters.fsyncs.Add(1)
	p.counters.fsyncNanos.Add(uint64(max(took, 0)))
	if p.log.opts.OnSync != nil {
		p.log.opts.OnSync(p.id, took)
	}
	if err != nil {
		return fmt.Errorf("fsync %s: %w", w.seg.path, err)
	}
	return nil
}

// roll begins the segment whose first record is at offset first and seals the
// one before.
func (p *partition) roll(first int64) error {
	w := &p.w
	// Once the file is there, nothing may lack space.
	if err := p.fill(batchHeaderSize); err != nil {
		return err
	}
	f, seg, err := p.create(first, w.seg.header.first)
	if err != nil {
		return err
	}
	err = p.putMark(batchSeal, first)
	if err == nil {
		err = p.sync()
	}
	if err != nil {
		f.Close()
		return err
	}
	old := w.file
	w.file, w.seg = f, seg
	filled := w.filled
	w.pos, w.filled, w.marked = segmentHeaderSize, seg.bytes, false
	p.mu.Lock()
	p.last().bytes = filled
	p.mu.segments = append(p.mu.segments, seg)
	p.mu.durablePos = segmentHeaderSize
	p.mu.Unlock()
	if err := old.Close(); err != nil {
		// Everything in it is durable.
		p.log.opts.Logger.Warn("closing a full log segment failed", "partition", p.id, "err", err)
	}
	return nil
}

// putMark writes a head without a body at pos. The next batch overwrites it.
func (p *partition) putMark(kind batchKind, next int64) error {
	w := &p.w
	if err := p.fill(batchHeaderSize); err != nil {
		return err
	}
	h := batchHeader{kind: kind, first: next}
	h.encode(w.mark[:], w.seg.header.salt, w.pos)
	if _, err := w.file.WriteAt(w.mark[:], w.pos); err != nil {
		return fmt.Errorf("write %s: %w", w.seg.path, err)
	}
	w.marked = true
	return nil
}

// idle marks the newest batch as durable when nothing else is to be done. The
// mark reaches the disk with the next fsync or when the kernel likes; see
// doc.go.
func (p *partition) idle() {
	if p.w.marked || p.log.failed() != nil {
		return
	}
	_, end := p.bounds()
	// Without space there is no mark: it is tried again behind the next batch.
	if err := p.putMark(batchMark, end); err != nil && !errors.Is(err, eventlog.ErrNoSpace) {
		_ = p.log.fail(fmt.Errorf("partition %d: %w", p.id, err))
	}
}

// stop ends the partition's files after the last step. A log that has failed
// is left as it is.
func (p *partition) stop() error {
	w := &p.w
	if w.file == nil {
		return nil
	}
	p.idle()
	var err error
	if p.log.failed() == nil {
		if err = p.sync(); err != nil {
			_ = p.log.fail(fmt.Errorf("partition %d: %w", p.id, err))
		}
	}
	return errors.Join(err, p.abandon())
}

// abandon closes the partition's file as it is.
func (p *partition) abandon() error {
	w := &p.w
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", w.seg.path, err)
	}
	return nil
}

// finish publishes a batch that is durable (err nil) or lost, and answers its
// appenders. The batch is recycled.
func (p *partition) finish(b *batch, err error) {
	list := b.waiters
	p.mu.Lock()
	p.mu.queuedBytes -= int64(b.body)
	p.mu.queuedRecords -= b.records
	if err == nil {
		p.publish(b)
	}
	records, bytes := b.records, b.body-b.records*frameOverhead
	*b = batch{next: p.mu.freeBatches}
	p.mu.freeBatches = b
	p.mu.Unlock()

	if err == nil {
		p.counters.appended.Add(uint64(records))
		p.counters.appendedBytes.Add(uint64(bytes))
		p.counters.batches.Add(1)
	} else if errors.Is(err, eventlog.ErrNoSpace) {
		p.counters.refusedNoSpace.Add(uint64(records))
	} else {
		p.counters.refusedFailed.Add(uint64(records))
	}
	for list != nil {
		w := list
		list = w.next
		w.next = nil
		if f := w.failer; f != nil {
			w.failer = nil
			waiters.Put(w)
			if err != nil {
				f.AppendFailed(err)
			}
			continue
		}
		if w.state.CompareAndSwap(waiterWaiting, waiterDone) {
			w.done <- err
		} else {
			waiters.Put(w)
		}
	}
}

// publish makes the batch readable. mu is held.
func (p *partition) publish(b *batch) {
	for blk := b.first; ; blk = blk.next {
		if blk == b.last {
			blk.durable = b.end
			break
		}
		blk.durable = blk.n
	}
	p.mu.durable = b.offset + int64(b.records)
	p.mu.durablePos = p.w.pos
	seg := p.last()
	seg.addIndex(b.offset, p.w.pos-int64(len(p.w.packed)))
	seg.bytes = p.w.filled
	p.mu.chain.evict(p.log.opts.TailBytes)
	for r := range p.mu.readers {
		r.notify()
	}
}

// wait returns when the batch of w is durable, has failed, or cancel fires
// first; then w must not be used any more. gone reports the last case.
func (w *waiter) wait(cancel <-chan struct{}) (gone bool, err error) {
	select {
	case err = <-w.done:
	case <-cancel:
		if w.state.CompareAndSwap(waiterWaiting, waiterGone) {
			return true, nil
		}
		err = <-w.done
	}
	waiters.Put(w)
	return false, err
}

var (
	_ eventlog.Log      = (*Log)(nil)
	_ eventlog.Notifier = (*Log)(nil)
)
