package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// A sidecar holds what stands in the place of bytes that were redacted in one
// segment. It is replaced whole, see redact.go.

const (
	redactedSuffix = ".redacted"
	// redactingSuffix is that of an empty file which says that the segment may still
	// hold bytes that its sidecar replaces.
	redactingSuffix = ".redacting"

	// redactedMask turns the checksum of a record into that of one with bytes
	// taken out: it can be told from damage, also without its sidecar.
	redactedMask = 0x5ED4C7ED

	sidecarHeaderSize = 48
	// maxSidecarBytes is more than any segment's records make.
	maxSidecarBytes = math.MaxInt32
)

var sidecarMagic = [8]byte{'M', 'U', 'S', 'T', 'R', 'R', 'E', 'D'}

// sidecar is the redactions of a segment by offset.
type sidecar map[int64]*redacted

// redacted is a record with bytes taken out. The splices are in places of the
// record as it was appended.
type redacted struct {
	splices []eventlog.Splice
	// sum is the checksum of the record as it is read.
	sum uint32
}

// compose appends the record as it is read; data is what the segment holds, before,
// during or after its bytes are overwritten. ok is false when data is damaged.
func (r *redacted) compose(dst, data []byte) (out []byte, ok bool) {
	x := eventlog.Redaction{Splices: r.splices}
	begin := len(dst)
	if out, ok = x.Apply(dst, data); !ok {
		return dst, false
	}
	return out, checksum(out[begin:]) == r.sum
}

// piece is a part of a record as it is read: bytes of the record as it was
// appended, from at on, or new ones.
type piece struct {
	at, len int
	text    []byte // nil for bytes that are kept
}

// pieces are the parts of a record in order.
type pieces []piece

// take removes the first n bytes.
func (p *pieces) take(n int) (out pieces) {
	for n > 0 {
		x := (*p)[0]
		if x.len > n {
			rest := x
			rest.at, rest.len, x.len = x.at+n, x.len-n, n
			if x.text != nil {
				rest.text, x.text = x.text[n:], x.text[:n]
			}
			(*p)[0] = rest
		} else {
			*p = (*p)[1:]
		}
		n -= x.len
		out = append(out, x)
	}
	return out
}

func (p *pieces) put(text []byte) {
	if len(text) > 0 {
		*p = append(*p, piece{len: len(text), text: text})
	}
}

func (p *pieces) keep(from, to int) {
	if from < to {
		*p = append(*p, piece{at: from, len: to - from})
	}
}

// resplice is the splices that have the effect of the old ones and then of those
// in add, whose places are in the record as the old ones leave it. n is the length
// of the record as it was appended. add must fit, see [eventlog.Redaction.Apply].
func resplice(n int, old, add []eventlog.Splice) (out []eventlog.Splice) {
	var before, after pieces
	at := 0
	for _, s := range old {
		before.keep(at, s.At)
		before.put(s.New)
		at = s.At + s.Len
	}
	before.keep(at, n)
	at = 0
	for _, s := range add {
		after = append(after, before.take(s.At-at)...)
		before.take(s.Len)
		after.put(s.New)
		at = s.At + s.Len
	}
	after = append(after, before...)

	next := 0 // behind what is kept or replaced
	var text []byte
	replace := func(to int) {
		if next < to || len(text) > 0 {
			out = append(out, eventlog.Splice{At: next, Len: to - next, New: text})
			text = nil
		}
	}
	for _, x := range after {
		if x.text != nil {
			text = append(text, x.text...)
			continue
		}
		replace(x.at)
		next = x.at + x.len
	}
	replace(n)
	return out
}

func (s *segment) sidecarPath(suffix string) string {
	return strings.TrimSuffix(s.path, segmentSuffix) + suffix
}

// encodeSidecar is a sidecar file of the segment.
func encodeSidecar(h *segmentHeader, list sidecar) []byte {
	le := binary.LittleEndian
	b := append([]byte{}, sidecarMagic[:]...)
	b = le.AppendUint32(b, formatVersion)
	b = le.AppendUint32(b, uint32(h.partition))
	b = le.AppendUint64(b, uint64(h.first))
	b = le.AppendUint64(b, h.salt)
	b = le.AppendUint64(b, h.logID)
	b = le.AppendUint32(b, uint32(len(list)))
	b = le.AppendUint32(b, checksum(b))
	for _, offset := range slices.Sorted(maps.Keys(list)) {
		r := list[offset]
		begin := len(b)
		b = le.AppendUint64(b, uint64(offset))
		b = le.AppendUint32(b, r.sum)
		b = le.AppendUint32(b, uint32(len(r.splices)))
		for _, s := range r.splices {
			b = le.AppendUint32(b, uint32(s.At))
			b = le.AppendUint32(b, uint32(s.Len))
			b = le.AppendUint32(b, uint32(len(s.New)))
			b = append(b, s.New...)
		}
		b = le.AppendUint32(b, checksum(b[begin:]))
	}
	return b
}

