package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// Redact takes bytes out of records for good. list is in order of offsets and has
// each once; records below the start of the log are passed over. The records must
// be in segments that are no longer written, else the error is [eventlog.ErrBeingWritten]
// and nothing is changed: the same list may come again. After another error some of
// the list may have been carried out; its places then no longer fit, and a list must
// be made of the records as they are read now.
//
// Readers get each record as it was or as it is to be; those that are made after Redact has
// returned nil, as it is to be. The bytes are then out of the files.
func (l *Log) Redact(ctx context.Context, partition int, list []eventlog.Redaction) (err error) {
	p, err := l.partition(partition)
	if err != nil {
		return err
	}
	defer func() { _ = l.noticed.notice(err) }()
	p.trimMu.Lock()
	defer p.trimMu.Unlock()
	if n := len(list); n > 0 {
		p.mu.Lock()
		written := list[n-1].Offset >= p.last().header.first
		p.mu.Unlock()
		if written {
			return fmt.Errorf("redact offset %d of partition %d: %w", list[n-1].Offset, p.id, eventlog.ErrBeingWritten)
		}
	}
	for len(list) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case <-l.closing:
			return eventlog.ErrClosed
		default:
		}
		p.mu.Lock()
		if list[0].Offset < p.mu.start {
			p.mu.Unlock()
			list = list[1:]
			continue
		}
		seg, end := p.locate(list[0].Offset)
		p.mu.Unlock()
		n := len(list)
		if i := slices.IndexFunc(list, func(r eventlog.Redaction) bool { return r.Offset >= end }); i >= 0 {
			n = i
		}
		if err := p.redactSegment(seg, end, list[:n]); err != nil {
			return fmt.Errorf("redact %s: %w", seg.path, err)
		}
		list = list[n:]
	}
	return nil
}

