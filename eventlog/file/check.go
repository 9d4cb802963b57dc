package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// Finding is the result of [Check] for one file of a log.
type Finding struct {
	// Path is the file's.
	Path string
	// Err is the damage, nil when there is none. It says at which byte and from
	// which offset on.
	Err error
	// Note describes a file that is whole.
	Note string
	// Repairable tells that the file follows from the others.
	Repairable bool
}

// Checked is the result of [Check].
type Checked struct {
	// ID is the log's identity, by its meta file or, where that is damaged, by its
	// segments.
	ID uint64
	// Starts and Ends are the bounds of the partitions: of the records that can be read
	// one after the other from the start on.
	Starts, Ends []int64
	Findings     []Finding
	// Growing are the segment files that can take further bytes, each with the position
	// behind its last whole batch, from which on its bytes may change.
	Growing map[string]int64
}

// Lost tells that something is damaged that does not follow from the rest. Ends may be
// lower then than the log goes.
func (c *Checked) Lost() bool {
	return slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Err != nil && !f.Repairable })
}

// Whole reports whether nothing is damaged.
func (c *Checked) Whole() bool {
	return !slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Err != nil })
}

// Check reads all of a log that no process has open, and changes nothing. The error says
// that reading itself failed; what is wrong with the log is among the findings.
func Check(fsys vfs.FS, dir string) (out Checked, err error) {
	out.Growing = map[string]int64{}
	c := checker{fs: fsys, dir: dir, out: &out}
	meta, found, err := readSmall(fsys, fsys.PathJoin(dir, metaName), metaMagic)
	partitions := int(meta.number)
	if err == nil && !found {
		err = &eventlog.CorruptError{File: fsys.PathJoin(dir, metaName), Reason: "the file is missing"}
	}
	switch {
	case err == nil:
		out.ID = meta.value
		c.found(Finding{Path: fsys.PathJoin(dir, metaName), Note: fmt.Sprintf("log %016x, %d partitions", meta.value, partitions)})
	case isCorrupt(err):
		again, e := metaFromSegments(fsys, dir)
		if e == nil {
			meta, out.ID, partitions = again, again.value, int(again.number)
			err = withSmallRemedy(err)
		}
		c.found(Finding{Path: fsys.PathJoin(dir, metaName), Err: err, Repairable: e == nil})
		if e != nil {
			return out, nil
		}
	default:
		return out, err
	}
	l := &Log{opts: (&Options{FS: fsys}).withDefaults(), dir: dir, id: out.ID, flags: meta.flags}
	for i := range partitions {
		p := l.newPartition(i)
		start, end, err := c.partition(p)
		if err != nil {
			return out, err
		}
		out.Starts, out.Ends = append(out.Starts, start), append(out.Ends, end)
	}
	return out, nil
}

type checker struct {
	fs  vfs.FS
	dir string
	out *Checked
}

func (c *checker) found(f Finding) { c.out.Findings = append(c.out.Findings, f) }

func (c *checker) damaged(path string, err error) {
	c.found(Finding{Path: path, Err: err})
}

// partition checks the files of a partition and returns the bounds of what can be read.
func (c *checker) partition(p *partition) (start, end int64, err error) {
	if err := p.checkDir(); err != nil {
		c.damaged(p.dir, err)
		return 0, 0, nil
	}
	startPath := c.fs.PathJoin(p.dir, startName)
	start, err = p.readStart()
	switch {
	case isCorrupt(err):
		from, e := p.startFromSegments()
		if e != nil && !isCorrupt(e) {
			return 0, 0, e
		}
		c.found(Finding{Path: startPath, Err: err, Repairable: e == nil})
		if e != nil {
			var damaged *eventlog.CorruptError
			errors.As(e, &damaged)
			c.damaged(damaged.File, e)
			return 0, 0, nil
		}
		start = from
	case err != nil:
		return 0, 0, err
	case start > 0:
		c.found(Finding{Path: startPath, Note: fmt.Sprintf("the log was trimmed below record %d", start)})
	}
	names, err := c.fs.List(p.dir)
	if isNotExist(err) {
		c.damaged(p.dir, &eventlog.CorruptError{File: p.dir, Reason: "the partition's directory is missing"})
		return start, start, nil
	}
	if err != nil {
		return 0, 0, err
	}
	var firsts []int64
	for _, name := range names {
		first, ok := parseSegmentName(name)
		_, beside := sidecarName(name)
		switch {
		case ok && first >= start:
			firsts = append(firsts, first)
		case ok:
			c.found(Finding{Path: c.fs.PathJoin(p.dir, name), Note: "left by a trim; a start removes it"})
		case strings.HasSuffix(name, tmpSuffix):
			c.found(Finding{Path: c.fs.PathJoin(p.dir, name), Note: "left by a write that was cut off; a start removes it"})
		case name != startName && name != endName && !beside:
			c.found(Finding{Path: c.fs.PathJoin(p.dir, name), Note: "not a file of the log; it is passed over"})
		}
	}
	slices.Sort(firsts)
	var unborn *segment
	if n := len(firsts); n > 1 {
		if unborn, err = c.unborn(p.segmentPath(firsts[n-1])); err != nil {
			return 0, 0, err
		}
		if unborn != nil {
			unborn.header.first, c.out.Growing[unborn.path] = firsts[n-1], 0
			firsts = firsts[:n-1]
			c.found(Finding{Path: unborn.path, Note: "its creation was cut off; a start removes it"})
		}
	}
	noted := p.readNoted()
	if noted != nil && !isCorrupt(noted) {
		return 0, 0, noted
	}
	end = start // where the next segment must begin
	whole := true
	for i, first := range firsts {
		path := p.segmentPath(first)
		if first != end && whole {
			c.damaged(p.segmentPath(end), p.missingBefore(end, first))
			whole = false
		}
		prev := int64(-1)
		if i > 0 {
			prev = firsts[i-1]
		}
		next, note, err := c.segment(p, first, prev, unborn, append(firsts, -1)[i+1])
		switch {
		case isCorrupt(err):
			c.damaged(path, err)
		case err != nil:
			return 0, 0, err
		default:
			c.found(Finding{Path: path, Note: note})
		}
		if whole {
			end = next
		}
		whole = whole && err == nil
	}
	if len(firsts) == 0 {
		c.damaged(p.segmentPath(start), &eventlog.CorruptError{File: p.segmentPath(start), Offset: start, Reason: "the segment file is missing"})
	}
	if noted != nil {
		// An empty partition may be one that lost all its records.
		f := Finding{Path: p.endPath(), Err: noted, Repairable: whole && end > 0}
		if end == 0 && whole {
			f.Err = noRecords(p.endPath())
		}
		c.found(f)
	}
	return start, end, nil
}

