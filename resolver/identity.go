package resolver

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"

	"github.com/dchest/siphash"

	"github.com/musterhq/muster/internal/hashtable"
	"github.com/musterhq/muster/internal/identity"
)

// IdentityKind is a kind of identifier. Lower kinds rank higher: resolution
// asks e-mail, then external id, then phone.
type IdentityKind uint8

// The kinds of identifiers, in order of rank. Numbers are on disk.
const (
	IdentityEmail IdentityKind = iota
	IdentityExternalID
	IdentityPhone
	identityKinds
)

var identityFields = [identityKinds]string{"email", "external_id", "phone"}

// String is the field's name in a user object.
func (k IdentityKind) String() string { return identityFields[k] }

// hash128 is a keyed hash of an identifier or idempotency key. 128 bits under
// a secret key make collisions, also provoked ones, out of the question.
type hash128 [16]byte

// hasher hashes strings of one account under the account's own key.
type hasher struct{ k0, k1 uint64 }

func newHasher(key [16]byte) hasher {
	return hasher{binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])}
}

func (h hasher) sum(b []byte) (out hash128) {
	lo, hi := siphash.Hash128(h.k0, h.k1, b)
	binary.LittleEndian.PutUint64(out[:], lo)
	binary.LittleEndian.PutUint64(out[8:], hi)
	return out
}

// identityHash hashes an identifier's normal form; buf is scratch. ok is false
// when nothing is left of the value (a phone without digits).
func (h hasher) identityHash(kind IdentityKind, raw []byte, buf *[]byte) (sum hash128, ok bool) {
	b := append((*buf)[:0], byte(kind))
	if sum, ok = unmaskIdentity(kind, raw); ok {
		*buf = append(b, raw...)
		return sum, true
	}
	switch kind {
	case IdentityEmail:
		b = identity.AppendNormalEmail(b, raw)
	case IdentityPhone:
		b = identity.AppendNormalPhone(b, raw)
	default:
		b = append(b, raw...)
	}
	*buf = b
	if len(b) == 1 || isBlank(b[1:]) {
		return sum, false
	}
	return h.sum(b), true
}

// isBlank reports whether nothing of a value can be seen: white space and
// characters of no width only.
func isBlank(b []byte) bool {
	if b[0] > ' ' && b[0] < utf8.RuneSelf {
		return false
	}
	for _, r := range string(b) {
		if !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) {
			return false
		}
	}
	return true
}

// idempotencyHash hashes an idempotency key, apart from all identifiers.
func (h hasher) idempotencyHash(key []byte, buf *[]byte) hash128 {
	if m, ok := unmask(maskKey, key, 1); ok {
		return m[0]
	}
	b := append((*buf)[:0], 0xff)
	b = append(b, key...)
	*buf = b
	return h.sum(b)
}

// identityMap maps identifiers to ordinals. Changes are logged for the next
// checkpoint.
type identityMap struct {
	entries *hashtable.Table // of ordinals
	changed []identityChange
	version uint64 // moves with every change
}

const ordinalSize = 4

func newIdentityMap() identityMap { return identityMap{entries: hashtable.New(ordinalSize)} }

// identityChange is one entry of the log of changes; ordinal noOrdinal removes.
type identityChange struct {
	hash    hash128
	ordinal uint32
}

// size is the number of identifiers.
func (m *identityMap) size() int { return m.entries.Len() }

func (m *identityMap) get(h hash128) (uint32, bool) {
	o := m.owner(h)
	return o, o != noOrdinal
}

// owner is the profile that holds an identifier, noOrdinal if none does.
func (m *identityMap) owner(h hash128) uint32 {
	if v := m.entries.Get((*hashtable.Key)(&h)); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return noOrdinal
}

// each calls fn for all identifiers, in no order.
func (m *identityMap) each(fn func(h hash128, ordinal uint32)) {
	m.entries.All(func(k *hashtable.Key, v []byte) bool {
		fn(*k, binary.LittleEndian.Uint32(v))
		return true
	})
}

// loadOrderBits is by how many bits loadAll orders what it takes in.
const loadOrderBits = 12

// loadAll takes in entries of a checkpoint, all of them new, those that lie near
// each other in memory one after the other. room is for as many.
func (m *identityMap) loadAll(list, room []identityChange) {
	part := func(c *identityChange) int {
		return int(hashtable.Order((*hashtable.Key)(&c.hash)) >> (64 - loadOrderBits))
	}
	var ends [1<<loadOrderBits + 1]int
	for i := range list {
		ends[part(&list[i])+1]++
	}
	for i := range ends[1:] {
		ends[i+1] += ends[i]
	}
	for i := range list {
		at := part(&list[i])
		room[ends[at]] = list[i]
		ends[at]++
	}
	for i := range list {
		binary.LittleEndian.PutUint32(m.entries.Add((*hashtable.Key)(&room[i].hash)), room[i].ordinal)
	}
}

func (m *identityMap) set(h hash128, ordinal uint32) {
	binary.LittleEndian.PutUint32(m.entries.Put((*hashtable.Key)(&h)), ordinal)
	m.version++
	m.changed = append(m.changed, identityChange{h, ordinal})
}

func (m *identityMap) remove(h hash128) {
	m.entries.Delete((*hashtable.Key)(&h))
	m.version++
	m.changed = append(m.changed, identityChange{h, noOrdinal})
}