// redactSegment redacts records of one segment, whose records end before end.
func (p *partition) redactSegment(seg *segment, end int64, list []eventlog.Redaction) error {
	p.redactMu.Lock()
	defer p.redactMu.Unlock()
	have, err := readSidecar(p.log.opts.FS, seg)
	if err != nil {
		return err
	}
	undone, err := redacting(p.log.opts.FS, seg)
	if err != nil {
		return err
	}
	if _, err := p.log.opts.FS.Stat(seg.path); isNotExist(err) { // opening it would make it
		return missing(seg)
	}
	f, err := p.log.opts.FS.OpenReadWrite(seg.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	now, at, err := replaceBatches(f, seg, have, undone, list)
	if err == nil && len(at) > 0 {
		if err = p.writeSidecar(seg, now); err == nil {
			p.mu.Lock()
			p.mu.chain.forget(end)
			p.mu.Unlock()
		}
	}
	if err == nil && undone {
		at, err = placesOf(f, seg, now)
	}
	if err == nil {
		err = p.carryOut(seg, f, now, at)
	}
	return errors.Join(err, f.Close())
}

// redacting reports whether a redaction of the segment was not ended.
func redacting(fsys vfs.FS, seg *segment) (bool, error) {
	_, err := fsys.Stat(seg.sidecarPath(redactingSuffix))
	if isNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// place is where a batch stands in its segment: the first byte behind its head, and its
// length from there.
type place struct {
	pos  int64
	size int
}

// eachBatch calls fn behind the head of each batch of a segment that is no longer written, up
// to the last one that is wanted. fn may read the batch's records.
func eachBatch(f vfs.File, seg *segment, have sidecar, undone bool, last int64, fn func(s *scanner) error) error {
	var s scanner
	s.reset(f, seg.header.salt, segmentHeaderSize, seg.header.first)
	s.knows(have, undone)
	var err error
	for err == nil && s.next <= last {
		if err = s.head(); err != nil {
			break
		}
		before := s.next
		if err = fn(&s); err == nil && s.next == before {
			s.skip()
		}
	}
	var flt *fault
	switch {
	case errors.Is(err, errMark) || errors.Is(err, errSeal):
		err = fmt.Errorf("the records end before offset %d", s.next)
	case errors.As(err, &flt):
		err = &eventlog.CorruptError{File: seg.path, Position: flt.pos, Offset: s.next, Reason: flt.reason}
	}
	return err
}

// replaceBatches makes what is to stand beside the segment instead of what stands there now:
// with the list carried out, and in the place of records the batches that they are in. It
// returns where the batches stand whose bytes are to go. undone says that those of what
// stands there now may not have gone yet.
func replaceBatches(f vfs.File, seg *segment, have sidecar, undone bool, list []eventlog.Redaction) (now sidecar, at map[int64]place, err error) {
	now, at = sidecar{batches: map[int64]*replaced{}}, map[int64]place{}
	maps.Copy(now.batches, have.batches)
	// wanted are the offsets of records that are to be replaced, in order.
	wanted := slices.Sorted(maps.Keys(have.records))
	for _, r := range list {
		wanted = append(wanted, r.Offset)
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	if len(wanted) == 0 {
		return now, at, nil
	}
	err = eachBatch(f, seg, have, undone, wanted[len(wanted)-1], func(s *scanner) error {
		first, end := s.next, s.next+int64(s.batch.records)
		from, _ := slices.BinarySearch(wanted, first)
		to, _ := slices.BinarySearch(wanted, end)
		if from == to {
			return nil
		}
		at[first] = place{s.pos(), int(s.batch.body)}
		x := &replaced{records: s.batch.records}
		for _, offset := range wanted[from:to] {
			x.redacted = append(x.redacted, uint32(offset-first))
		}
		if old := have.batches[first]; old != nil {
			x.redacted = slices.Compact(slices.Sorted(slices.Values(append(x.redacted, old.redacted...))))
		}
		if err := s.load(); err != nil {
			return err
		}
		var records []byte
		for s.next < end {
			data, err := s.recordOf()
			if err != nil {
				return err
			}
			offset := s.next - 1
			if i, ok := slices.BinarySearchFunc(list, offset, func(r eventlog.Redaction, o int64) int { return int(r.Offset - o) }); ok {
				text, ok := list[i].Apply(nil, data)
				if !ok {
					return fmt.Errorf("the redaction of offset %d does not fit its record of %d bytes", offset, len(data))
				}
				data = text
			}
			records = appendFrame(records, offset, data)
		}
		if len(records) > maxUnpacked {
			return fmt.Errorf("the redaction makes %d bytes of the records from offset %d on, the most is %d", len(records), first, maxUnpacked)
		}
		x.unpacked, x.packed = uint32(len(records)), pack(nil, records)
		now.batches[first] = x
		return nil
	})
	return now, at, err
}

// placesOf finds all batches that the sidecar has, and looks whether that can be read: it is
// all that is left of them then.
func placesOf(f vfs.File, seg *segment, list sidecar) (map[int64]place, error) {
	at := map[int64]place{}
	if len(list.batches) == 0 {
		return at, nil
	}
	err := eachBatch(f, seg, list, true, slices.Max(slices.Collect(maps.Keys(list.batches))), func(s *scanner) error {
		x, first := list.batches[s.next], s.next
		if x == nil {
			return nil
		}
		at[first] = place{s.pos(), int(s.batch.body)}
		s.left = s.batch.records
		err := s.replaced(x)
		for err == nil && s.left > 0 {
			_, err = s.recordOf()
		}
		s.left, s.next = 0, first
		return err
	})
	return at, err
}

// carryOut overwrites the batches in at that the sidecar replaces, and notes that all of it
// is done.
func (p *partition) carryOut(seg *segment, f vfs.File, list sidecar, at map[int64]place) error {
	for _, first := range slices.Sorted(maps.Keys(at)) {
		x := at[first]
		if _, err := f.WriteAt(tombstone(x.size, list.batches[first].sum()), x.pos); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	fsys := p.log.opts.FS
	if err := fsys.Remove(seg.sidecarPath(redactingSuffix)); err != nil {
		return err
	}
	return syncDir(fsys, p.dir)
}

// finishRedactions carries out what a crash or a failure has left undone.
func (p *partition) finishRedactions() error {
	for _, seg := range p.mu.segments {
		undone, err := redacting(p.log.opts.FS, seg)
		if err != nil {
			return err
		}
		if !undone {
			continue
		}
		p.log.opts.Logger.Info("ending a redaction that was interrupted", "file", seg.path)
		if err := p.redactSegment(seg, seg.header.first, nil); err != nil { // no more than is begun
			return fmt.Errorf("end the redaction of %s: %w", seg.path, err)
		}
	}
	return nil
}

// sidecarOf returns what a reader of the segment looks up redactions with, and what
// ends that.
func (p *partition) sidecarOf(seg *segment) (look func() (list sidecar, pending bool, err error), end func()) {
	return func() (list sidecar, pending bool, err error) {
		p.redactMu.RLock()
		if pending, err = redacting(p.log.opts.FS, seg); err == nil {
			list, err = readSidecar(p.log.opts.FS, seg)
		}
		return list, pending, err
	}, p.redactMu.RUnlock
}

// sidecarName reports whether a file is a sidecar, and of which segment.
func sidecarName(name string) (first int64, ok bool) {
	if first, ok = parseName(name, redactedSuffix); ok {
		return first, true
	}
	return parseName(name, redactingSuffix)
}

// forget lets no reader take records below an offset from memory any more, and
// drops the blocks that hold no others.
func (c *chain) forget(end int64) {
	c.from = max(c.from, end)
	for c.head != c.tail && c.head.durable == c.head.n && c.head.next.durable > 0 && c.head.next.first <= end {
		b := c.head
		c.head = b.next
		b.next = nil
		c.bytes -= int64(len(b.buf))
		c.release(b)
	}
}
