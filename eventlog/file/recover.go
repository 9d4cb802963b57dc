package file

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// found is what a look at a partition's files has found, and what is to be done
// about it.
type found struct {
	end segmentEnd
	// unborn is a last segment whose creation was interrupted, nil when there is
	// none; leftovers are files that a trim or a rename has left behind.
	unborn    *segment
	leftovers []string
}

// look reads the partition's files and finds where its records end. It changes
// nothing. See "Recovery" in doc.go.
func (p *partition) look() error {
	fsys := p.log.opts.FS
	if err := p.checkDir(); err != nil {
		return err
	}
	start, err := p.readStart()
	if err != nil {
		return err
	}
	firsts, err := p.listSegments(start)
	if err != nil {
		return err
	}
	segs, unborn, err := p.readHeaders(firsts)
	if err != nil {
		return err
	}
	last := segs[len(segs)-1]
	f, err := fsys.OpenReadWrite(last.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("open %s: %w", last.path, err)
	}
	// From here on stop closes the file.
	p.mu.start = start
	p.mu.segments = segs[:len(segs)-1]
	p.begin(f, last, last.header.first)
	end, err := p.scanLast(f, last)
	if err != nil {
		return err
	}
	if err := p.checkUnborn(end, last, unborn); err != nil {
		return err
	}
	if err := p.readNoted(); isCorrupt(err) && end.next == 0 {
		return noRecords(p.endPath())
	} else if err != nil {
		return err
	}
	if err := p.checkEnd(last, end); err != nil {
		return err
	}
	p.found.end, p.found.unborn = end, unborn
	p.mu.next, p.mu.durable, p.mu.durablePos = end.next, end.next, end.pos
	return nil
}

