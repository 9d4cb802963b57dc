package file

import (
	"bytes"
	"errors"
	"fmt"
	"maps"

	"github.com/musterhq/muster/eventlog"
)

// Linked is a file of the directory that [Log.Link] made.
type Linked struct {
	// Path is relative to the directory, with slashes.
	Path string
	// Size is how many of its bytes belong to the log as it was: what is behind them may
	// be half written. -1 is all.
	Size int64
}

// Links are the files of a log at one instant.
type Links struct {
	Files []Linked
	// Starts and Ends are the bounds of the partitions.
	Starts, Ends []int64
}

// Link makes dir, which must not be there and must be on the same file system, a log
// of hard links: all records that are durable at the instant of the call stay in it,
// whatever is trimmed meanwhile. Bytes may still be overwritten by redactions: who
// copies the files calls [Log.LinkSidecars] behind that.
func (l *Log) Link(dir string) (out Links, err error) {
	fsys := l.opts.FS
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return out, fmt.Errorf("link the log: %w", err)
	}
	for _, p := range l.partitions {
		if err := p.link(fsys.PathJoin(dir, p.name()), &out); isCorrupt(err) {
			return out, err
		} else if err != nil {
			return out, fmt.Errorf("link partition %d of the log: %w", p.id, err)
		}
	}
	l.endsMu.Lock()
	m := l.meta(l.flags | metaEnds)
	l.endsMu.Unlock()
	err = writeSmall(fsys, dir, metaName, m)
	out.Files = append(out.Files, Linked{metaName, -1})
	return out, err
}

// removedInUse is the error of a copy: the file of a segment is missing.
func removedInUse(seg *segment) error {
	return &eventlog.CorruptError{File: seg.path, Offset: seg.header.first, Reason: "the segment file was removed while the log is in use",
		Remedy: "Put it back before the service is stopped, or restore a backup"}
}

func (p *partition) name() string { return fmt.Sprintf("p%d", p.id) }

