package profile

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/internal/wire"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Calls is what a document holds because of the calls of SDKs. Profiles without such calls
// have none of it, and their documents are those of before.
type Calls struct {
	// Times says when what is known of the person was said.
	Times TraitTimes
	// GivenUp are hashes of anonymous ids that made room for newer ones, the oldest first.
	// They still lead to the profile, and an erasure finds by them what was the person's.
	GivenUp []identifier.Hash
}

func (c *Calls) empty() bool {
	return c.Times.floor == 0 && len(c.Times.list) == 0 && len(c.GivenUp) == 0
}

func (c *Calls) append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(c.Times.floor))
	dst = binary.AppendUvarint(dst, uint64(len(c.Times.list)))
	for _, t := range c.Times.list {
		dst = le.AppendUint64(le.AppendUint64(dst, t.key), uint64(t.ms))
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.GivenUp)))
	for _, h := range c.GivenUp {
		dst = append(dst, h[:]...)
	}
	return dst
}

func (c *Calls) decode(r *wire.Reader) {
	c.Times.floor = int64(r.U64())
	for n := r.Count(16); n > 0; n-- {
		c.Times.list = append(c.Times.list, traitTime{r.U64(), int64(r.U64())})
	}
	sorted := slices.IsSortedFunc(c.Times.list, func(x, y traitTime) int { return cmp.Compare(x.key, y.key) })
	r.Bad = r.Bad || !sorted || len(c.Times.list) > maxTraitTimes
	for n := r.Count(len(identifier.Hash{})); n > 0; n-- {
		var h identifier.Hash
		binary.LittleEndian.PutUint64(h[:], r.U64())
		binary.LittleEndian.PutUint64(h[8:], r.U64())
		c.GivenUp = append(c.GivenUp, h)
	}
}

// maxTraitTimes is how many traits have a time of their own. Of the others it is known that
// none was said later than floor.
const maxTraitTimes = 256

// TraitTimes says when the traits of a person were said, by the times of the calls that said
// them. A trait is a name, a member of geo or of the attributes, or the identifier of a kind
// that is shown; one that was taken away has a time as well. It starts empty.
type TraitTimes struct {
	list []traitTime // by key
	// floor is the time of the newest trait that has no place in list, 0 for none: Unix
	// milliseconds.
	floor int64
}

type traitTime struct {
	key uint64
	ms  int64
}

// TraitKind is what a trait is a part of. Numbers are on disk, within the keys.
type TraitKind byte

// The kinds of traits.
const (
	TraitFirstName TraitKind = iota + 1
	TraitLastName
	TraitGeo
	TraitAttribute
	TraitIdentifier // its name is the kind of identifier
)

// TraitKey is the key of a trait: FNV-1a of its kind and name. Two traits with one key would
// share a time, which is of no more weight than two calls in the wrong order.
func TraitKey(kind TraitKind, name []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := (uint64(offset) ^ uint64(kind)) * prime
	for _, c := range name {
		h = (h ^ uint64(c)) * prime
	}
	return h
}

// IdentifierTrait is the key of the identifier that is shown of a kind.
func IdentifierTrait(k identifier.Kind) uint64 {
	return TraitKey(TraitIdentifier, []byte{byte(k)})
}

// Any reports whether any trait has a time.
func (t *TraitTimes) Any() bool { return len(t.list) > 0 || t.floor > 0 }

// Of is when a trait was said. Of one that is not listed it is the latest that it may be, and
// 0 where no call said anything.
func (t *TraitTimes) Of(key uint64) (ms int64, listed bool) {
	if i, ok := t.find(key); ok {
		return t.list[i].ms, true
	}
	return t.floor, false
}

func (t *TraitTimes) find(key uint64) (int, bool) {
	return slices.BinarySearchFunc(t.list, key, func(x traitTime, key uint64) int { return cmp.Compare(x.key, key) })
}

// Say notes that a trait was said at a time. stands reports whether it holds: nothing was
// said of the trait later. moved reports whether the times have changed. has says that the
// person has the trait.
func (t *TraitTimes) Say(key uint64, ms int64, has bool) (stands, moved bool) {
	i, listed := t.find(key)
	switch {
	case listed && ms < t.list[i].ms:
		return false, false
	case listed:
		moved = ms != t.list[i].ms
		t.list[i].ms = ms
		return true, moved
	case ms < t.floor:
		return !has, false // its time is not known: the past fills gaps
	}
	t.list = slices.Insert(t.list, i, traitTime{key, ms})
	if len(t.list) > 2*maxTraitTimes {
		t.trim()
	}
	return true, true
}

// Trim bounds the list. The caller that changes it trims it before the document is
// stored.
func (t *TraitTimes) Trim() {
	if len(t.list) > maxTraitTimes {
		t.trim()
	}
}

// trim drops the oldest times, and of equal ones those with the smallest keys.
func (t *TraitTimes) trim() {
	slices.SortFunc(t.list, func(x, y traitTime) int { return cmp.Or(cmp.Compare(x.ms, y.ms), cmp.Compare(x.key, y.key)) })
	n := len(t.list) - maxTraitTimes
	t.floor = max(t.floor, t.list[n-1].ms)
	t.list = slices.Delete(t.list, 0, n)
	slices.SortFunc(t.list, func(x, y traitTime) int { return cmp.Compare(x.key, y.key) })
}

// Later reports whether, of two profiles that become one, what the other has or has not of a
// trait was said later than what this one has or has not. has and other say which of them
// have the trait.
func (t *TraitTimes) Later(o *TraitTimes, key uint64, has, other bool) bool {
	mine, listed := t.Of(key)
	theirs, otherListed := o.Of(key)
	switch {
	case has && !listed && t.floor == 0, !otherListed && (has || !other):
		return false // the time is not known: what is there stays
	case !has && !listed:
		return other
	case !otherListed:
		return false
	}
	return theirs > mine
}

// Merge takes over the times of a profile that becomes part of this one.
func (t *TraitTimes) Merge(o *TraitTimes) {
	t.floor = max(t.floor, o.floor)
	for _, x := range o.list {
		if i, ok := t.find(x.key); ok {
			t.list[i].ms = max(t.list[i].ms, x.ms)
		} else {
			t.list = slices.Insert(t.list, i, x)
		}
	}
	t.Trim()
}

// HasClaimed reports whether the document has an identifier that is a claim.
func (d *Document) HasClaimed() bool {
	return slices.ContainsFunc(d.Identifiers, func(id Identifier) bool { return id.Claimed })
}

// SaidOtherwise notes that others than SDKs have said something of a person, where calls of
// SDKs have times: earlier calls that arrive later do not change it. It reports whether that
// changed anything.
func (d *Document) SaidOtherwise(firstName, lastName bool, geo, attributes []byte, ms int64) (changed bool) {
	if !d.Times.Any() {
		return false
	}
	say := func(key uint64) {
		_, moved := d.Times.Say(key, ms, true)
		changed = changed || moved
	}
	if firstName {
		say(TraitKey(TraitFirstName, nil))
	}
	if lastName {
		say(TraitKey(TraitLastName, nil))
	}
	for _, x := range [...]struct {
		trait  TraitKind
		object []byte
	}{{TraitGeo, geo}, {TraitAttribute, attributes}} {
		_ = EachMember(x.object, func(m Member) { say(TraitKey(x.trait, m.Key)) }) // it was checked
	}
	d.Times.Trim()
	return changed
}
