package file

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ForkedError means that two logs of one identity went apart: both have a record at the
// offset, and not the same one.
type ForkedError struct {
	File   string // of the second log
	Offset int64
}

func (e *ForkedError) Error() string {
	return fmt.Sprintf("%s has another record at offset %d", e.File, e.Offset)
}

// Compare compares the segment files of a partition that two logs have both, as far as both
// have records. Its error is a [*ForkedError] where they went apart. Records with bytes taken
// out in one of them are not compared: what stood in their place is not known. The log in
// dir must be whole; damaged are files of the other, in which what cannot be read is passed
// over. No process may have them open.
func Compare(fsys vfs.FS, dir, other string, partition int, damaged map[string]bool) error {
	opts := (&Options{FS: fsys}).withDefaults()
	p, q := (&Log{opts: opts, dir: dir}).newPartition(partition), (&Log{opts: opts, dir: other}).newPartition(partition)
	names, err := fsys.List(p.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		first, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		a, b := &segment{path: p.segmentPath(first)}, &segment{path: q.segmentPath(first)}
		if _, err := fsys.Stat(b.path); isNotExist(err) {
			continue
		}
		if err := compareSegments(fsys, a, b, damaged[b.path]); err != nil {
			return err
		}
	}
	return nil
}

// compareSegments compares the records of two files, the first of which is whole.
func compareSegments(fsys vfs.FS, a, b *segment, damaged bool) error {
	var s, o scanner
	for seg, in := range map[*segment]*scanner{a: &s, b: &o} {
		h, _, reason, err := readHeader(fsys, seg.path)
		if err != nil || reason != "" {
			return err // no record, or none that can be read
		}
		seg.header = h
		list, err := readSidecar(fsys, seg)
		if err != nil && !(damaged && isCorrupt(err)) {
			return err
		}
		pending, err := redacting(fsys, seg)
		if err != nil {
			return err
		}
		f, err := fsys.Open(seg.path)
		if err != nil {
			return err
		}
		defer f.Close()
		in.reset(f, h.salt, segmentHeaderSize, h.first)
		in.knows(list, pending)
	}
	if a.header != b.header {
		return &ForkedError{b.path, b.header.first}
	}
	for {
		err := s.head()
		if err == nil {
			err = s.load()
		}
		var bad *fault
		if errors.Is(err, errMark) || errors.Is(err, errSeal) || errors.As(err, &bad) {
			return nil
		}
		if err != nil {
			return err
		}
		head, err := o.peek(batchHeaderSize)
		if err != nil || len(head) < batchHeaderSize {
			return err
		}
		h, ok := decodeBatchHeader(head, s.salt, s.batchPos)
		switch {
		case ok && h.records > 0 && h != s.batch:
			return &ForkedError{b.path, s.next}
		case ok && h.records == 0, !ok && !damaged:
			return nil // it ends here
		}
		o.r += batchHeaderSize
		o.batchPos, o.batch, o.next = s.batchPos, s.batch, s.next
		if err = o.load(); err == nil {
			err = sameRecords(&s, &o, b.path)
		}
		if errors.As(err, &bad) && damaged && o.left > 0 {
			err = nil // it is passed over
		}
		if errors.As(err, &bad) {
			return nil // a write that was cut off, behind its end
		}
		if err != nil {
			return err
		}
		s.left, s.next = 0, s.batch.first+int64(s.batch.records)
		o.left = 0
	}
}

// sameRecords compares what is left of the batch that both have loaded, but for what one of
// them has redacted. Its error is a [*ForkedError], or that of the second.
func sameRecords(s, o *scanner, path string) error {
	for s.left > 0 {
		data, err := s.recordOf()
		if err != nil {
			return err
		}
		other, err := o.recordOf()
		if err != nil {
			return err
		}
		offset := s.next - 1
		if !bytes.Equal(data, other) && !s.redacted.has(s.batch.first, offset) && !o.redacted.has(s.batch.first, offset) {
			return &ForkedError{path, offset}
		}
	}
	return nil
}
