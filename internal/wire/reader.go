// Package wire reads the primitives of Muster's binary layouts: little-endian
// integers, unsigned varints, and blocks (a varint length and that many bytes).
//
// A [Reader] never panics, whatever the bytes. Callers read what they expect and
// ask once at the end whether a fault was met.
package wire

import (
	"encoding/binary"
	"math"
)

// Reader reads from the front of B. After a fault it yields zeroes, and Bad is
// set.
type Reader struct {
	B   []byte // what has not been read
	Bad bool
}

// fail notes a fault.
func (r *Reader) fail() { r.Bad, r.B = true, nil }

// Take returns the next n bytes, nil after a fault. They are those of B, and
// cannot be appended to in place.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.B)) {
		r.fail()
		return nil
	}
	out := r.B[:n:n]
	r.B = r.B[n:]
	return out
}

// U8 reads a byte.
func (r *Reader) U8() byte {
	if b := r.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// U32 reads four bytes.
func (r *Reader) U32() uint32 {
	if b := r.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 reads eight bytes.
func (r *Reader) U64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	n, w := binary.Uvarint(r.B)
	if w <= 0 {
		r.fail()
		return 0
	}
	r.B = r.B[w:]
	return n
}

// Count reads the number of items that take at least size bytes each; more than
// there is room for are a fault.
func (r *Reader) Count(size int) int {
	n := r.Uvarint()
	if n > math.MaxInt32 || int(n)*size > len(r.B) {
		r.fail()
		return 0
	}
	return int(n)
}

// Block reads a block, nil for an empty one.
func (r *Reader) Block() []byte {
	if n := r.Uvarint(); n > 0 {
		return r.Take(n)
	}
	return nil
}

// AppendBlock appends a block.
func AppendBlock(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
