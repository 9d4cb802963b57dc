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

// sidecar is what stands in the place of what was redacted of a segment. One of version 1
// has records, any other batches.
type sidecar struct {
	// batches are by the offset of their first record, records by their offset.
	batches map[int64]*replaced
	records map[int64]*redacted
}

// replaced is a batch of which records were redacted, as it is read. Of its bytes in the
// segment none is left.
type replaced struct {
	// records is their number, unpacked their length with their frames.
	records, unpacked uint32
	// redacted are the places in the batch, in order, of the records that are not as they
	// were appended.
	redacted []uint32
	packed   []byte
}

// sum is what the batch is told by from one that it was before.
func (r *replaced) sum() uint32 { return packedSum(r.packed) }

// tombstone is what is written over n bytes of a batch: zeros, and what says by what they
// were replaced.
func tombstone(n int, sum uint32) []byte {
	return binary.LittleEndian.AppendUint32(make([]byte, n-4, n), sum^redactedMask)
}

// tombstoneOf is the sum of what replaces a batch that is only a tombstone.
func tombstoneOf(body []byte) uint32 { return le32(body[len(body)-4:]) ^ redactedMask }

// isTombstone reports whether the bytes up to the end of a batch are what redaction leaves.
func isTombstone(b []byte) bool {
	return len(b) > 4 && lastNonZero(b) >= len(b)-4 && lastNonZero(b[:len(b)-4]) < 0
}

// redacted is a record of a segment of version 1 with bytes taken out, and zeros in their
// place. The splices are in places of the record as it was appended.
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

func (s *segment) sidecarPath(suffix string) string {
	return strings.TrimSuffix(s.path, segmentSuffix) + suffix
}

