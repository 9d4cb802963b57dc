package profile

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/musterhq/muster/internal/wire"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// documentVersion is the version of the layout that is written where a document has
// nothing of [Calls]; else it is documentCalls. Version 1, without what [Contact.append]
// writes, is read too.
const (
	documentVersion = 2
	documentCalls   = 3
)

var errDocument = errors.New("profile document is damaged")

// Identifier is one identifier of a profile, as given.
type Identifier struct {
	Kind  identifier.Kind
	Value []byte
	// Shared says that the value identifies another profile, which held it first:
	// this one shows it, and no look-up by it leads here. See resolution/shared_values.go.
	Shared bool
	// Claimed says that a key which everybody can read attached the value, and that no
	// server has confirmed it: such a value alone merges no profiles. See
	// resolution/claims.go.
	Claimed bool
	// Previous says of an anonymous id that an alias brought it before anything else did:
	// it may be an external id as well.
	Previous bool
}

// The bits that stand beside the kind of an identifier in an encoded document.
const (
	sharedBit   = 1 << 7
	claimedBit  = 1 << 6
	previousBit = 1 << 5
	kindBits    = previousBit - 1
)

// kindByte is the identifier's kind with its bits.
func (id *Identifier) kindByte() byte {
	b := byte(id.Kind)
	for _, x := range [...]struct {
		on  bool
		bit byte
	}{{id.Shared, sharedBit}, {id.Claimed, claimedBit}, {id.Previous, previousBit}} {
		if x.on {
			b |= x.bit
		}
	}
	return b
}

// identifierOf reads what kindByte wrote.
func identifierOf(b byte, value []byte) Identifier {
	return Identifier{identifier.Kind(b & kindBits), value, b&sharedBit != 0, b&claimedBit != 0, b&previousBit != 0}
}

// Consent is the consent to one channel.
type Consent struct {
	Channel byte  // its place in Channels
	Status  byte  // its place in ConsentStatuses
	SinceMs int64 // of the status
	Source  []byte
	// SubscribedMs is when the channel was subscribed to last, 0 if never.
	SubscribedMs int64
}

// MergedProfile is a profile that was merged into this one.
type MergedProfile struct {
	Ordinal uint32
	AtMs    int64 // log time
	// Anonymous says that the profile had no identifier but anonymous ids.
	Anonymous bool
}

// anonymousBit marks an anonymous profile in an encoded document, beside its ordinal,
// which is below it.
const anonymousBit = MaxProfiles

// Conflict is an identifier that was seen with this profile and stayed
// elsewhere, was not attached, or is in doubt.
type Conflict struct {
	Kind   identifier.Kind
	Reason ConflictReason
	Other  uint32 // the other profile, NoOrdinal if none
	AtMs   int64
	Value  []byte
}

// ConflictReason is why an identifier stayed where it was; 0 is none.
type ConflictReason byte

// Why an identifier stayed where it was. Numbers are on disk.
const (
	// ConflictHigherRank: both profiles hold a value of a higher-ranked kind.
	ConflictHigherRank ConflictReason = iota + 1
	// ConflictTooMany: the profile would hold too many identifiers.
	ConflictTooMany
	// ConflictTooLarge: the merged attributes would be too large.
	ConflictTooLarge
	// ConflictHeld: a contact was made with it, and another profile held it first.
	ConflictHeld
	// ConflictSecond: a lower-ranked identifier led to the profile, which has a value
	// of this kind already. The new one is attached all the same.
	ConflictSecond
	// ConflictPublic: a key that everybody can read, or what it claimed, brought two identified profiles
	// together, or a second value to one, which is not attached.
	ConflictPublic
	// ConflictClaimed: a server named the person by it, but a browser's key had claimed it for
	// another profile. Until it is the person's, no other identified profile is joined.
	ConflictClaimed
	// ConflictInDoubt: one of two identified profiles has a ConflictClaimed.
	ConflictInDoubt
)

