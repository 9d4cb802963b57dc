package api

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/musterhq/muster/query"
)

// Cursors are bytes in base64 that clients hand back as they got them. The
// first byte tells the kinds and versions apart: a cursor of one kind is refused
// where another is read. All kinds are here, so that no two have one byte.
const (
	cursorTimeline = 1 + iota
	cursorMembers
	cursorSegments
	cursorAge     // lists that are sorted by age
	cursorAccount // companies
	cursorDead    // dead letters of webhooks
	cursorOutbox  // captured messages
	cursorOrdinal // lists in order of ordinals
	cursorEnd
)

var cursorText = base64.RawURLEncoding

// peekCursor decodes the query's cursor of a kind and length; nil if none was
// given.
func peekCursor(c *call, kind byte, length int) ([]byte, error) {
	text := c.QueryArgs().Peek("cursor")
	if len(text) == 0 {
		return nil, nil
	}
	b, err := cursorText.DecodeString(string(text))
	if err != nil || len(b) == 0 || b[0] != kind || (length > 0 && len(b) != length) {
		return nil, badField("cursor", "cursor is not one that this call answered; leave it out to start at the beginning")
	}
	return b[1:], nil
}

func cursorOrNull(next string) *string {
	if next == "" {
		return nil
	}
	return &next
}

const timelineCursorBytes = 1 + 8 + 8 + 4

func encodeTimelineCursor(k query.TimelineKey) string {
	b := binary.LittleEndian.AppendUint64([]byte{cursorTimeline}, uint64(k.TimeMs))
	b = binary.LittleEndian.AppendUint64(b, uint64(k.Offset))
	return cursorText.EncodeToString(binary.LittleEndian.AppendUint32(b, k.Index))
}

func timelineCursor(c *call) (*query.TimelineKey, error) {
	b, err := peekCursor(c, cursorTimeline, timelineCursorBytes)
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

const memberCursorBytes = 1 + 4 + 8

func (m memberCursor) encode() string {
	b := binary.LittleEndian.AppendUint32([]byte{cursorMembers}, m.from)
	return cursorText.EncodeToString(append(b, m.definition[:]...))
}

func peekMemberCursor(c *call) (*memberCursor, error) {
	b, err := peekCursor(c, cursorMembers, memberCursorBytes)
	if b == nil {
		return nil, err
	}
	return &memberCursor{binary.LittleEndian.Uint32(b), [8]byte(b[4:])}, nil
}
