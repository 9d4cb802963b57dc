package profile

import (
	"bytes"
	"encoding/binary"

	"github.com/musterhq/muster/internal/wire"
)

// DecodeHead reads identifiers and names alone; the rest of d is empty.
func (d *Document) DecodeHead(b []byte) error {
	d.Reset()
	r := wire.Reader{B: b}
	r.U8()
	d.CreatedMs = int64(r.U64())
	for n := r.Count(2); n > 0; n-- {
		kind := r.U8()
		d.Identifiers = append(d.Identifiers, identifierOf(kind, r.Block()))
	}
	d.FirstName, d.LastName = r.Block(), r.Block()
	if r.Bad {
		return errDocument
	}
	return nil
}

// identifiersAt is where identifiers begin in a document: after its version and its creation.
const identifiersAt = 1 + 8

// namesAt is where identifiers end and names begin in a document that was just written.
func namesAt(b []byte) int {
	at := identifiersAt
	count, size := binary.Uvarint(b[at:])
	for at += size; count > 0; count-- {
		at = blockEnd(b, at+1) // after the kind
	}
	return at
}

// blockEnd is where a block ends that begins at a place of a document.
func blockEnd(b []byte, at int) int {
	n, size := binary.Uvarint(b[at:])
	return at + size + int(n)
}

// SameHead reports whether two documents have the same identifiers and names.
func SameHead(old, now []byte) bool {
	n := blockEnd(now, blockEnd(now, namesAt(now)))
	return len(old) >= n && bytes.Equal(old[identifiersAt:n], now[identifiersAt:n])
}

// SameStanding reports whether two documents are the same but for creation, names, geo and
// attributes: then they have the same identifiers, consents, blocks and devices, on which it
// depends whether a message may be sent.
func SameStanding(old, now []byte) bool {
	n := namesAt(now)
	// Versions differ in what comes after the attributes.
	if len(old) < n || old[0] != now[0] || !bytes.Equal(old[identifiersAt:n], now[identifiersAt:n]) {
		return false
	}
	restOld, rest := n, n
	for range 4 { // first name, last name, geo, attributes
		restOld, rest = blockEnd(old, restOld), blockEnd(now, rest)
	}
	return bytes.Equal(old[restOld:], now[rest:])
}
