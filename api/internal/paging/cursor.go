package paging

import (
	"encoding/base64"
	"errors"
)

// Kind distinguishes cursors, and the versions of their layout.
type Kind byte

// The kinds there are. A new one stands before End.
const (
	Timeline Kind = 1 + iota
	Members       // of a segment
	Segments
	ByAge       // lists that are sorted by age
	Accounts    // companies
	DeadLetters // of a webhook
	Outbox      // captured messages
	ByOrdinal   // lists in order of ordinals
	Enrolments  // of a flow
	Profiles    // that a search finds
	Deliveries  // of a webhook
	Audit       // the audit log
	History     // of a profile: all kinds of entries
	Imports     // of CSV files
	Orders      // of a profile
	End         // one more than the last
)

// ErrCursor reports that a text is no cursor of the kind.
var ErrCursor = errors.New("cursor is not one that this call answered; leave it out to start at the beginning")

var text = base64.RawURLEncoding

// Encode is the cursor that names a place.
func Encode(kind Kind, place []byte) string {
	return text.EncodeToString(append([]byte{byte(kind)}, place...))
}

// Decode is the place that a cursor of a kind names; nil when there is no
// cursor. A place that has not got the length, in bytes, is none; 0 is any
// length. The error is [ErrCursor].
func Decode(cursor []byte, kind Kind, length int) (place []byte, err error) {
	if len(cursor) == 0 {
		return nil, nil
	}
	b, err := text.DecodeString(string(cursor))
	if err != nil || len(b) == 0 || b[0] != byte(kind) || (length > 0 && len(b) != 1+length) {
		return nil, ErrCursor
	}
	return b[1:], nil
}
