package duckdb

import (
	"encoding/binary"
	"unsafe"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
)

// stringRef is DuckDB's duckdb_string_t, 16 bytes: the length, then either up
// to 12 bytes of the string padded with zeros, or its first 4 bytes and the
// address of all of it.
type stringRef struct {
	head uint64 // length in the low half, the first 4 bytes in the high half
	tail uint64 // the next 8 bytes, or the address
}

const inlineBytes = 12

// fillStrings points the refs at the strings from first on. Longer strings are
// referenced where they are: the caller keeps src.Data pinned until DuckDB has
// copied them.
func fillStrings(refs []stringRef, src *query.Strings, first int) {
	data := src.Data
	ends := src.Ends[first : first+len(refs)]
	start := uint32(0)
	if first > 0 {
		start = src.Ends[first-1]
	}
	for i, end := range ends {
		s := data[start:end]
		n := uint64(len(s))
		switch {
		case n > inlineBytes:
			refs[i] = stringRef{
				head: n | uint64(binary.LittleEndian.Uint32(s))<<32,
				// As a number: the memory written to is not Go's, and the
				// bytes are pinned.
				tail: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s)))),
			}
		case n == 0:
			refs[i] = stringRef{}
		default:
			var b [inlineBytes]byte
			copy(b[:], s)
			refs[i] = stringRef{
				head: n | uint64(binary.LittleEndian.Uint32(b[:]))<<32,
				tail: binary.LittleEndian.Uint64(b[4:]),
			}
		}
		start = end
	}
}

// bytes is the string a result's reference stands for, in DuckDB's memory.
func (r *stringRef) bytes() []byte {
	n := int(uint32(r.head))
	if n <= inlineBytes {
		return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), 4)), n)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&r.tail)), n)
}

// fill copies values into a column of the chunk. T must have the width of the
// column's type.
func fill[T any](dc bindings.DataChunk, col int, values []T) {
	v := bindings.DataChunkGetVector(dc, bindings.IdxT(col))
	copy(unsafe.Slice((*T)(bindings.VectorGetData(v)), len(values)), values)
}

func fillText(dc bindings.DataChunk, col int, src *query.Strings, first, n int) {
	v := bindings.DataChunkGetVector(dc, bindings.IdxT(col))
	fillStrings(unsafe.Slice((*stringRef)(bindings.VectorGetData(v)), n), src, first)
}

// put writes one value. T must have the width of the column's type.
func put[T any](dc bindings.DataChunk, col, row int, value T) {
	v := bindings.DataChunkGetVector(dc, bindings.IdxT(col))
	unsafe.Slice((*T)(bindings.VectorGetData(v)), row+1)[row] = value
}

func newChunk(types ...bindings.Type) bindings.DataChunk {
	logical := make([]bindings.LogicalType, len(types))
	for i, t := range types {
		logical[i] = bindings.CreateLogicalType(t)
		defer bindings.DestroyLogicalType(&logical[i])
	}
	return bindings.CreateDataChunk(logical)
}
