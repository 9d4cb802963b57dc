package resolver

import (
	"encoding/binary"
	"errors"
	"math"
)

// documentVersion is the version of the layout written; version 1, without
// what [document.appendMore] writes, is read too.
const documentVersion = 2

var errDocument = errors.New("profile document is damaged")

// ident is one identifier of a profile, as given.
type ident struct {
	kind  IdentityKind
	value []byte
}

// consentState is what is known of one channel.
type consentState struct {
	channel byte
	status  byte
	sinceMs int64 // of the status
	source  []byte
	// subscribedMs is when the channel was subscribed to last, 0 if never.
	subscribedMs int64
}

// mergedProfile is a profile that was merged into this one.
type mergedProfile struct {
	ordinal uint32
	atMs    int64
}

// conflict is an identifier that was seen with this profile and stayed
// elsewhere, or was not attached.
type conflict struct {
	kind   IdentityKind
	reason conflictReason
	other  uint32 // the other profile, noOrdinal if none
	atMs   int64
	value  []byte
}

type conflictReason byte

// Why an identifier stayed where it was. Numbers are on disk.
const (
	// conflictHigherRank: both profiles hold a value of a higher-ranked kind.
	conflictHigherRank conflictReason = iota + 1
	// conflictTooMany: the profile would hold too many identifiers.
	conflictTooMany
	// conflictTooLarge: the merged attributes would be too large.
	conflictTooLarge
)

var conflictReasons = map[conflictReason]string{
	conflictHigherRank: "both profiles hold a different identifier of a higher rank",
	conflictTooMany:    "the profile would hold too many identifiers",
	conflictTooLarge:   "the merged attributes would be too large",
}

// maxConflicts is how many conflicts a profile keeps, the newest.
const maxConflicts = 20

// document is the variable part of a profile. Decoded, its slices point into
// the encoded block; blocks are never changed in place.
type document struct {
	createdMs  int64
	idents     []ident // the newest of a kind stands last
	firstName  []byte
	lastName   []byte
	geo        []byte // canonical JSON object, empty for none
	attributes []byte // canonical JSON object, empty for none
	consents   []consentState
	merged     []mergedProfile
	conflicts  []conflict
	contactExtra
}

func (d *document) reset() {
	*d = document{idents: d.idents[:0], consents: d.consents[:0], merged: d.merged[:0], conflicts: d.conflicts[:0],
		contactExtra: contactExtra{lists: d.lists[:0], blocks: d.blocks[:0], devices: d.devices[:0], soft: d.soft[:0]}}
}

// newest is the identifier of the kind that is shown, nil if there is none.
func (d *document) newest(kind IdentityKind) []byte {
	for i := len(d.idents) - 1; i >= 0; i-- {
		if d.idents[i].kind == kind {
			return d.idents[i].value
		}
	}
	return nil
}

func (d *document) has(kind IdentityKind) bool { return d.newest(kind) != nil }

func appendBlock(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func (d *document) append(dst []byte) []byte {
	dst = append(dst, documentVersion)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(d.createdMs))
	dst = binary.AppendUvarint(dst, uint64(len(d.idents)))
	for _, id := range d.idents {
		dst = appendBlock(append(dst, byte(id.kind)), id.value)
	}
	for _, b := range [...][]byte{d.firstName, d.lastName, d.geo, d.attributes} {
		dst = appendBlock(dst, b)
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.consents)))
	for _, c := range d.consents {
		dst = append(dst, c.channel, c.status)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.sinceMs))
		dst = appendBlock(dst, c.source)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.subscribedMs))
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.merged)))
	for _, m := range d.merged {
		dst = binary.LittleEndian.AppendUint32(dst, m.ordinal)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(m.atMs))
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.conflicts)))
	for _, c := range d.conflicts {
		dst = append(dst, byte(c.kind), byte(c.reason))
		dst = binary.LittleEndian.AppendUint32(dst, c.other)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.atMs))
		dst = appendBlock(dst, c.value)
	}
	return d.contactExtra.append(dst)
}

// decode reads an encoded document; it never panics.
func (d *document) decode(b []byte) error {
	d.reset()
	r := blockReader{b: b}
	version := r.u8()
	if version != 1 && version != documentVersion {
		return errDocument
	}
	d.createdMs = int64(r.u64())
	for n := r.count(2); n > 0; n-- {
		k := IdentityKind(r.u8())
		if k >= identityKinds {
			return errDocument
		}
		d.idents = append(d.idents, ident{k, r.block()})
	}
	d.firstName, d.lastName = r.block(), r.block()
	d.geo, d.attributes = r.block(), r.block()
	for n := r.count(11); n > 0; n-- {
		c := consentState{channel: r.u8(), status: r.u8(), sinceMs: int64(r.u64()), source: r.block()}
		if version > 1 {
			c.subscribedMs = int64(r.u64())
		}
		d.consents = append(d.consents, c)
	}
	for n := r.count(12); n > 0; n-- {
		d.merged = append(d.merged, mergedProfile{r.u32(), int64(r.u64())})
	}
	for n := r.count(15); n > 0; n-- {
		c := conflict{kind: IdentityKind(r.u8()), reason: conflictReason(r.u8()), other: r.u32(), atMs: int64(r.u64()), value: r.block()}
		if c.kind >= identityKinds {
			return errDocument
		}
		d.conflicts = append(d.conflicts, c)
	}
	if version > 1 {
		d.contactExtra.decode(&r)
	}
	if r.bad || len(r.b) != 0 {
		return errDocument
	}
	return nil
}

// blockReader reads the primitives of the store's layouts. After a fault it
// yields zeroes and bad is set.
type blockReader struct {
	b   []byte
	bad bool
}

func (r *blockReader) take(n int) []byte {
	if n > len(r.b) || n < 0 {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *blockReader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *blockReader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *blockReader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *blockReader) uvarint() uint64 {
	n, w := binary.Uvarint(r.b)
	if w <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[w:]
	return n
}

// count reads a number of items that take at least size bytes each.
func (r *blockReader) count(size int) int {
	n := r.uvarint()
	if n > math.MaxInt32 || int(n)*size > len(r.b) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *blockReader) block() []byte {
	n := r.uvarint()
	if n > math.MaxInt32 {
		r.bad, r.b = true, nil
		return nil
	}
	if n == 0 {
		return nil
	}
	return r.take(int(n))
}