// encodeSidecar is a sidecar file of the segment.
func encodeSidecar(h *segmentHeader, list sidecar) []byte {
	version, n := uint32(packedVersion), len(list.batches)
	if len(list.records) > 0 {
		version, n = rawVersion, len(list.records)
	}
	size := sidecarHeaderSize
	for _, r := range list.batches { // which may be most of the segment
		size += 28 + 4*len(r.redacted) + len(r.packed)
	}
	le := binary.LittleEndian
	b := append(make([]byte, 0, size), sidecarMagic[:]...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint32(b, uint32(h.partition))
	b = le.AppendUint64(b, uint64(h.first))
	b = le.AppendUint64(b, h.salt)
	b = le.AppendUint64(b, h.logID)
	b = le.AppendUint32(b, uint32(n))
	b = le.AppendUint32(b, checksum(b))
	for _, first := range slices.Sorted(maps.Keys(list.batches)) {
		r := list.batches[first]
		begin := len(b)
		b = le.AppendUint64(b, uint64(first))
		b = le.AppendUint32(b, r.records)
		b = le.AppendUint32(b, r.unpacked)
		b = le.AppendUint32(b, uint32(len(r.redacted)))
		b = le.AppendUint32(b, uint32(len(r.packed)))
		for _, i := range r.redacted {
			b = le.AppendUint32(b, i)
		}
		b = append(b, r.packed...)
		b = le.AppendUint32(b, checksum(b[begin:]))
	}
	for _, offset := range slices.Sorted(maps.Keys(list.records)) {
		r := list.records[offset]
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
		return list, fmt.Sprintf("header cut short at %d bytes", len(b))
	case !bytes.Equal(b[:8], sidecarMagic[:]):
		return list, "no header of a sidecar"
	case le.Uint32(b[44:]) != checksum(b[:44]):
		return list, "checksum of the header does not match"
	}
	version := le.Uint32(b[8:])
	switch {
	case version != rawVersion && version != packedVersion:
		return list, fmt.Sprintf("format version %d, this build reads versions %d and %d", version, rawVersion, packedVersion)
	case le.Uint32(b[12:]) != uint32(h.partition) || le.Uint64(b[16:]) != uint64(h.first) || le.Uint64(b[24:]) != h.salt || le.Uint64(b[32:]) != h.logID:
		return list, "it belongs to another segment"
	}
	n := int(le.Uint32(b[40:]))
	rest := b[sidecarHeaderSize:]
	next := h.first
	list = sidecar{batches: map[int64]*replaced{}, records: map[int64]*redacted{}}
	for i := range n {
		size, ok := 0, false
		if version == rawVersion {
			size, next, ok = list.decodeRecord(rest, next)
		} else {
			size, next, ok = list.decodeBatch(rest, next)
		}
		if !ok || len(rest)-size < 4 || le.Uint32(rest[size:]) != checksum(rest[:size]) {
			return sidecar{}, fmt.Sprintf("entry %d of %d is cut short or damaged", i, n)
		}
		rest = rest[size+4:]
	}
	if len(rest) != 0 {
		return sidecar{}, fmt.Sprintf("%d bytes behind the last entry", len(rest))
	}
	return list, ""
}

// decodeBatch adds the entry of a batch that b begins with, whose first record is not before
// from. It returns the entry's length without its checksum, and the offset behind it.
func (s *sidecar) decodeBatch(b []byte, from int64) (size int, next int64, ok bool) {
	le := binary.LittleEndian
	if len(b) < 24 {
		return 0, 0, false
	}
	first := int64(le.Uint64(b))
	r := &replaced{records: le.Uint32(b[8:]), unpacked: le.Uint32(b[12:])}
	count, length := int64(le.Uint32(b[16:])), int64(le.Uint32(b[20:]))
	if first < from || r.records == 0 || r.unpacked > maxUnpacked || length <= packOverhead || 24+4*count+length > int64(len(b)) {
		return 0, 0, false
	}
	size = 24
	for range count {
		r.redacted = append(r.redacted, le.Uint32(b[size:]))
		size += 4
	}
	r.packed = b[size : size+int(length) : size+int(length)]
	s.batches[first] = r
	return size + int(length), first + int64(r.records), true
}

// decodeRecord is decodeBatch for an entry of version 1.
func (s *sidecar) decodeRecord(b []byte, from int64) (size int, next int64, ok bool) {
	le := binary.LittleEndian
	if len(b) < 16 {
		return 0, 0, false
	}
	offset, r := int64(le.Uint64(b)), &redacted{sum: le.Uint32(b[8:])}
	count, rest := int(le.Uint32(b[12:])), b[16:]
	if offset < from || count > len(rest)/12 {
		return 0, 0, false
	}
	at := 0
	for range count {
		if len(rest) < 12 {
			return 0, 0, false
		}
		x := eventlog.Splice{At: int(le.Uint32(rest)), Len: int(le.Uint32(rest[4:]))}
		n := int(le.Uint32(rest[8:]))
		rest = rest[12:]
		if x.At < at || n > len(rest) {
			return 0, 0, false
		}
		x.New, rest = rest[:n:n], rest[n:]
		at = x.At + x.Len
		r.splices = append(r.splices, x)
	}
	s.records[offset] = r
	return len(b) - len(rest), offset + 1, true
}

// readSidecar reads the sidecar of a segment, which is empty when it has none.
func readSidecar(fsys vfs.FS, seg *segment) (sidecar, error) {
	path := seg.sidecarPath(redactedSuffix)
	b, err := readWhole(fsys, path)
	if isNotExist(err) {
		return sidecar{}, nil
	}
	if err != nil {
		return sidecar{}, fmt.Errorf("read %s: %w", path, err)
	}
	list, reason := decodeSidecar(b, &seg.header)
	if reason != "" {
		return sidecar{}, &eventlog.CorruptError{File: path, Offset: seg.header.first, Reason: reason}
	}
	return list, nil
}

// has reports whether bytes of a record were redacted. first is the offset of the first one
// of its batch.
func (s *sidecar) has(first, offset int64) bool {
	if x := s.batches[first]; x != nil {
		_, ok := slices.BinarySearch(x.redacted, uint32(offset-first))
		return ok
	}
	return s.records[offset] != nil
}

// empty reports whether nothing of the segment was redacted.
func (s *sidecar) empty() bool { return len(s.batches) == 0 && len(s.records) == 0 }

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
		_ = fsys.Remove(path + tmpSuffix) // a start removes it, too
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