// ConflictReasons are the reasons as clients read them.
var ConflictReasons = map[ConflictReason]string{
	ConflictHigherRank: "both profiles hold a different identifier of a higher rank",
	ConflictTooMany:    "the profile would hold too many identifiers",
	ConflictTooLarge:   "the merged attributes would be too large",
	ConflictHeld:       "another profile held the identifier first, and is identified by it",
	ConflictSecond:     "a lower-ranked identifier attached a second value to the profile",
	ConflictPublic:     "a browser key may neither merge two identified profiles nor attach a second value to one",
	ConflictClaimed:    "a browser key claimed the identifier for another profile before a server gave it to this one",
	ConflictInDoubt:    "one of two identified profiles was given an identifier that a browser key had claimed for another",
}

// MaxConflicts is how many conflicts a profile keeps, the newest.
const MaxConflicts = 20

// Document is the variable part of a profile. Decoded, its slices point into
// the encoded block; blocks are never changed in place.
type Document struct {
	CreatedMs   int64
	Identifiers []Identifier // the newest of a kind stands last
	FirstName   []byte
	LastName    []byte
	Geo         []byte    // canonical JSON object, empty for none
	Attributes  []byte    // canonical JSON object, empty for none
	Consents    []Consent // one a channel
	Merged      []MergedProfile
	Conflicts   []Conflict // at most MaxConflicts, the newest
	Contact
	Calls

	// Evidence is that of the consents that are changed from now on, nil for none. Changes
	// are those since the document was read. Neither is part of the encoded document: the
	// log of consents takes them over when the document is stored.
	Evidence *Evidence
	Changes  []ConsentChange
}

// Reset empties the document and keeps its memory.
func (d *Document) Reset() {
	*d = Document{Identifiers: d.Identifiers[:0], Consents: d.Consents[:0], Merged: d.Merged[:0], Conflicts: d.Conflicts[:0],
		Contact: Contact{Lists: d.Lists[:0], Suppressions: d.Suppressions[:0], Devices: d.Devices[:0], SoftBounces: d.SoftBounces[:0]},
		Calls:   Calls{GivenUp: d.GivenUp[:0], Times: TraitTimes{list: d.Times.list[:0]}}}
}

// FirstSeen is when the profile was created, or the time of its first event if
// that is earlier.
func (d *Document) FirstSeen() int64 {
	if d.earlier.known {
		return d.earlier.ms
	}
	return d.CreatedMs
}

// Seen notes the time of an event; it returns whether none was earlier.
func (d *Document) Seen(ms int64) bool {
	if ms >= d.FirstSeen() {
		return false
	}
	d.earlier = earlier{ms, true}
	return true
}

// MergeTimes takes over the creation and the first event of a profile that became
// part of this one, where they are earlier.
func (d *Document) MergeTimes(o *Document) {
	first := min(d.FirstSeen(), o.FirstSeen())
	d.CreatedMs, d.earlier = min(d.CreatedMs, o.CreatedMs), earlier{}
	d.Seen(first)
}

// Newest is the identifier of the kind that is shown, nil if there is none.
func (d *Document) Newest(kind identifier.Kind) []byte {
	for i := len(d.Identifiers) - 1; i >= 0; i-- {
		if d.Identifiers[i].Kind == kind {
			return d.Identifiers[i].Value
		}
	}
	return nil
}

// HasShared reports whether the document shows an identifier of another profile.
func (d *Document) HasShared() bool {
	return slices.ContainsFunc(d.Identifiers, func(id Identifier) bool { return id.Shared })
}

// Has reports whether the document has an identifier of the kind.
func (d *Document) Has(kind identifier.Kind) bool { return d.Newest(kind) != nil }

// Known is how many identifiers the document has that identify the person: all but
// anonymous ids.
func (d *Document) Known() int {
	n := 0
	for i := range d.Identifiers {
		if d.Identifiers[i].Kind < identifier.Identifying {
			n++
		}
	}
	return n
}

// Full reports whether the document has as many identifiers as it may have of a kind: known
// ones that identify the person, and anonymous ids.
func (d *Document) Full(kind identifier.Kind, known, anonymous int) bool {
	if kind < identifier.Identifying {
		return d.Known() >= known
	}
	return len(d.Identifiers)-d.Known() >= anonymous
}

