package file

import (
	"context"
	"encoding/binary"
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
// Readers get each record as it was or as it is to be; those that come to it after
// Redact has returned nil, as it is to be. The bytes are then out of the files.
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
	now := sidecar{}
	maps.Copy(now, have)
	at := map[int64]frame{}
	for _, r := range list {
		at[r.Offset] = frame{}
	}
	f, err := p.findFrames(seg, have, at, func(offset int64, length int, data []byte) error {
		i, _ := slices.BinarySearchFunc(list, offset, func(r eventlog.Redaction, o int64) int { return int(r.Offset - o) })
		text, ok := list[i].Apply(nil, data)
		if !ok {
			return fmt.Errorf("the redaction of offset %d does not fit its record of %d bytes", offset, len(data))
		}
		var old []eventlog.Splice
		if x := have[offset]; x != nil {
			old = x.splices
		}
		now[offset] = &redacted{splices: resplice(length, old, list[i].Splices), sum: checksum(text)}
		return nil
	})
	if err != nil {
		return err
	}
	undone, err := p.redacting(seg)
	if err == nil {
		err = p.writeSidecar(seg, now)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	p.mu.Lock()
	p.mu.chain.forget(end)
	p.mu.Unlock()
	if undone {
		if err := f.Close(); err != nil {
			return err
		}
		return p.finishRedaction(seg, now)
	}
	return errors.Join(p.carryOut(seg, f, now, at), f.Close())
}

// redacting reports whether a redaction of the segment was not ended.
func (p *partition) redacting(seg *segment) (bool, error) {
	_, err := p.log.opts.FS.Stat(seg.sidecarPath(redactingSuffix))
	if isNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// frame is where a record stands in its segment: its first byte, and its length
// with its frame.
type frame struct {
	pos  int64
	size int
}

// findFrames finds the records that at names, and calls fn for each with its length
// as it was appended and as it is read. The file is open then; the caller closes it.
func (p *partition) findFrames(seg *segment, have sidecar, at map[int64]frame, fn func(offset int64, length int, data []byte) error) (vfs.File, error) {
	f, err := p.log.opts.FS.OpenReadWrite(seg.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	var s scanner
	s.reset(f, seg.header.salt, segmentHeaderSize, seg.header.first)
	s.redacted = have
	for missing := len(at); missing > 0; {
		var data []byte
		data, err = s.record()
		if err != nil {
			break
		}
		offset := s.next - 1
		if _, wanted := at[offset]; !wanted {
			continue
		}
		missing--
		x := frame{pos: s.pos() - int64(s.size), size: s.size}
		at[offset] = x
		if err = fn(offset, x.size-frameOverhead, data); err != nil {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	var flt *fault
	switch {
	case errors.Is(err, errMark) || errors.Is(err, errSeal):
		err = fmt.Errorf("the records end before offset %d", s.next)
	case errors.As(err, &flt):
		err = &eventlog.CorruptError{File: seg.path, Position: flt.pos, Offset: s.next, Reason: flt.reason}
	}
	return nil, err
}

// carryOut overwrites what the sidecar lists of the records in at, and notes that
// all of it is done.
func (p *partition) carryOut(seg *segment, f vfs.File, list sidecar, at map[int64]frame) error {
	for _, offset := range slices.Sorted(maps.Keys(at)) {
		if err := overwrite(f, at[offset], list[offset].splices); err != nil {
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

// overwrite puts zeros in the place of what the splices replace. The bytes that are
// kept are written as they are, so that a write that is torn leaves them.
func overwrite(f vfs.File, at frame, splices []eventlog.Splice) error {
	b := make([]byte, at.size)
	if n, err := f.ReadAt(b, at.pos); n < len(b) {
		return err
	}
	for _, s := range splices {
		clear(b[frameHeadSize+s.At:][:s.Len])
	}
	end := at.size - 4
	binary.LittleEndian.PutUint32(b[end:], checksum(b[:end])^redactedMask)
	from := end
	if len(splices) > 0 {
		from = min(from, frameHeadSize+splices[0].At)
	}
	_, err := f.WriteAt(b[from:], at.pos+int64(from))
	return err
}

// finishRedactions carries out what a crash or a failure has left undone.
func (p *partition) finishRedactions() error {
	for _, seg := range p.mu.segments {
		undone, err := p.redacting(seg)
		if err != nil {
			return err
		}
		if !undone {
			continue
		}
		list, err := readSidecar(p.log.opts.FS, seg)
		if err != nil {
			return err
		}
		p.log.opts.Logger.Info("ending a redaction that was interrupted", "file", seg.path, "records", len(list))
		if err := p.finishRedaction(seg, list); err != nil {
			return fmt.Errorf("end the redaction of %s: %w", seg.path, err)
		}
	}
	return nil
}

// finishRedaction overwrites all that the sidecar lists.
func (p *partition) finishRedaction(seg *segment, list sidecar) error {
	at := map[int64]frame{}
	for offset := range list {
		at[offset] = frame{}
	}
	f, err := p.findFrames(seg, list, at, func(int64, int, []byte) error { return nil })
	if err != nil {
		return err
	}
	return errors.Join(p.carryOut(seg, f, list, at), f.Close())
}

// sidecarOf returns what a reader of the segment looks up redactions with, and what
// ends that.
func (p *partition) sidecarOf(seg *segment) (look func() (sidecar, error), end func()) {
	return func() (sidecar, error) {
		p.redactMu.RLock()
		return readSidecar(p.log.opts.FS, seg)
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
