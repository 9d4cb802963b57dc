package file

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Replay calls fn with the records of a partition from offset from to end, one after the
// other, of a log that no process has open. It changes nothing. id, from and end are of what
// [Check] found: from is not below the start, and all below end is whole. data is valid
// until fn returns, whose error ends it.
func Replay(ctx context.Context, fsys vfs.FS, dir string, id uint64, partition int, from, end int64, fn func(offset int64, data []byte) error) error {
	p := (&Log{opts: (&Options{FS: fsys}).withDefaults(), dir: dir, id: id}).newPartition(partition)
	names, err := fsys.List(p.dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", p.dir, err)
	}
	var firsts []int64
	for _, name := range names {
		if first, ok := parseSegmentName(name); ok && first < end {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	next := from
	for i, first := range firsts {
		until := end // what is behind the last record of a segment, as a seal, is not read
		if i+1 < len(firsts) {
			until = min(end, firsts[i+1])
		}
		if until <= next {
			continue
		}
		if next, err = p.replaySegment(ctx, first, next, until, fn); err != nil {
			return err
		}
	}
	if next < end {
		return fmt.Errorf("%s: the records end at %d instead of %d: they were changed meanwhile", p.dir, next, end)
	}
	return nil
}

// replaySegment calls fn with the records of one segment file from next on, and returns
// the offset behind the last one.
func (p *partition) replaySegment(ctx context.Context, first, next, end int64, fn func(offset int64, data []byte) error) (int64, error) {
	seg := &segment{path: p.segmentPath(first)}
	h, _, reason, err := readHeader(p.log.opts.FS, seg.path)
	if err == nil && reason != "" {
		err = fmt.Errorf("%s: %s", seg.path, reason)
	}
	if err != nil {
		return next, err
	}
	seg.header = h
	f, err := p.log.opts.FS.Open(seg.path, vfs.SequentialReadsOption)
	if err != nil {
		return next, err
	}
	defer f.Close()
	var s scanner
	s.reset(f, h.salt, segmentHeaderSize, first)
	s.lookUp, s.endLook = p.sidecarOf(seg)
	for s.next < end {
		data, err := s.record()
		if errors.Is(err, errSeal) || errors.Is(err, errMark) {
			return next, nil
		}
		if err != nil {
			return next, fmt.Errorf("read %s: %w", seg.path, err)
		}
		offset := s.next - 1
		if offset < next {
			continue
		}
		if offset > next {
			return next, fmt.Errorf("%s: the records before offset %d are missing: they were changed meanwhile", p.dir, offset)
		}
		if err := ctx.Err(); err != nil {
			return next, err
		}
		if err := fn(offset, data); err != nil {
			return next, err
		}
		next = s.next
	}
	return next, nil
}