// IsAnonymous reports whether the document has anonymous ids and no other identifier.
func (d *Document) IsAnonymous() bool { return len(d.Identifiers) > 0 && d.Known() == 0 }

// MergedKnown is how many of the merged profiles were identified.
func (d *Document) MergedKnown() int {
	n := 0
	for i := range d.Merged {
		if !d.Merged[i].Anonymous {
			n++
		}
	}
	return n
}

// Append appends the encoded document.
func (d *Document) Append(dst []byte) []byte {
	version := byte(documentVersion)
	if !d.Calls.empty() {
		version = documentCalls
	}
	dst = append(dst, version)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(d.CreatedMs))
	dst = binary.AppendUvarint(dst, uint64(len(d.Identifiers)))
	for i := range d.Identifiers {
		id := &d.Identifiers[i]
		dst = wire.AppendBlock(append(dst, id.kindByte()), id.Value)
	}
	for _, b := range [...][]byte{d.FirstName, d.LastName, d.Geo, d.Attributes} {
		dst = wire.AppendBlock(dst, b)
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.Consents)))
	for _, c := range d.Consents {
		dst = append(dst, c.Channel, c.Status)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.SinceMs))
		dst = wire.AppendBlock(dst, c.Source)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.SubscribedMs))
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.Merged)))
	for _, m := range d.Merged {
		ordinal := m.Ordinal
		if m.Anonymous {
			ordinal |= anonymousBit
		}
		dst = binary.LittleEndian.AppendUint32(dst, ordinal)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(m.AtMs))
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.Conflicts)))
	for _, c := range d.Conflicts {
		dst = append(dst, byte(c.Kind), byte(c.Reason))
		dst = binary.LittleEndian.AppendUint32(dst, c.Other)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.AtMs))
		dst = wire.AppendBlock(dst, c.Value)
	}
	dst = d.Contact.append(dst)
	if version == documentCalls {
		dst = d.Calls.append(dst)
	}
	return dst
}

// Decode reads an encoded document, whose memory d uses from then on. It never panics;
// a damaged document is an error.
func (d *Document) Decode(b []byte) error {
	d.Reset()
	r := wire.Reader{B: b}
	version := r.U8()
	if version < 1 || version > documentCalls {
		return errDocument
	}
	d.CreatedMs = int64(r.U64())
	for n := r.Count(2); n > 0; n-- {
		kind := r.U8()
		id := identifierOf(kind, r.Block())
		if id.Kind >= identifier.Kinds {
			return errDocument
		}
		d.Identifiers = append(d.Identifiers, id)
	}
	d.FirstName, d.LastName = r.Block(), r.Block()
	d.Geo, d.Attributes = r.Block(), r.Block()
	for n := r.Count(11); n > 0; n-- {
		c := Consent{Channel: r.U8(), Status: r.U8(), SinceMs: int64(r.U64()), Source: r.Block()}
		if version > 1 {
			c.SubscribedMs = int64(r.U64())
		}
		d.Consents = append(d.Consents, c)
	}
	for n := r.Count(12); n > 0; n-- {
		ordinal := r.U32()
		d.Merged = append(d.Merged, MergedProfile{ordinal &^ anonymousBit, int64(r.U64()), ordinal&anonymousBit != 0})
	}
	for n := r.Count(15); n > 0; n-- {
		c := Conflict{Kind: identifier.Kind(r.U8()), Reason: ConflictReason(r.U8()), Other: r.U32(), AtMs: int64(r.U64()), Value: r.Block()}
		if c.Kind >= identifier.Kinds {
			return errDocument
		}
		d.Conflicts = append(d.Conflicts, c)
	}
	if version > 1 {
		d.Contact.decode(&r)
	}
	if version == documentCalls {
		d.Calls.decode(&r)
	}
	if r.Bad || len(r.B) != 0 {
		return errDocument
	}
	return nil
}
