package paging

import "encoding/binary"

// DecodeOrdinal reads a cursor of [NextOrdinal]: the first ordinal of the page,
// 0 without a cursor. The error is [ErrCursor].
func DecodeOrdinal(cursor []byte) (from uint32, err error) {
	b, err := Decode(cursor, ByOrdinal, 4)
	if b == nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

// NextOrdinal is the cursor of what stands behind the last of a page, "" when
// the page was not full.
func NextOrdinal(page []uint32, limit int) string {
	if len(page) < limit {
		return ""
	}
	return Encode(ByOrdinal, binary.LittleEndian.AppendUint32(nil, page[len(page)-1]+1))
}
