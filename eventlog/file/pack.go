package file

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"
)

// The records of a batch are compressed as a whole: events of one moment are alike, and so
// fewer bytes are written, synced and kept. S2 takes less time than the bytes saved would to
// be written. See docs/decisions/0107-compressed-log.md.

const (
	// packOverhead is the checksum behind what is packed.
	packOverhead = 4
	// maxUnpacked is more than the records of any batch have: those of one batch are below
	// maxBatchBytes, or one record.
	maxUnpacked = maxRecordLimit + frameOverhead
)

// maxPacked is the most bytes that n bytes of records are packed in.
func maxPacked(n int) int { return s2.MaxEncodedLen(n) + packOverhead }

// pack appends the packed form of records to dst.
func pack(dst, records []byte) []byte {
	begin := len(dst)
	dst = slices.Grow(dst, maxPacked(len(records)))
	dst = dst[:begin+len(s2.Encode(dst[begin:cap(dst)], records))]
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[begin:]))
}

// packedSum is the checksum that what is packed ends with.
func packedSum(packed []byte) uint32 { return le32(packed[len(packed)-packOverhead:]) }

// badBatch is why a batch is not what was written; after any other reason it is, and makes
// no sense.
const badBatch = "checksum of the batch does not match"

// unpack returns records of n bytes, in dst if it has room, and why packed does not hold
// them, or "".
func unpack(dst, packed []byte, n int) (records []byte, reason string) {
	if len(packed) <= packOverhead {
		return nil, badBatch
	}
	block := packed[:len(packed)-packOverhead]
	if checksum(block) != packedSum(packed) {
		return nil, badBatch
	}
	if got, err := s2.DecodedLen(block); err != nil || got != n {
		return nil, "the batch is not packed as its head says"
	}
	records, err := s2.Decode(slices.Grow(dst[:0], n)[:n], block)
	if err != nil {
		return nil, "the batch cannot be unpacked: " + err.Error()
	}
	return records, ""
}
