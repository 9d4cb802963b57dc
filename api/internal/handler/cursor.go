package handler

import (
	"encoding/binary"

	"github.com/musterhq/muster/api/internal/paging"
)

// Cursor decodes the query's cursor of a kind; nil if none was given. The place
// it names has length bytes, any number if that is 0.
func (c *Call) Cursor(kind paging.Kind, length int) (place []byte, err error) {
	place, err = paging.Decode(c.QueryArgs().Peek("cursor"), kind, length)
	return place, CursorFault(err)
}

// NumberCursor is the number at which a page of numbered entries begins, 0 for that of the
// first page.
func (c *Call) NumberCursor(kind paging.Kind) (uint64, error) {
	place, err := c.Cursor(kind, 8)
	if place == nil || err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(place), nil
}

// EncodeNumberCursor is the cursor that [Call.NumberCursor] reads.
func EncodeNumberCursor(kind paging.Kind, number uint64) string {
	return paging.Encode(kind, binary.BigEndian.AppendUint64(nil, number))
}

// CursorFault is the fault of the cursor of a query.
func CursorFault(err error) error {
	if err == nil {
		return nil
	}
	return BadField("cursor", "%s", err)
}

// CursorOrNull is a cursor as lists inside an object answer it: null at the end.
func CursorOrNull(next string) *string {
	if next == "" {
		return nil
	}
	return &next
}