// unborn returns a segment file whose creation was cut off, nil where it is whole or
// damaged.
func (c *checker) unborn(path string) (*segment, error) {
	_, _, reason, err := readHeader(c.fs, path)
	if err != nil || reason == "" {
		return nil, err
	}
	if blank, err := blankBehind(c.fs, path, segmentHeaderSize); err != nil || !blank {
		return nil, err
	}
	return &segment{path: path}, nil
}

// segment checks one segment file, and returns the offset behind its last record that
// can be read. prev and following are the first offsets of the files before and behind
// it, -1 without one. Behind the last one there may be one whose creation was cut off.
func (c *checker) segment(p *partition, first, prev int64, unborn *segment, following int64) (next int64, note string, err error) {
	seg := &segment{path: p.segmentPath(first), index: []indexEntry{{first, segmentHeaderSize}}}
	corrupt := func(pos, offset int64, reason string) error {
		return &eventlog.CorruptError{File: seg.path, Position: pos, Offset: offset, Reason: reason}
	}
	h, size, reason, err := readHeader(c.fs, seg.path)
	if err != nil {
		return first, "", err
	}
	seg.header, seg.bytes = h, size
	switch {
	case reason != "":
		return first, "", corrupt(0, first, reason)
	case h.first != first:
		return first, "", corrupt(0, first, fmt.Sprintf("the header says that its first offset is %d", h.first))
	case h.partition != p.id:
		return first, "", corrupt(0, first, "the file belongs to another partition")
	case h.logID != p.log.id:
		return first, "", p.ofAnotherLog(seg.path, first, h.logID)
	case prev >= 0 && h.prev != prev:
		return first, "", corrupt(0, first, fmt.Sprintf("the header says that the segment before starts at offset %d, it starts at %d", h.prev, prev))
	}
	f, err := c.fs.Open(seg.path)
	if err != nil {
		return first, "", err
	}
	defer f.Close()
	if _, err := readSidecar(c.fs, seg); err != nil {
		return first, "", err
	}
	var s scanner
	s.reset(f, h.salt, segmentHeaderSize, first)
	s.lookUp, s.endLook = p.sidecarOf(seg)
	for err == nil {
		_, err = s.record()
	}
	var flt *fault
	switch {
	case errors.As(err, &flt), errors.Is(err, errMark), errors.Is(err, errSeal):
	default:
		return s.next, "", fmt.Errorf("read %s: %w", seg.path, err)
	}
	next = s.next
	if following >= 0 {
		if next != following {
			if flt == nil {
				flt = &fault{pos: s.batchPos, reason: "the records end before their time"}
			}
			return next, "", corrupt(flt.pos, next, flt.reason)
		}
		return next, fmt.Sprintf("records %d to %d", first, next), nil
	}
	end, err := p.scanLast(f, seg)
	if err == nil {
		err = p.checkUnborn(end, seg, unborn)
	}
	if err == nil {
		err = p.checkEnd(seg, end)
	}
	if err != nil {
		return min(next, end.next), "", err
	}
	c.out.Growing[seg.path] = end.pos
	note = fmt.Sprintf("records %d to %d", first, end.next)
	if end.junk > end.junkFrom {
		note += fmt.Sprintf(", and a write that was cut off and never acknowledged at byte %d; a start removes it", end.junkFrom)
	}
	return end.next, note, nil
}

