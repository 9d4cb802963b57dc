package file

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// Reader is an [eventlog.Reader] of one partition. It is in one of three
// places: in a memory block, in a segment file, or nowhere (at the end, or
// about to look for its place). Next looks at ctx only when it has used up
// what it has in hand, at most a block or a segment.
type Reader struct {
	p *partition
	// next is the offset of the record to come.
	next int64
	// err is a fault that stays: damage, or a place that was trimmed.
	err error

	// wake is sent to when something became durable while waiting was set.
	wake    chan struct{}
	waiting bool // guarded by partition.mu

	// In memory: view is what is left of blk.buf[:seen]. The reader holds a
	// reference to blk.
	blk  *block
	seen int
	view []byte

	// In a file: records below until are in seg and durable.
	file  vfs.File
	seg   *segment
	scan  scanner
	until int64
}

// Read implements [eventlog.Log].
func (l *Log) Read(partition int, from int64) (eventlog.Reader, error) {
	p, err := l.partition(partition)
	if err != nil {
		return nil, err
	}
	r := &Reader{p: p, next: from, wake: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.closed:
		return nil, eventlog.ErrClosed
	case from < p.mu.start:
		return nil, fmt.Errorf("%w: offset %d of partition %d, the log starts at %d", eventlog.ErrTrimmed, from, partition, p.mu.start)
	case from > p.mu.durable:
		return nil, fmt.Errorf("offset %d of partition %d is beyond the end of the log, %d", from, partition, p.mu.durable)
	}
	p.mu.readers[r] = struct{}{}
	return r, nil
}

// Next implements [eventlog.Reader].
func (r *Reader) Next(ctx context.Context) (eventlog.Entry, error) {
	for {
		select {
		case <-r.p.log.closing:
			return eventlog.Entry{}, eventlog.ErrClosed
		default:
		}
		if r.err != nil {
			return eventlog.Entry{}, r.err
		}
		if e, ok := r.fromMemory(); ok {
			return e, nil
		}
		if r.file != nil && r.next < r.until {
			return r.fromFile()
		}
		if err := r.advance(ctx); err != nil {
			return eventlog.Entry{}, err
		}
	}
}

// NextAtHand implements [eventlog.Window]: what is left of the view is at hand, which is the
// rest of the newest commits as far as they are in one block.
func (r *Reader) NextAtHand() (eventlog.Entry, bool) {
	if r.err != nil {
		return eventlog.Entry{}, false
	}
	return r.fromMemory()
}

// Close implements [eventlog.Reader].
func (r *Reader) Close() error {
	r.p.mu.Lock()
	delete(r.p.mu.readers, r)
	r.leaveBlock()
	r.p.mu.Unlock()
	r.err = eventlog.ErrClosed
	return r.closeFile()
}

// fromMemory returns the next record of the view.
func (r *Reader) fromMemory() (eventlog.Entry, bool) {
	for len(r.view) > 0 {
		offset, data, size := frameAt(r.view)
		r.view = r.view[size:]
		// Behind the place where the reader came into the block.
		if offset < r.next {
			continue
		}
		r.next = offset + 1
		return eventlog.Entry{Offset: offset, Data: data}, true
	}
	return eventlog.Entry{}, false
}

// fromFile returns the next record of the segment file.
func (r *Reader) fromFile() (eventlog.Entry, error) {
	for {
		offset := r.scan.next
		data, err := r.scan.record()
		if err != nil {
			return eventlog.Entry{}, r.fileError(err)
		}
		// Behind the place where the reader came into the file.
		if offset < r.next {
			continue
		}
		r.next = offset + 1
		return eventlog.Entry{Offset: offset, Data: data}, nil
	}
}

