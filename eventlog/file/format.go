package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// The layouts here are those of docs/formats.md, "Event log". All integers are
// little-endian.

const (
	// packedVersion is that of segments and sidecars. Segments of rawVersion hold their
	// records as they are; none is begun any more. smallVersion is that of the small files.
	packedVersion = 2
	rawVersion    = 1
	smallVersion  = 1

	segmentHeaderSize = 64
	batchHeaderSize   = 48

	// A record is length (4), offset (8), payload, CRC (4).
	frameHeadSize = 12
	frameOverhead = frameHeadSize + 4

	// batchMagic has its highest bit set, a record's length never has: the
	// first word tells a batch head from a record.
	// maxOffset is above that of any record, and far from where adding to it overflows.
	maxOffset = 1 << 62

	batchMagic    = 0xB7C4A5E9
	batchMagicBit = 1 << 31
)

var (
	segmentMagic    = [8]byte{'M', 'U', 'S', 'T', 'R', 'L', 'O', 'G'}
	batchMagicBytes = binary.LittleEndian.AppendUint32(nil, batchMagic)
	castagnoli      = crc32.MakeTable(crc32.Castagnoli)
)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// batchKind says what a batch head announces.
type batchKind uint8

const (
	// batchRecords is followed by records as they are. Only segments of version 1 have it.
	batchRecords batchKind = 1
	// batchMark says that all before it is durable; the next batch overwrites
	// it.
	batchMark batchKind = 2
	// batchSeal ends a segment whose successor exists.
	batchSeal batchKind = 3
	// batchPacked is followed by records that are compressed as a whole, see pack.go.
	batchPacked batchKind = 4
)

// segmentHeader is the first 64 bytes of a segment file.
type segmentHeader struct {
	version   uint32
	partition int
	// first is the offset of the segment's first record, prev that of the
	// segment before it (its own for the very first segment).
	first, prev int64
	// salt is random per segment and binds batch heads to it.
	salt uint64
	// logID is the identity of the log in the meta file.
	logID uint64
}

func (h *segmentHeader) encode() []byte {
	b := make([]byte, segmentHeaderSize)
	copy(b, segmentMagic[:])
	le := binary.LittleEndian
	le.PutUint32(b[8:], h.version)
	le.PutUint32(b[12:], uint32(h.partition))
	le.PutUint64(b[16:], uint64(h.first))
	le.PutUint64(b[24:], uint64(h.prev))
	le.PutUint64(b[32:], h.salt)
	le.PutUint64(b[40:], h.logID)
	le.PutUint32(b[60:], checksum(b[:60]))
	return b
}

// decodeSegmentHeader returns why the bytes are no segment header, or "".
func decodeSegmentHeader(b []byte) (h segmentHeader, reason string) {
	le := binary.LittleEndian
	switch {
	case len(b) < segmentHeaderSize:
		return h, fmt.Sprintf("segment header cut short at %d bytes", len(b))
	case !bytes.Equal(b[:8], segmentMagic[:]):
		return h, "no segment header"
	case le.Uint32(b[60:]) != checksum(b[:60]):
		return h, "checksum of the segment header does not match"
	}
	h.version = le.Uint32(b[8:])
	if h.version != rawVersion && h.version != packedVersion {
		return h, fmt.Sprintf("format version %d, this build reads versions %d and %d", h.version, rawVersion, packedVersion)
	}
	h.partition = int(le.Uint32(b[12:]))
	h.first = int64(le.Uint64(b[16:]))
	h.prev = int64(le.Uint64(b[24:]))
	h.salt = le.Uint64(b[32:])
	h.logID = le.Uint64(b[40:])
	return h, ""
}

// batchHeader precedes the records of one group commit.
type batchHeader struct {
	kind batchKind
	// first is the offset of the batch's first record; for a mark or a seal
	// the offset of the next record there will be.
	first int64
	// body is the length in bytes of what is behind the head, up to the next one.
	body uint32
	// records is the number of records, unpacked their length in bytes: that of body where
	// they are not packed.
	records, unpacked uint32
}