func (p *partition) link(dir string, out *Links) error {
	fsys := p.log.opts.FS
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	p.trimMu.Lock() // the files stay meanwhile
	defer p.trimMu.Unlock()
	p.linked[dir] = struct{}{}
	p.mu.Lock()
	start, end, pos := p.mu.start, p.mu.durable, p.mu.durablePos
	segs := append([]*segment(nil), p.mu.segments...)
	p.mu.Unlock()
	for i, seg := range segs {
		name := segmentName(seg.header.first)
		if err := fsys.Link(seg.path, fsys.PathJoin(dir, name)); err != nil {
			if _, gone := fsys.Stat(seg.path); isNotExist(gone) {
				return removedInUse(seg)
			}
			return err
		}
		size := int64(-1)
		if i == len(segs)-1 {
			size = pos
		}
		out.Files = append(out.Files, Linked{p.name() + "/" + name, size})
		linked := segment{path: fsys.PathJoin(dir, name)}
		for _, suffix := range []string{redactedSuffix, redactingSuffix} {
			if err := fsys.Link(seg.sidecarPath(suffix), linked.sidecarPath(suffix)); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	if start > 0 {
		if err := writeSmall(fsys, dir, startName, small{magic: startMagic, number: uint32(p.id), value: uint64(start)}); err != nil {
			return err
		}
		out.Files = append(out.Files, Linked{p.name() + "/" + startName, -1})
	}
	if err := ReplaceFile(fsys, dir, endName, encodeEnd(p.id, p.log.id, noted{next: end, start: start})); err != nil {
		return err
	}
	out.Files = append(out.Files, Linked{p.name() + "/" + endName, -1})
	out.Starts, out.Ends = append(out.Starts, start), append(out.Ends, end)
	return nil
}

// LinkSidecars completes the directory that Link made once its segments were copied:
// by what stands now in the place of bytes that were redacted before or meanwhile.
// A segment may have been copied before, while or after its bytes were overwritten: a
// log that is opened from the copy overwrites them again. It returns the files that it
// adds.
func (l *Log) LinkSidecars(dir string, links Links) (out []Linked, err error) {
	for _, p := range l.partitions {
		if out, err = p.linkSidecars(l.opts.FS.PathJoin(dir, p.name()), links.Ends[p.id], out); err != nil {
			return nil, fmt.Errorf("link what was redacted in partition %d of the log: %w", p.id, err)
		}
	}
	return out, nil
}

func (p *partition) linkSidecars(dir string, end int64, out []Linked) ([]Linked, error) {
	fsys := p.log.opts.FS
	p.trimMu.Lock() // nothing is redacted meanwhile
	defer p.trimMu.Unlock()
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		first, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		now, then := &segment{path: p.segmentPath(first)}, &segment{path: fsys.PathJoin(dir, name)}
		var reason string
		if then.header, _, reason, err = readHeader(fsys, then.path); err != nil || reason != "" {
			return nil, errors.Join(err, errors.New(reason))
		}
		now.header = then.header
		list, pending, err := p.redactedSince(now, then)
		if err != nil {
			return nil, err
		}
		// Of the segment that was written then, the copy lacks the records since.
		maps.DeleteFunc(list.batches, func(first int64, _ *replaced) bool { return first >= end })
		maps.DeleteFunc(list.records, func(offset int64, _ *redacted) bool { return offset >= end })
		if list.empty() {
			continue
		}
		for suffix, b := range map[string][]byte{redactedSuffix: encodeSidecar(&then.header, list), redactingSuffix: nil} {
			if suffix == redactingSuffix && !pending {
				continue
			}
			path := then.sidecarPath(suffix)
			if err := fsys.RemoveAll(path); err != nil { // not to be written to: it is a link
				return nil, err
			}
			if err := writeDurable(fsys, path, b); err != nil {
				return nil, err
			}
			out = append(out, Linked{p.name() + "/" + fsys.PathBase(path), -1})
		}
	}
	delete(p.linked, dir)
	return out, nil
}

// keepSidecars links the sidecar of a segment that is to be trimmed into the copies that
// LinkSidecars has not completed: they cannot be read without it where the segment was
// redacted since. trimMu is held.
func (p *partition) keepSidecars(seg *segment) error {
	fsys := p.log.opts.FS
	now := seg.sidecarPath(redactedSuffix)
	if _, err := fsys.Stat(now); isNotExist(err) {
		return nil
	}
	for dir := range p.linked {
		then := &segment{path: fsys.PathJoin(dir, segmentName(seg.header.first))}
		if _, err := fsys.Stat(then.path); isNotExist(err) {
			if _, err := fsys.Stat(dir); isNotExist(err) {
				delete(p.linked, dir) // it was given up
			}
			continue
		}
		path := then.sidecarPath(redactedSuffix)
		if err := fsys.RemoveAll(path); err != nil {
			return err
		}
		if err := fsys.Link(now, path); err != nil {
			return err
		}
	}
	return nil
}

// redactedSince returns what is redacted of a segment, and whether its copy may still
// hold bytes of that. now is the segment, then its link, which has the sidecar of a segment
// that was trimmed meanwhile.
func (p *partition) redactedSince(now, then *segment) (list sidecar, pending bool, err error) {
	if list, err = readSidecar(p.log.opts.FS, now); err != nil {
		return list, false, err
	}
	before, err := readSidecar(p.log.opts.FS, then)
	if err != nil {
		return list, false, err
	}
	if list.empty() {
		return before, true, nil
	}
	for _, seg := range []*segment{now, then} {
		undone, err := redacting(p.log.opts.FS, seg)
		if err != nil {
			return list, false, err
		}
		pending = pending || undone
	}
	same := bytes.Equal(encodeSidecar(&now.header, list), encodeSidecar(&now.header, before))
	return list, pending || !same, nil
}
