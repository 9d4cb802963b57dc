package file

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterhq/muster/eventlog"
)

// CheckLinked reads the segments in the directory that [Log.Link] made and compares the
// checksums of their records. Its error is an [*eventlog.CorruptError] where one is
// damaged; it names the file of the log. skip reports which of links.Files need not be
// read; nil reads all. throttle is called before each read, with how many bytes it has, and
// may wait; nil never does. Redactions may continue meanwhile.
func (l *Log) CheckLinked(ctx context.Context, dir string, links Links, throttle func(ctx context.Context, bytes int) error, skip func(Linked) bool) (err error) {
	defer func() { _ = l.noticed.notice(err) }()
	firsts := map[int][]int64{}
	sizes := map[string]int64{}
	skipped := map[string]bool{}
	for _, f := range links.Files {
		_, name, _ := strings.Cut(f.Path, "/")
		first, is := parseSegmentName(name)
		if !is {
			continue
		}
		for _, p := range l.partitions {
			if f.Path == p.name()+"/"+name {
				firsts[p.id] = append(firsts[p.id], first)
			}
		}
		sizes[f.Path], skipped[f.Path] = f.Size, skip != nil && skip(f)
	}
	fsys := throttledFS{l.opts.FS, func(bytes int) error {
		if throttle == nil {
			return ctx.Err()
		}
		return throttle(ctx, bytes)
	}}
	for _, p := range l.partitions {
		of := firsts[p.id] // in order, as Link made them
		for i, first := range of {
			path := p.name() + "/" + segmentName(first)
			if skipped[path] {
				continue
			}
			next := links.Ends[p.id]
			if i+1 < len(of) {
				next = of[i+1]
			}
			if err := p.checkLinked(fsys, fsys.PathJoin(dir, path), first, next, sizes[path]); err != nil {
				if start, _ := p.bounds(); isCorrupt(err) && first < start {
					// No damage of the log any more, which would be reported until a start.
					return fmt.Errorf("a segment that was trimmed meanwhile: %s", err)
				}
				return err
			}
		}
	}
	return nil
}

// checkLinked reads the link of one segment, which must hold the records from first to
// next in its first size bytes, -1 for all.
func (p *partition) checkLinked(fsys throttledFS, path string, first, next, size int64) error {
	live := &segment{path: p.segmentPath(first)}
	linked := &segment{path: path}
	corrupt := func(pos, offset int64, reason string) error {
		return &eventlog.CorruptError{File: live.path, Position: pos, Offset: offset, Reason: reason}
	}
	h, _, reason, err := readHeader(fsys, path)
	switch {
	case err != nil:
		return err
	case reason == "" && (h.first != first || h.partition != p.id || h.logID != p.log.id):
		reason = "the header is that of another segment"
	}
	if reason != "" {
		return corrupt(0, first, reason)
	}
	live.header, linked.header = h, h
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var s scanner
	s.reset(f, h.salt, segmentHeaderSize, first)
	if size >= 0 {
		s.limit = size
	}
	look, end := p.sidecarOf(live)
	s.lookUp, s.endLook = func() (list sidecar, pending bool, err error) {
		if list, pending, err = look(); err == nil && list.empty() { // it was trimmed meanwhile
			list, err = readSidecar(p.log.opts.FS, linked)
			pending = true
		}
		return list, pending, err
	}, end
	for err == nil && s.next < next {
		_, err = s.record()
	}
	var flt *fault
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errMark), errors.Is(err, errSeal):
		return corrupt(s.batchPos, s.next, "the records end before their time")
	case errors.As(err, &flt):
		return corrupt(flt.pos, s.next, flt.reason)
	case isCorrupt(err):
		return err
	}
	return fmt.Errorf("read %s: %w", live.path, err)
}