// encode writes the head for byte position pos of the segment with this salt.
func (h *batchHeader) encode(b []byte, salt uint64, pos int64) {
	le := binary.LittleEndian
	le.PutUint32(b, batchMagic)
	le.PutUint32(b[4:], uint32(h.kind))
	le.PutUint64(b[8:], salt)
	le.PutUint64(b[16:], uint64(pos))
	le.PutUint64(b[24:], uint64(h.first))
	le.PutUint32(b[32:], h.body)
	le.PutUint32(b[36:], h.records)
	le.PutUint32(b[40:], 0)
	if h.kind == batchPacked {
		le.PutUint32(b[40:], h.unpacked)
	}
	le.PutUint32(b[44:], checksum(b[:44]))
}

// decodeBatchHeader reports whether b is a whole batch head that was written
// at this position of the segment with this salt. What it says may still be
// nonsense: see check.
func decodeBatchHeader(b []byte, salt uint64, pos int64) (h batchHeader, ok bool) {
	le := binary.LittleEndian
	if len(b) < batchHeaderSize ||
		le.Uint32(b) != batchMagic ||
		le.Uint64(b[8:]) != salt ||
		int64(le.Uint64(b[16:])) != pos ||
		le.Uint32(b[44:]) != checksum(b[:44]) {
		return h, false
	}
	h.kind = batchKind(le.Uint32(b[4:]))
	if le.Uint32(b[4:]) > 0xff {
		h.kind = 0
	}
	h.first = int64(le.Uint64(b[24:]))
	h.body = le.Uint32(b[32:])
	h.records = le.Uint32(b[36:])
	h.unpacked = h.body
	if h.kind == batchPacked {
		h.unpacked = le.Uint32(b[40:])
	}
	return h, true
}

// check returns what is wrong with a head whose checksum holds, or "". next is
// the offset expected.
func (h *batchHeader) check(next int64) string {
	if h.first != next {
		return fmt.Sprintf("batch starts at offset %d, expected %d", h.first, next)
	}
	if h.first > maxOffset {
		return fmt.Sprintf("batch starts at offset %d, the most is %d", h.first, int64(maxOffset))
	}
	switch h.kind {
	case batchRecords, batchPacked:
		if h.records == 0 || uint64(h.unpacked) < uint64(h.records)*frameOverhead || h.unpacked > maxUnpacked {
			return fmt.Sprintf("batch of %d records in %d bytes", h.records, h.unpacked)
		}
		if h.kind == batchPacked && h.records > 1 && h.unpacked > maxBatchBytes {
			return fmt.Sprintf("batch of %d records in %d bytes, the most is %d", h.records, h.unpacked, maxBatchBytes)
		}
		if h.kind == batchPacked && (h.body <= packOverhead || uint64(h.body) > uint64(maxPacked(int(h.unpacked)))) {
			return fmt.Sprintf("batch of %d bytes packed in %d", h.unpacked, h.body)
		}
	case batchMark, batchSeal:
		if h.records != 0 || h.body != 0 {
			return "mark with a body"
		}
	default:
		return fmt.Sprintf("batch of unknown kind %d", h.kind)
	}
	return ""
}

// putFrame writes a record into b, which must have room for it, and returns
// its length.
func putFrame(b []byte, offset int64, data []byte) int {
	le := binary.LittleEndian
	le.PutUint32(b, uint32(len(data)))
	le.PutUint64(b[4:], uint64(offset))
	copy(b[frameHeadSize:], data)
	end := frameHeadSize + len(data)
	le.PutUint32(b[end:], checksum(b[:end]))
	return end + 4
}

// appendFrame is putFrame at the end of b.
func appendFrame(b []byte, offset int64, data []byte) []byte {
	begin := len(b)
	b = slices.Grow(b, len(data)+frameOverhead)
	return b[:begin+putFrame(b[begin:cap(b)], offset, data)]
}

// frameAt returns the record at the start of b, which must be whole.
func frameAt(b []byte) (offset int64, data []byte, size int) {
	n := int(binary.LittleEndian.Uint32(b))
	offset = int64(binary.LittleEndian.Uint64(b[4:]))
	return offset, b[frameHeadSize : frameHeadSize+n : frameHeadSize+n], n + frameOverhead
}

// frameHead returns the offset and the whole length of the record whose head
// is at the start of b.
func frameHead(b []byte) (offset int64, size int) {
	return int64(binary.LittleEndian.Uint64(b[4:])), int(le32(b)) + frameOverhead
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// isBatchHead tells a batch head from a record by the first word.
func isBatchHead(b []byte) bool {
	return binary.LittleEndian.Uint32(b)&batchMagicBit != 0
}
