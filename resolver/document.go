package resolver

import (
	"encoding/binary"
	"errors"

	"github.com/musterhq/muster/internal/wire"
)

// documentVersion is the version of the layout written; version 1, without
// what [document.appendMore] writes, is read too.
const documentVersion = 2

var errDocument = errors.New("profile document is damaged")

// ident is one identifier of a profile, as given.
type ident struct {
	kind  IdentityKind
	value []byte
	// shared says that the value identifies another profile, which held it first:
	// this one shows it, and no look-up by it leads here. See share.go.
	shared bool
}

// sharedBit marks a shared identifier in an encoded document, beside its kind.
const sharedBit = 1 << 7

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
// elsewhere, was not attached, or is in doubt.
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
	// conflictHeld: a contact was made with it, and another profile held it first.
	conflictHeld
	// conflictSecond: a lower-ranked identifier led to the profile, which has a value
	// of this kind already. The new one is attached all the same.
	conflictSecond
)

var conflictReasons = map[conflictReason]string{
	conflictHigherRank: "both profiles hold a different identifier of a higher rank",
	conflictTooMany:    "the profile would hold too many identifiers",
	conflictTooLarge:   "the merged attributes would be too large",
	conflictHeld:       "another profile held the identifier first, and is identified by it",
	conflictSecond:     "a lower-ranked identifier attached a second value to the profile",
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

// firstSeen is when the profile was created, or the time of its first event if
// that is earlier.
func (d *document) firstSeen() int64 {
	if d.earlier.known {
		return d.earlier.ms
	}
	return d.createdMs
}

// seen notes the time of an event; it returns whether none was earlier.
func (d *document) seen(ms int64) bool {
	if ms >= d.firstSeen() {
		return false
	}
	d.earlier = earlier{ms, true}
	return true
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

func (d *document) append(dst []byte) []byte {
	dst = append(dst, documentVersion)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(d.createdMs))
	dst = binary.AppendUvarint(dst, uint64(len(d.idents)))
	for _, id := range d.idents {
		kind := byte(id.kind)
		if id.shared {
			kind |= sharedBit
		}
		dst = wire.AppendBlock(append(dst, kind), id.value)
	}
	for _, b := range [...][]byte{d.firstName, d.lastName, d.geo, d.attributes} {
		dst = wire.AppendBlock(dst, b)
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.consents)))
	for _, c := range d.consents {
		dst = append(dst, c.channel, c.status)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.sinceMs))
		dst = wire.AppendBlock(dst, c.source)
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
		dst = wire.AppendBlock(dst, c.value)
	}
	return d.contactExtra.append(dst)
}

// decode reads an encoded document; it never panics.
func (d *document) decode(b []byte) error {
	d.reset()
	r := wire.Reader{B: b}
	version := r.U8()
	if version != 1 && version != documentVersion {
		return errDocument
	}
	d.createdMs = int64(r.U64())
	for n := r.Count(2); n > 0; n-- {
		b := r.U8()
		k := IdentityKind(b &^ sharedBit)
		if k >= identityKinds {
			return errDocument
		}
		d.idents = append(d.idents, ident{k, r.Block(), b&sharedBit != 0})
	}
	d.firstName, d.lastName = r.Block(), r.Block()
	d.geo, d.attributes = r.Block(), r.Block()
	for n := r.Count(11); n > 0; n-- {
		c := consentState{channel: r.U8(), status: r.U8(), sinceMs: int64(r.U64()), source: r.Block()}
		if version > 1 {
			c.subscribedMs = int64(r.U64())
		}
		d.consents = append(d.consents, c)
	}
	for n := r.Count(12); n > 0; n-- {
		d.merged = append(d.merged, mergedProfile{r.U32(), int64(r.U64())})
	}
	for n := r.Count(15); n > 0; n-- {
		c := conflict{kind: IdentityKind(r.U8()), reason: conflictReason(r.U8()), other: r.U32(), atMs: int64(r.U64()), value: r.Block()}
		if c.kind >= identityKinds {
			return errDocument
		}
		d.conflicts = append(d.conflicts, c)
	}
	if version > 1 {
		d.contactExtra.decode(&r)
	}
	if r.Bad || len(r.B) != 0 {
		return errDocument
	}
	return nil
}
