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

// headEnd is where identifiers and names end in a document that was just written.
func headEnd(b []byte) int {
	at := 1 + 8
	block := func() {
		n, size := binary.Uvarint(b[at:])
		at += size + int(n)
	}
	count, size := binary.Uvarint(b[at:])
	for at += size; count > 0; count-- {
		at++ // the kind
		block()
	}
	block()
	block()
	return at
}

// SameHead reports whether two documents have the same identifiers and names.
func SameHead(old, now []byte) bool {
	const from = 1 + 8 // version and creation
	n := headEnd(now)
	return len(old) >= n && bytes.Equal(old[from:n], now[from:n])
}