// fileError turns what the scanner met into the reader's error. Below until
// every record must be there, unless it was trimmed meanwhile.
func (r *Reader) fileError(err error) error {
	defer func() { _ = r.closeFile() }() // it was read only
	var flt *fault
	start, _ := r.p.bounds()
	switch {
	case r.next < start: // what was redacted of it is gone, too
		r.err = fmt.Errorf("%w: offset %d of partition %d, the log starts at %d", eventlog.ErrTrimmed, r.next, r.p.id, start)
		return r.err
	case errors.Is(err, errMark) || errors.Is(err, errSeal):
		flt = &fault{pos: r.scan.batchPos, reason: "the records end before their time"}
	case errors.As(err, new(*eventlog.CorruptError)): // a sidecar
		r.err = r.p.log.noticed.notice(err)
		return err
	case !errors.As(err, &flt):
		// The place may be found again when the fault passes.
		return fmt.Errorf("read %s: %w", r.seg.path, err)
	}
	r.err = r.p.log.noticed.notice(&eventlog.CorruptError{File: r.seg.path, Position: flt.pos, Offset: r.scan.next, Reason: flt.reason})
	return r.err
}

// advance finds the next durable records, or waits for some. After nil the
// reader has a view, a file, or should look again.
func (r *Reader) advance(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := r.p
	p.mu.Lock()
	if r.nextView() {
		p.mu.Unlock()
		return r.closeFile()
	}
	if r.next < p.mu.start {
		err := fmt.Errorf("%w: offset %d of partition %d, the log starts at %d", eventlog.ErrTrimmed, r.next, p.id, p.mu.start)
		p.mu.Unlock()
		r.err = err
		_ = r.closeFile() // it was read only
		return err
	}
	if r.next < p.mu.durable {
		seg, end := p.locate(r.next)
		limit := p.mu.durablePos
		if seg != p.last() {
			limit = seg.bytes
		}
		until := min(end, p.mu.durable)
		at := seg.seek(r.next)
		p.mu.Unlock()
		return r.enterFile(seg, at, limit, until)
	}
	r.waiting = true
	p.mu.Unlock()
	select {
	case <-r.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.log.closing:
		return eventlog.ErrClosed
	}
}

// nextView moves the reader to the next durable bytes in memory. mu is held.
func (r *Reader) nextView() bool {
	p := r.p
	if b := r.blk; b != nil {
		if b.durable > r.seen {
			r.view = b.buf[r.seen:b.durable]
			r.seen = b.durable
			return true
		}
		n := b.next
		if n == nil && b == p.mu.chain.tail {
			return false
		}
		if n != nil && n.durable == 0 {
			return false
		}
		r.leaveBlock()
		if n != nil {
			r.enterBlock(n)
			return true
		}
		// The block was dropped from the chain while the reader was in it.
	}
	if r.next >= p.mu.durable {
		return false
	}
	if b := p.mu.chain.find(r.next); b != nil {
		r.enterBlock(b)
		return true
	}
	return false
}

func (r *Reader) enterBlock(b *block) {
	b.refs++
	r.blk = b
	r.seen = b.durable
	r.view = b.buf[:b.durable]
}

// leaveBlock gives the block back. mu is held.
func (r *Reader) leaveBlock() {
	if r.blk != nil {
		r.p.mu.chain.release(r.blk)
	}
	r.blk, r.view, r.seen = nil, nil, 0
}

// enterFile makes the reader read seg from the batch at on.
func (r *Reader) enterFile(seg *segment, at indexEntry, limit, until int64) error {
	if r.file != nil && r.seg == seg && r.scan.next == r.next {
		r.scan.limit, r.until = limit, until
		return nil
	}
	_ = r.closeFile() // it was read only
	f, err := r.p.log.opts.FS.Open(seg.path)
	if err != nil {
		if start, _ := r.p.bounds(); isNotExist(err) && r.next < start {
			// Trimmed just now: the next round says so.
			return nil
		}
		return fmt.Errorf("open %s: %w", seg.path, err)
	}
	r.file, r.seg, r.until = f, seg, until
	r.scan.reset(f, seg.header.salt, at.pos, at.offset)
	r.scan.limit = limit
	r.scan.lookUp, r.scan.endLook = r.p.sidecarOf(seg)
	return nil
}

func (r *Reader) closeFile() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file, r.seg, r.until = nil, nil, 0
	r.scan.file = nil
	if max(cap(r.scan.unpacked), cap(r.scan.buf)) > 2*maxBatchBytes { // a record as large as that is rare
		r.scan.unpacked, r.scan.buf = nil, nil
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close a log segment: %w", err)
	}
	return nil
}

// notify wakes the reader if it waits. partition.mu is held.
func (r *Reader) notify() {
	if !r.waiting {
		return
	}
	r.waiting = false
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