// recover brings the files that look has read into order and makes the partition
// ready to take records.
func (p *partition) recover() error {
	fsys := p.log.opts.FS
	// Names may not be durable yet: that of the start file must be before the
	// files go that it declares superfluous, and a segment that was given up must
	// not come back.
	if err := syncDir(fsys, p.dir); err != nil {
		return err
	}
	for _, path := range p.found.leftovers {
		if err := fsys.Remove(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	if len(p.found.leftovers) > 0 {
		if err := syncDir(fsys, p.dir); err != nil {
			return err
		}
	}
	if err := p.mend(p.found.end); err != nil {
		return fmt.Errorf("mend %s: %w", p.w.seg.path, err)
	}
	if unborn := p.found.unborn; unborn != nil {
		p.log.opts.Logger.Info("removing a log segment whose creation was interrupted", "file", unborn.path)
		if err := remove(fsys, unborn.path); err != nil {
			return err
		}
	}
	p.found = found{}
	if p.w.seg.header.version != packedVersion {
		// Batches are written packed, which the builds that made the file do not read.
		p.rollNext.Store(true)
	}
	return p.finishRedactions()
}

// begin makes seg, which is open as f, the one that takes records.
func (p *partition) begin(f vfs.File, seg *segment, next int64) {
	p.w.file, p.w.seg = f, seg
	// Nothing is to be marked until the position is known.
	p.w.marked = true
	p.mu.segments = append(p.mu.segments, seg)
	p.mu.next, p.mu.durable = next, next
}

// checkDir refuses a partition whose directory is not one.
func (p *partition) checkDir() error {
	info, err := p.log.opts.FS.Stat(p.dir)
	if err != nil || info.IsDir() {
		return nil // whatever is wrong is said by what reads the directory
	}
	return &eventlog.CorruptError{File: p.dir, Reason: "it is a file, and must be the directory with the segment files",
		Remedy: "Put the directory back as it was, or restore a backup"}
}

// readStart returns the offset of the oldest segment to keep.
func (p *partition) readStart() (int64, error) {
	path := p.log.opts.FS.PathJoin(p.dir, startName)
	s, found, err := readSmall(p.log.opts.FS, path, startMagic)
	if err == nil && found && (int64(s.number) != int64(p.id) || int64(s.value) < 0) {
		err = &eventlog.CorruptError{File: path, Reason: fmt.Sprintf("belongs to partition %d", s.number)}
	}
	if err != nil {
		return 0, withSmallRemedy(err)
	}
	end, ok, _, err := readEnd(p.log.opts.FS, p.endPath(), p.id, p.log.id)
	if err != nil {
		return 0, err
	}
	start := int64(s.value) // 0 without the file
	if ok && start < end.start {
		reason := "the file is missing"
		if found {
			reason = fmt.Sprintf("it says that the records begin with %d", start)
		}
		return 0, withSmallRemedy(&eventlog.CorruptError{File: path,
			Reason: fmt.Sprintf("%s, and the file %s says that the records below %d were trimmed", reason, endName, end.start)})
	}
	return start, nil
}

// missingBefore is the error of a partition that must begin at start and whose oldest
// segment begins at first.
func (p *partition) missingBefore(start, first int64) error {
	reason := fmt.Sprintf("the segment file is missing: the next one there begins with record %d", first)
	if start == 0 {
		reason += fmt.Sprintf(". If the log was trimmed (--trim-log), the file %s beside it is what is missing", startName)
	}
	return &eventlog.CorruptError{File: p.segmentPath(start), Offset: start, Reason: reason}
}

// listSegments returns the first offsets of the segment files to keep, in
// order, and notes what a trim or a rename has left behind.
func (p *partition) listSegments(start int64) ([]int64, error) {
	fsys := p.log.opts.FS
	names, err := fsys.List(p.dir)
	if isNotExist(err) {
		return nil, &eventlog.CorruptError{File: p.dir, Offset: start, Reason: "the partition's directory is missing"}
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", p.dir, err)
	}
	var firsts []int64
	for _, name := range names {
		first, ok := parseSegmentName(name)
		if ok && first >= start {
			firsts = append(firsts, first)
			continue
		}
		if of, is := sidecarName(name); is && of >= start {
			continue
		} else if !ok && !is && !strings.HasSuffix(name, tmpSuffix) {
			if name != startName && name != endName {
				p.log.opts.Logger.Warn("ignoring an unknown file in the log", "dir", p.dir, "file", name)
			}
			continue
		}
		p.found.leftovers = append(p.found.leftovers, fsys.PathJoin(p.dir, name))
	}
	slices.Sort(firsts)
	if len(firsts) > 0 && firsts[0] != start {
		return nil, p.missingBefore(start, firsts[0])
	}
	if len(firsts) == 0 {
		return nil, &eventlog.CorruptError{File: p.segmentPath(start), Offset: start, Reason: "the segment file is missing"}
	}
	return firsts, nil
}

// ofAnotherLog is the error of a segment file whose header names another log than the
// file meta does. Which of the two is misplaced cannot be told.
func (p *partition) ofAnotherLog(path string, first int64, id uint64) error {
	return &eventlog.CorruptError{
		File: path, Offset: first,
		Reason: fmt.Sprintf("the file is of the log %016x, and %s is of the log %016x: one of the two is from another directory", id, p.log.opts.FS.PathJoin(p.log.dir, metaName), p.log.id),
		Remedy: "Put the one back that belongs here, or restore a backup",
	}
}

// readHeaders checks the heads of the segment files and that each follows the
// one before. unborn is a last file whose creation was interrupted; it is not
// among the segments.
func (p *partition) readHeaders(firsts []int64) (segs []*segment, unborn *segment, err error) {
	fsys := p.log.opts.FS
	for i, first := range firsts {
		seg := &segment{path: p.segmentPath(first), index: []indexEntry{{first, segmentHeaderSize}}}
		corrupt := func(format string, args ...any) error {
			return &eventlog.CorruptError{File: seg.path, Offset: first, Reason: fmt.Sprintf(format, args...)}
		}
		var reason string
		if seg.header, seg.bytes, reason, err = readHeader(fsys, seg.path); err != nil {
			return nil, nil, err
		}
		if reason != "" {
			blank := false
			if i == len(firsts)-1 && i > 0 {
				if blank, err = blankBehind(fsys, seg.path, segmentHeaderSize); err != nil {
					return nil, nil, err
				}
			}
			if !blank {
				return nil, nil, corrupt("%s", reason)
			}
			seg.header.first = first
			return segs, seg, nil
		}
		h := &seg.header
		switch {
		case h.first != first:
			return nil, nil, corrupt("the header says that its first offset is %d", h.first)
		case h.partition != p.id:
			return nil, nil, corrupt("the file belongs to partition %d", h.partition)
		case h.logID != p.log.id:
			return nil, nil, p.ofAnotherLog(seg.path, first, h.logID)
		case i > 0 && h.prev > firsts[i-1] && h.prev < first:
			return nil, nil, &eventlog.CorruptError{
				File: p.segmentPath(h.prev), Offset: h.prev,
				Reason: fmt.Sprintf("the segment file is missing: %s follows it", seg.path),
			}
		case i > 0 && h.prev != firsts[i-1]:
			return nil, nil, corrupt("the header says that the segment before starts at offset %d, it starts at %d", h.prev, firsts[i-1])
		}
		segs = append(segs, seg)
	}
	return segs, nil, nil
}

// readHeader reads a segment file's header and size.
func readHeader(fsys vfs.FS, path string) (h segmentHeader, size int64, reason string, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return h, 0, "", fmt.Errorf("open %s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h, 0, "", fmt.Errorf("look up %s: %w", path, err)
	}
	b := make([]byte, segmentHeaderSize)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return h, 0, "", fmt.Errorf("read %s: %w", path, err)
	}
	h, reason = decodeSegmentHeader(b[:n])
	return h, info.Size(), reason, nil
}

// segmentEnd is where the whole batches of the last segment end.
type segmentEnd struct {
	// pos is behind the last whole batch, next the offset behind its last
	// record.
	pos, next int64
	// batch is the position of the last whole batch, 0 when there is none.
	batch int64
	// marked and sealed say what stands at pos.
	marked, sealed bool
	// junk is behind the last byte, from junkFrom on, that is not zero.
	junkFrom, junk int64
}

// scanLast reads the last segment and decides what is a torn tail and what is
// damage.
func (p *partition) scanLast(f vfs.File, seg *segment) (segmentEnd, error) {
	end := segmentEnd{pos: segmentHeaderSize, next: seg.header.first}
	var s scanner
	s.reset(f, seg.header.salt, end.pos, end.next)
	// The copy of a log may have redactions in its last segment: see Log.Link.
	s.lookUp, s.endLook = p.sidecarOf(seg)
	var flt *fault
	for {
		_, err := s.record()
		if err == nil {
			if s.left == 0 {
				seg.addIndex(s.batch.first, s.batchPos)
				end.batch, end.pos, end.next = s.batchPos, s.pos(), s.next
			}
			continue
		}
		switch {
		case errors.Is(err, errMark):
			end.marked = true
		case errors.Is(err, errSeal):
			end.sealed = true
		case errors.As(err, &flt):
		default:
			return end, fmt.Errorf("read %s: %w", seg.path, err)
		}
		break
	}
	if flt == nil {
		flt = &fault{pos: end.pos, reason: "a mark stands where a batch must be"}
	}
	corrupt := func(reason string) error {
		return &eventlog.CorruptError{File: seg.path, Position: flt.pos, Offset: s.next, Reason: reason}
	}
	if flt.written {
		return end, corrupt(flt.reason)
	}
	rest, err := scanRest(f, seg.header.salt, end.pos)
	if err != nil {
		return end, fmt.Errorf("read %s: %w", seg.path, err)
	}
	if rest.head >= 0 {
		return end, corrupt(fmt.Sprintf("%s, and byte %d shows that it was durable", flt.reason, rest.head))
	}
	end.junkFrom, end.junk = end.pos, rest.end
	if end.marked || end.sealed {
		end.junkFrom = end.pos + batchHeaderSize
	}
	return end, nil
}

// checkUnborn compares the end of the last segment with what is known about
// its successor.
func (p *partition) checkUnborn(end segmentEnd, last, unborn *segment) error {
	switch {
	case end.sealed && unborn == nil:
		return &eventlog.CorruptError{
			File: p.segmentPath(end.next), Offset: end.next,
			Reason: fmt.Sprintf("the segment file is missing: %s ends before it", last.path),
		}
	case end.sealed:
		// A seal is written only after the successor's header is durable.
		return &eventlog.CorruptError{File: unborn.path, Offset: end.next, Reason: "the segment header is damaged"}
	case unborn != nil && unborn.header.first != end.next:
		// A successor is created only after all before it is durable.
		return &eventlog.CorruptError{
			File: last.path, Position: end.pos, Offset: end.next,
			Reason: fmt.Sprintf("the records end here, but the next segment starts with offset %d", unborn.header.first),
		}
	}
	return nil
}

// mend cuts the torn tail of the last segment, makes durable what may only be
// in the page cache, and leaves a durable mark at the end.
func (p *partition) mend(end segmentEnd) error {
	w := &p.w
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	w.pos, w.filled = end.pos, max(info.Size(), end.pos)
	dirty := false
	if end.junk > end.junkFrom {
		p.log.opts.Logger.Warn("cutting a torn batch off the end of the log; it was never acknowledged",
			"file", w.seg.path, "pos", end.junkFrom, "bytes", end.junk-end.junkFrom, "offset", end.next)
		if _, err := writeZeros(w.file, end.junkFrom, end.junk); err != nil {
			return err
		}
		p.counters.cutBytes.Add(uint64(end.junk - end.junkFrom))
		dirty = true
	}
	if !end.marked {
		// The last batch, or the header of a segment without one.
		if err := rewrite(w.file, end.batch, end.pos); err != nil {
			return err
		}
		dirty = true
	}
	if dirty {
		if err := w.file.Sync(); err != nil {
			return err
		}
	}
	if !end.marked {
		if err := p.putMark(batchMark, end.next); err != nil {
			return err
		}
		if err := w.file.SyncData(); err != nil {
			return err
		}
	}
	w.seg.bytes = w.filled
	return nil
}

// rewrite writes the bytes of [from, to) to their place again, so that an
// fsync covers them even if an earlier one failed and left them in the page
// cache alone.
func rewrite(f vfs.File, from, to int64) error {
	buf := make([]byte, min(to-from, scanChunk))
	for from < to {
		b := buf[:min(to-from, int64(len(buf)))]
		if _, err := f.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := f.WriteAt(b, from); err != nil {
			return err
		}
		from += int64(len(b))
	}
	return nil
}

func isCorrupt(err error) bool {
	var corrupt *eventlog.CorruptError
	return errors.As(err, &corrupt)
}
