// Package identifier hashes the identifiers of profiles, and writes and reads the
// masked values that stand for identifiers of erased profiles. It keeps no state.
package identifier

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/dchest/siphash"

	"github.com/musterhq/muster/internal/identity"
)

// Kind is a kind of identifier. Lower kinds rank higher: resolution
// asks e-mail, then external id, then phone, then anonymous id.
type Kind uint8

// The kinds of identifiers, in order of rank. Numbers are on disk.
const (
	Email Kind = iota
	ExternalID
	Phone
	// Anonymous is an id that an SDK made up for a device. It comes by the tracking API
	// alone, identifies no person, and is shown on the person's page only.
	Anonymous
	Kinds // the number of kinds
)

// Identifying is the number of kinds that identify a person: all but Anonymous.
const Identifying = Anonymous

var kindFields = [Kinds]string{"email", "external_id", "phone", "anonymous_id"}

// String is the field's name in a user object.
func (k Kind) String() string { return kindFields[k] }

// Hash is a keyed hash of an identifier or idempotency key. 128 bits under
// a secret key make collisions, also provoked ones, out of the question.
type Hash [16]byte

// ParseHash reads a hash in hexadecimal.
func ParseHash(text string) (h Hash, err error) {
	if len(text) != hex.EncodedLen(len(h)) { // Decode panics on what is longer
		return h, fmt.Errorf("%q does not have %d hexadecimal digits", text, hex.EncodedLen(len(h)))
	}
	_, err = hex.Decode(h[:], []byte(text))
	return h, err
}

// Hasher hashes strings of one account under the account's own key.
type Hasher struct{ k0, k1 uint64 }

// NewHasher returns the hasher of the account with this key.
func NewHasher(key [16]byte) Hasher {
	return Hasher{binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])}
}

// Sum hashes bytes as they are. What hashes several sorts of values under one key
// begins each sort with a byte of its own.
func (h Hasher) Sum(b []byte) (out Hash) {
	lo, hi := siphash.Hash128(h.k0, h.k1, b)
	binary.LittleEndian.PutUint64(out[:], lo)
	binary.LittleEndian.PutUint64(out[8:], hi)
	return out
}

// HashIdentifier hashes an identifier's normal form; buf is scratch. ok is false
// when nothing is left of the value (a phone without digits).
func (h Hasher) HashIdentifier(kind Kind, raw []byte, buf *[]byte) (sum Hash, ok bool) {
	b := append((*buf)[:0], byte(kind))
	if sum, ok = unmaskIdentifier(kind, raw); ok {
		*buf = append(b, raw...)
		return sum, true
	}
	switch kind {
	case Email:
		b = identity.AppendNormalEmail(b, raw)
	case Phone:
		b = identity.AppendNormalPhone(b, raw)
	default:
		b = append(b, raw...)
	}
	*buf = b
	if len(b) == 1 || IsBlank(b[1:]) {
		return sum, false
	}
	return h.Sum(b), true
}

// IsBlank reports whether nothing of a value can be seen: white space and
// characters of no width only. b must not be empty.
func IsBlank(b []byte) bool {
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

// HashIdempotencyKey hashes an idempotency key, apart from all identifiers.
func (h Hasher) HashIdempotencyKey(key []byte, buf *[]byte) Hash {
	if m, ok := Unmask(MaskIdempotencyKey, key, 1); ok {
		return m[0]
	}
	b := append((*buf)[:0], 0xff)
	b = append(b, key...)
	*buf = b
	return h.Sum(b)
}

// HashMessageID hashes the messageId of an SDK, apart from idempotency keys of the same
// text.
func (h Hasher) HashMessageID(id []byte, buf *[]byte) Hash {
	if m, ok := Unmask(MaskIdempotencyKey, id, 1); ok {
		return m[0]
	}
	b := append((*buf)[:0], 0xf8)
	b = append(b, id...)
	*buf = b
	return h.Sum(b)
}

// HashAsAnonymous hashes an external id as an anonymous id of the same text; buf is scratch.
// ok is false for one that was masked without that hash.
func (h Hasher) HashAsAnonymous(externalID []byte, buf *[]byte) (sum Hash, ok bool) {
	if IsMasked(externalID) {
		m, ok := Unmask(MaskKinds[ExternalID], externalID, 2)
		return m[1], ok
	}
	return h.HashIdentifier(Anonymous, externalID, buf)
}

// Previous are the hashes of the previous id of an alias: as an anonymous id, and as an
// external id.
type Previous struct{ Anonymous, External Hash }

// HashPrevious hashes a previous id; buf is scratch. ok is false when nothing is left of
// the value.
func (h Hasher) HashPrevious(raw []byte, buf *[]byte) (p Previous, ok bool) {
	if m, ok := Unmask(MaskPrevious, raw, 2); ok {
		return Previous{m[0], m[1]}, true
	}
	if p.Anonymous, ok = h.HashIdentifier(Anonymous, raw, buf); !ok {
		return p, false
	}
	p.External, ok = h.HashIdentifier(ExternalID, raw, buf)
	return p, ok
}
