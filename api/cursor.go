package api

import (
	"encoding/binary"

	"github.com/musterhq/muster/api/internal/paging"
)

// cursor decodes the query's cursor of a kind; nil if none was given. The place
// it names has length bytes, any number if that is 0.
func (c *call) cursor(kind paging.Kind, length int) (place []byte, err error) {
	place, err = paging.Decode(c.QueryArgs().Peek("cursor"), kind, length)
	return place, cursorFault(err)
}

// numberCursor is the number at which a page of numbered entries begins, 0 for that of the
// first page.
func (c *call) numberCursor(kind paging.Kind) (uint64, error) {
	place, err := c.cursor(kind, 8)
	if place == nil || err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(place), nil
}

func encodeNumberCursor(kind paging.Kind, number uint64) string {
	return paging.Encode(kind, binary.BigEndian.AppendUint64(nil, number))
}

// cursorFault is what is wrong with the cursor of a query.
func cursorFault(err error) error {
	if err == nil {
		return nil
	}
	return badField("cursor", "%s", err)
}

func cursorOrNull(next string) *string {
	if next == "" {
		return nil
	}
	return &next
}