// decodeSidecar returns why the bytes are no sidecar of the segment, or "".
func decodeSidecar(b []byte, h *segmentHeader) (list sidecar, reason string) {
	le := binary.LittleEndian
	switch {
	case len(b) < sidecarHeaderSize:
		return nil, fmt.Sprintf("header cut short at %d bytes", len(b))
	case !bytes.Equal(b[:8], sidecarMagic[:]):
		return nil, "no header of a sidecar"
	case le.Uint32(b[44:]) != checksum(b[:44]):
		return nil, "checksum of the header does not match"
	case le.Uint32(b[8:]) != formatVersion:
		return nil, fmt.Sprintf("format version %d, this build reads version %d", le.Uint32(b[8:]), formatVersion)
	case le.Uint32(b[12:]) != uint32(h.partition) || le.Uint64(b[16:]) != uint64(h.first) || le.Uint64(b[24:]) != h.salt || le.Uint64(b[32:]) != h.logID:
		return nil, "it belongs to another segment"
	}
	n := int(le.Uint32(b[40:]))
	list = sidecar{}
	rest := b[sidecarHeaderSize:]
	next := h.first
	for range n {
		entry := rest
		cut := fmt.Sprintf("entry %d of %d is cut short or damaged", len(list), n)
		if len(rest) < 16 {
			return nil, cut
		}
		offset, r := int64(le.Uint64(rest)), &redacted{sum: le.Uint32(rest[8:])}
		count := int(le.Uint32(rest[12:]))
		rest = rest[16:]
		if offset < next || count > len(rest)/12 {
			return nil, cut
		}
		at := 0
		for range count {
			if len(rest) < 12 {
				return nil, cut
			}
			s := eventlog.Splice{At: int(le.Uint32(rest)), Len: int(le.Uint32(rest[4:]))}
			size := int(le.Uint32(rest[8:]))
			rest = rest[12:]
			if s.At < at || size > len(rest) {
				return nil, cut
			}
			s.New, rest = rest[:size:size], rest[size:]
			at = s.At + s.Len
			r.splices = append(r.splices, s)
		}
		size := len(entry) - len(rest)
		if len(rest) < 4 || le.Uint32(rest) != checksum(entry[:size]) {
			return nil, cut
		}
		rest = rest[4:]
		list[offset], next = r, offset+1
	}
	if len(rest) != 0 {
		return nil, fmt.Sprintf("%d bytes behind the last entry", len(rest))
	}
	return list, ""
}

// readSidecar reads the sidecar of a segment, nil when it has none.
func readSidecar(fsys vfs.FS, seg *segment) (sidecar, error) {
	path := seg.sidecarPath(redactedSuffix)
	b, err := readWhole(fsys, path)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	list, reason := decodeSidecar(b, &seg.header)
	if reason != "" {
		return nil, &eventlog.CorruptError{File: path, Offset: seg.header.first, Reason: reason}
	}
	return list, nil
}

func readWhole(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSidecarBytes {
		return nil, fmt.Errorf("it has %d bytes, the most is %d", info.Size(), maxSidecarBytes)
	}
	b := make([]byte, info.Size())
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// writeSidecar replaces the sidecar. It is durable then, and what it replaces is
// noted as not overwritten yet.
func (p *partition) writeSidecar(seg *segment, list sidecar) error {
	b := encodeSidecar(&seg.header, list)
	path := seg.sidecarPath(redactedSuffix)
	if len(b) > maxSidecarBytes {
		return fmt.Errorf("write %s: it would have %d bytes, the most is %d", path, len(b), maxSidecarBytes)
	}
	fsys := p.log.opts.FS
	if err := writeDurable(fsys, seg.sidecarPath(redactingSuffix), nil); err != nil {
		return err
	}
	if err := syncDir(fsys, p.dir); err != nil {
		return err
	}
	if err := writeDurable(fsys, path+tmpSuffix, b); err != nil {
		return err
	}
	if err := fsys.Rename(path+tmpSuffix, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(fsys, p.dir)
}

// writeDurable writes a file whose name is not durable yet.
func writeDurable(fsys vfs.FS, path string, b []byte) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(b)
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
