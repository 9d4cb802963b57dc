package api

import (
	"encoding/binary"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/query"
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

const timelineCursorBytes = 8 + 8 + 4

func encodeTimelineCursor(k query.TimelineKey) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(k.TimeMs))
	b = binary.LittleEndian.AppendUint64(b, uint64(k.Offset))
	return paging.Encode(paging.Timeline, binary.LittleEndian.AppendUint32(b, k.Index))
}

func timelineCursor(c *call) (*query.TimelineKey, error) {
	b, err := c.cursor(paging.Timeline, timelineCursorBytes)
	if b == nil {
		return nil, err
	}
	return &query.TimelineKey{
		TimeMs: int64(binary.LittleEndian.Uint64(b)),
		Offset: int64(binary.LittleEndian.Uint64(b[8:])),
		Index:  binary.LittleEndian.Uint32(b[16:]),
	}, nil
}

// memberCursor names a place in a segment's members, under one definition.
type memberCursor struct {
	from       uint32  // the first ordinal of the page
	definition [8]byte // start of the definition's hash
}

const memberCursorBytes = 4 + 8

func (m memberCursor) encode() string {
	b := binary.LittleEndian.AppendUint32(nil, m.from)
	return paging.Encode(paging.Members, append(b, m.definition[:]...))
}

func peekMemberCursor(c *call) (*memberCursor, error) {
	b, err := c.cursor(paging.Members, memberCursorBytes)
	if b == nil {
		return nil, err
	}
	return &memberCursor{binary.LittleEndian.Uint32(b), [8]byte(b[4:])}, nil
}
