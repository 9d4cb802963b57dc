package resolver

import (
	"encoding/base64"
	"strconv"

	"github.com/musterhq/muster/internal/identity"
)

// A masked value stands in a redacted record for an identifier of a person who was
// erased. It carries the hashes under the account's key that replaying the record
// needs, and nothing else: the same identifier has the same masked value, so that a
// replay comes to the same profiles. It begins with a NUL, which no identifier that
// is sent has.
//
// An e-mail's carries also the names that it reserves among all accounts
// ([Machine.reservationsOf]). Those are hashes under a key that is no secret; here
// they are mixed with a hash that is.

const maskByte = 0

// The letters that follow, one for each kind of identifier and three for what is no
// identifier.
const (
	maskKinds   = "exp" // by IdentityKind
	maskDevice  = 'd'   // the name of a device, or an address
	maskKey     = 'k'   // an idempotency key
	maskMembers = 'm'   // the key of a member of an object
)

// The hashes of a masked e-mail, in order; the last two are there only where the
// folded form is another than the normal one.
const (
	mailIdentity = iota
	mailReservation
	mailAlike
	mailFoldedReservation
	mailFoldedIdentity
	mailReservationOfFolded
	mailHashes
)

var maskCoding = base64.RawURLEncoding

const hashSize = len(hash128{})

// maskOf writes a masked value.
func maskOf(letter byte, hashes ...hash128) []byte {
	out := []byte{maskByte, letter}
	var b []byte
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return maskCoding.AppendEncode(out, b)
}

// unmask reads the hashes of a masked value; not ok is one that is none of that
// letter with that many hashes.
func unmask(letter byte, text []byte, n int) (hashes [mailHashes]hash128, ok bool) {
	if len(text) != 2+maskCoding.EncodedLen(n*hashSize) || text[0] != maskByte || text[1] != letter || n > mailHashes {
		return hashes, false
	}
	var b [mailHashes * hashSize]byte
	if _, err := maskCoding.Decode(b[:], text[2:]); err != nil {
		return hashes, false
	}
	for i := range n {
		hashes[i] = hash128(b[i*hashSize:])
	}
	return hashes, true
}

// isMasked reports whether a text is a masked value, whatever it stands for.
func isMasked[T string | []byte](text T) bool { return len(text) > 0 && text[0] == maskByte }

// unmaskIdentity is the hash of a masked identifier.
func unmaskIdentity(kind IdentityKind, text []byte) (h hash128, ok bool) {
	if !isMasked(text) || kind >= identityKinds {
		return h, false
	}
	if kind == IdentityEmail {
		m, ok := unmaskEmail(text)
		return m[mailIdentity], ok
	}
	m, ok := unmask(maskKinds[kind], text, 1)
	return m[0], ok
}

// unmaskEmail reads a masked e-mail. The hashes that are not there are those of the
// normal form.
func unmaskEmail(text []byte) (m [mailHashes]hash128, ok bool) {
	if !isMasked(text) {
		return m, false
	}
	if m, ok = unmask(maskKinds[IdentityEmail], text, mailHashes); ok {
		return m, true
	}
	m, ok = unmask(maskKinds[IdentityEmail], text, mailFoldedIdentity)
	m[mailFoldedIdentity], m[mailReservationOfFolded] = m[mailIdentity], m[mailReservation]
	return m, ok
}

// blind mixes a hash under a key that is no secret with one that is, and back.
func (a *account) blind(identity hash128, what byte, h hash128) hash128 {
	with := a.hasher.sum(append([]byte{0xfb, what}, identity[:]...))
	for i := range h {
		h[i] ^= with[i]
	}
	return h
}

