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

// blockAt is the block that begins at a place of a document, and where it ends.
func blockAt(b []byte, at int) (block []byte, end int) {
	n, size := binary.Uvarint(b[at:])
	at += size
	end = at + int(n)
	return b[at:end:end], end
}

// blockEnd is where a block ends that begins at a place of a document.
func blockEnd(b []byte, at int) int {
	_, end := blockAt(b, at)
	return end
}

// Names are the first and the last name of a document, which are parts of it.
func Names(b []byte) (first, last []byte) {
	at := namesAt(b)
	first, at = blockAt(b, at)
	last, _ = blockAt(b, at)
	return first, last
}

// Likeness says in what two documents of a profile are the same.
type Likeness struct {
	Identifiers bool
	Names       bool // and identifiers
	// Standing: all but creation, names, geo and attributes, so identifiers, consents, suppressions
	// and devices, on which it depends whether a message may be sent.
	Standing bool
}

// Compare compares two documents; one that is not there is like no other.
func Compare(old, now []byte) (same Likeness) {
	if old == nil || now == nil {
		return same
	}
	n := namesAt(now)
	if len(old) < n || !bytes.Equal(old[identifiersAt:n], now[identifiersAt:n]) {
		return same
	}
	atOld, at := blockEnd(old, blockEnd(old, n)), blockEnd(now, blockEnd(now, n))
	same.Identifiers, same.Names = true, bytes.Equal(old[n:atOld], now[n:at])
	atOld, at = blockEnd(old, blockEnd(old, atOld)), blockEnd(now, blockEnd(now, at)) // geo and attributes
	// Versions differ in what comes after the attributes.
	same.Standing = old[0] == now[0] && bytes.Equal(old[atOld:], now[at:])
	return same
}