// metaFromSegments is what the meta file must say by the headers of the segments.
func metaFromSegments(fsys vfs.FS, dir string) (m small, err error) {
	l := &Log{opts: (&Options{FS: fsys}).withDefaults(), dir: dir}
	known := false
	for i := 0; ; i++ {
		p := l.newPartition(i)
		names, err := fsys.List(p.dir)
		if isNotExist(err) {
			break
		}
		if err != nil {
			return m, err
		}
		for _, name := range names {
			if _, ok := parseSegmentName(name); !ok {
				continue
			}
			path := fsys.PathJoin(p.dir, name)
			h, _, reason, err := readHeader(fsys, path)
			if err != nil {
				return m, err
			}
			if reason != "" {
				continue // damaged, or never finished
			}
			if known && h.logID != m.value || h.partition != i {
				return m, &eventlog.CorruptError{File: path, Reason: "the segment file belongs to another log or partition than those beside it"}
			}
			known, m.value = true, h.logID
		}
		m.number = uint32(i + 1)
	}
	if !known {
		return m, &eventlog.CorruptError{File: fsys.PathJoin(dir, metaName), Reason: "there is no segment file that says which log it is"}
	}
	m.magic = metaMagic
	m.flags = metaEnds
	for i := range int(m.number) {
		if _, ok, _, err := readEnd(fsys, l.newPartition(i).endPath(), i, m.value); err != nil {
			return m, err
		} else if !ok {
			m.flags = 0
		}
	}
	return m, nil
}

// startFromSegments is the offset that the start file must name by the headers of the
// segments: that of the oldest one, if each of the others names the one before it. Older ones
// than the file end says are there were left by a trim that was cut off, and do not count;
// where end does not say, they are kept.
func (p *partition) startFromSegments() (int64, error) {
	fsys := p.log.opts.FS
	names, err := fsys.List(p.dir)
	if err != nil {
		return 0, err
	}
	var firsts []int64
	for _, name := range names {
		if first, ok := parseSegmentName(name); ok {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	end, ok, _, err := readEnd(fsys, p.endPath(), p.id, p.log.id)
	if err != nil {
		return 0, err
	}
	if ok {
		firsts = slices.DeleteFunc(firsts, func(first int64) bool { return first < end.start })
	}
	if len(firsts) == 0 {
		return 0, &eventlog.CorruptError{File: p.dir, Reason: "there is no segment file that says where the records begin"}
	}
	for i, first := range firsts {
		path := p.segmentPath(first)
		h, _, reason, err := readHeader(fsys, path)
		switch {
		case err != nil:
			return 0, err
		case reason != "" && i > 0 && i == len(firsts)-1:
			continue // damaged, or never finished: it is judged for itself
		case reason == "" && (h.first != first || h.partition != p.id || h.logID != p.log.id):
			reason = "the file belongs to another log or partition, or to another place in it"
		case reason == "" && i > 0 && h.prev != firsts[i-1]:
			reason = fmt.Sprintf("the segment before it, which begins with record %d, is missing", h.prev)
		}
		if reason != "" {
			return 0, &eventlog.CorruptError{File: path, Offset: first, Reason: reason}
		}
	}
	return firsts[0], nil
}

// Repair writes the damaged ones of the small files of a log again, from its segments: its
// meta file, and where partitions begin and end. No process may have the log open.
func Repair(fsys vfs.FS, dir string) error {
	m, found, err := readSmall(fsys, fsys.PathJoin(dir, metaName), metaMagic)
	if isCorrupt(err) || err == nil && !found {
		if m, err = metaFromSegments(fsys, dir); err == nil {
			err = writeSmall(fsys, dir, metaName, m)
		}
	}
	if err != nil {
		return err
	}
	l := &Log{opts: (&Options{FS: fsys}).withDefaults(), dir: dir, id: m.value, flags: m.flags}
	for i := range int(m.number) {
		p := l.newPartition(i)
		_, err := p.readStart()
		if isCorrupt(err) {
			var start int64
			if start, err = p.startFromSegments(); err == nil {
				err = writeSmall(fsys, p.dir, startName, small{magic: startMagic, number: uint32(i), value: uint64(start)})
			}
		}
		if err == nil {
			err = p.repairEnd()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repairEnd notes again how far the records go, if these are whole; else it changes
// nothing.
func (p *partition) repairEnd() error {
	if err := p.readNoted(); !isCorrupt(err) {
		return err
	}
	found := Checked{Growing: map[string]int64{}}
	c := checker{fs: p.log.opts.FS, dir: p.log.dir, out: &found}
	start, end, err := c.partition(p)
	if err != nil {
		return err
	}
	for _, f := range found.Findings {
		if f.Err != nil && !(f.Path == p.endPath() && f.Repairable) {
			return nil // the check says so
		}
	}
	return ReplaceFile(p.log.opts.FS, p.dir, endName, encodeEnd(p.id, p.log.id, noted{next: end, start: start}))
}