// mask masks an identifier. What is masked, or has nothing to be hashed, is returned
// as it is.
func (m *Machine) mask(a *account, kind IdentityKind, raw []byte) []byte {
	if isMasked(raw) {
		return raw
	}
	h, ok := a.hasher.identityHash(kind, raw, &m.normal)
	if !ok {
		return raw
	}
	if kind != IdentityEmail {
		return maskOf(maskKinds[kind], h)
	}
	alike, other := a.foldedHash(m, raw)
	hashes := []hash128{h, a.blind(h, mailReservation, m.reservationOf(a, string(raw))), alike,
		a.blind(h, mailFoldedReservation, m.foldedReservationOf(a, string(raw)))}
	if other {
		folded := identity.AppendFoldedEmail(nil, raw)
		fh, _ := a.hasher.identityHash(kind, folded, &m.normal)
		hashes = append(hashes, fh, a.blind(h, mailReservationOfFolded, m.reservationOf(a, string(folded))))
	}
	return maskOf(maskKinds[IdentityEmail], hashes...)
}

// maskText masks what is compared, and no identifier: the name of a device, an
// address of one.
func (a *account) maskText(letter byte, text string) string {
	if text == "" || isMasked(text) {
		return text
	}
	return string(maskOf(letter, a.hasher.sum(append([]byte{0xfa, letter}, text...))))
}

// isPlaceholder reports whether an identifier of an event is a placeholder; of a masked
// one its hash tells.
func (m *Machine) isPlaceholder(a *account, kind IdentityKind, raw []byte, h hash128) bool {
	if !isMasked(raw) {
		return a.placeholders.has(raw)
	}
	for _, v := range a.Settings.Placeholders {
		if have, ok := a.hasher.identityHash(kind, []byte(v), &m.normal); ok && have == h {
			return true
		}
	}
	return false
}

// Objects are masked so that they can be merged as before and have the length that
// they had, which decides whether people are merged: of a key its hash and length
// stay, of a value its length and whether it is an object, or null.

// maskedKey begins the key of a masked member. No object that is sent has a NUL in it.
const maskedKey = `"\u0000` + string(maskMembers)

// maskObject masks a canonical object.
func (a *account) maskObject(obj []byte) []byte {
	if len(obj) == 0 {
		return obj
	}
	out := []byte{'{'}
	err := eachMember(obj, func(x member) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if len(x.key) > len(maskedKey) && string(x.key[:len(maskedKey)]) == maskedKey {
			out = append(out, x.key...)
		} else {
			begin := len(out)
			h := a.hasher.sum(append([]byte{0xfa, maskMembers}, x.key...))
			out = maskCoding.AppendEncode(append(out, maskedKey...), h[:])
			out = append(strconv.AppendInt(append(out, '.'), int64(len(x.key)), 10), '.')
			for len(out)-begin+1 < len(x.key) {
				out = append(out, 'x')
			}
			out = append(out, '"')
		}
		out = append(out, ':')
		out = a.maskValue(out, x.value)
	})
	if err != nil {
		return nil
	}
	return append(out, '}')
}

func (a *account) maskValue(out, v []byte) []byte {
	switch {
	case len(v) > 0 && v[0] == '{':
		return append(out, a.maskObject(v)...)
	case string(v) == "null":
		return append(out, v...)
	case len(v) == 1:
		return append(out, '0')
	}
	out = append(out, '"')
	for range len(v) - 2 {
		out = append(out, 'x')
	}
	return append(out, '"')
}

// tooLarge reports whether an object is, by the length that it had before it was masked.
func tooLarge(obj []byte) bool { return len(obj) > maxObjectBytes && unmaskedLen(obj) > maxObjectBytes }

// unmaskedLen is the length of an object before it was masked.
func unmaskedLen(obj []byte) int {
	n := len(obj)
	_ = eachMember(obj, func(x member) {
		if x.value[0] == '{' {
			n -= len(x.value) - unmaskedLen(x.value)
		}
		const hashEnd = len(maskedKey) + 22 // of a hash in letters
		if len(x.key) <= hashEnd || string(x.key[:len(maskedKey)]) != maskedKey || x.key[hashEnd] != '.' {
			return
		}
		was := 0
		for _, c := range x.key[hashEnd+1:] {
			if c < '0' || c > '9' {
				break
			}
			was = was*10 + int(c-'0')
		}
		n -= len(x.key) - was
	})
	return n
}
