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
// have records. Its error is a [*ForkedError] where they went apart. Of records with bytes
// taken out, what is left is compared. The log in dir must be whole; damaged are files of
// the other, in which what cannot be read is passed over. No process may have them open.
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
		f, err := fsys.Open(seg.path)
		if err != nil {
			return err
		}
		defer f.Close()
		in.reset(f, h.salt, segmentHeaderSize, h.first)
		in.redacted = list
	}
	if a.header != b.header {
		return &ForkedError{b.path, b.header.first}
	}
	for {
		_, err := s.record()
		var end *fault
		if errors.Is(err, errMark) || errors.Is(err, errSeal) || errors.As(err, &end) {
			return nil
		}
		if err != nil {
			return err
		}
		o.next = s.next - 1
		if s.left == s.batch.records-1 { // the first of its batch
			head, err := o.peek(batchHeaderSize)
			if err != nil || len(head) < batchHeaderSize {
				return err
			}
			h, ok := decodeBatchHeader(head, s.salt, s.batchPos)
			switch {
			case ok && h.kind == batchRecords && h != s.batch:
				return &ForkedError{b.path, o.next}
			case ok && h.kind != batchRecords, !ok && !damaged:
				return nil // it ends here
			}
			o.r += batchHeaderSize
		}
		same, sound, err := o.sameFrame(s.buf[s.r-s.size:s.r], s.redacted[o.next], s.batch.body)
		switch {
		case err != nil:
			return err
		case sound && !same:
			return &ForkedError{b.path, o.next}
		case !sound && !same && !damaged:
			return nil // a write that was cut off, behind its end
		}
		if o.w-o.r < s.size {
			return nil // the file ends here
		}
		o.r += s.size
	}
}

// sameFrame compares the record to come with a frame of another file, of which this was
// redacted. sound is whether it can be read, whatever it is. No frame is larger than body.
func (s *scanner) sameFrame(frame []byte, r *redacted, body uint32) (same, sound bool, err error) {
	b, err := s.peek(len(frame))
	if err != nil || len(b) < frameHeadSize {
		return false, false, err
	}
	if bytes.Equal(b, frame) || sameKept(b, frame, r, s.redacted[s.next]) {
		return true, true, nil
	}
	if _, size := frameHead(b); size != len(frame) {
		if size > int(body) {
			return false, false, nil
		}
		if b, err = s.peek(size); err != nil || len(b) < size {
			return false, false, err
		}
	}
	_, sound = s.content(b)
	return false, sound, nil
}

// sameKept compares two frames without what one of the redactions replaces, and without the
// checksum, which covers that.
func sameKept(a, b []byte, redactions ...*redacted) bool {
	if len(a) != len(b) {
		return false
	}
	a, b = bytes.Clone(a[:len(a)-4]), bytes.Clone(b[:len(b)-4])
	redacted := false
	for _, r := range redactions {
		if r == nil {
			continue
		}
		redacted = true
		for _, x := range r.splices {
			if x.At+x.Len > len(a)-frameHeadSize {
				return false
			}
			clear(a[frameHeadSize+x.At:][:x.Len])
			clear(b[frameHeadSize+x.At:][:x.Len])
		}
	}
	return redacted && bytes.Equal(a, b)
}
