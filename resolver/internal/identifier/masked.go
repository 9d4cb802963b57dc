package identifier

import "encoding/base64"

// A masked value stands in a redacted record for an identifier of a person who was
// erased. It carries the hashes under the account's key that replaying the record
// needs, and nothing else: the same identifier has the same masked value, so that a
// replay comes to the same profiles. It begins with a NUL, which no identifier that
// is sent has.
//
// An e-mail's carries also the names that it reserves among all accounts
// (see NamesOf in package emaildir). Those are hashes under a key that is no
// secret; here they are mixed with a hash that is.

// MaskByte begins every masked value.
const MaskByte = 0

// The letters that follow, one for each kind of identifier, one for what may be of two
// kinds and three for what is no identifier.
const (
	MaskKinds          = "expa" // by Kind
	MaskPrevious       = 'w'    // the previous id of an alias
	MaskDevice         = 'd'    // the name of a device, or an address
	MaskIdempotencyKey = 'k'    // an idempotency key
	MaskMember         = 'm'    // the key of a member of an object
)

// The hashes of a masked e-mail, in order; the last two are there only where the
// folded form is another than the normal one.
const (
	MailIdentity = iota
	MailReservation
	MailCaseFold
	MailFoldedReservation
	MailFoldedIdentity
	MailReservationOfFolded
	mailHashes
)

var maskCoding = base64.RawURLEncoding

const hashSize = len(Hash{})

// Masked returns the masked value of a letter that carries these hashes.
func Masked(letter byte, hashes ...Hash) []byte {
	out := []byte{MaskByte, letter}
	var b []byte
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return maskCoding.AppendEncode(out, b)
}

// Unmask reads the hashes of a masked value; not ok is one that is none of that
// letter with that many hashes.
func Unmask(letter byte, text []byte, n int) (hashes [mailHashes]Hash, ok bool) {
	if len(text) != 2+maskCoding.EncodedLen(n*hashSize) || text[0] != MaskByte || text[1] != letter || n > mailHashes {
		return hashes, false
	}
	var b [mailHashes * hashSize]byte
	if _, err := maskCoding.Decode(b[:], text[2:]); err != nil {
		return hashes, false
	}
	for i := range n {
		hashes[i] = Hash(b[i*hashSize:])
	}
	return hashes, true
}

// IsMasked reports whether a text is a masked value, whatever it stands for.
func IsMasked[T string | []byte](text T) bool { return len(text) > 0 && text[0] == MaskByte }

// unmaskIdentifier is the hash of a masked identifier.
func unmaskIdentifier(kind Kind, text []byte) (h Hash, ok bool) {
	if !IsMasked(text) || kind >= Kinds {
		return h, false
	}
	if kind == Email {
		m, ok := UnmaskEmail(text)
		return m[MailIdentity], ok
	}
	m, ok := Unmask(MaskKinds[kind], text, 1)
	if !ok && kind == ExternalID {
		m, ok = Unmask(MaskKinds[kind], text, 2)
	}
	return m[0], ok
}

// UnmaskEmail reads a masked e-mail. The hashes that are not there are those of the
// normal form.
func UnmaskEmail(text []byte) (m [mailHashes]Hash, ok bool) {
	if !IsMasked(text) {
		return m, false
	}
	if m, ok = Unmask(MaskKinds[Email], text, mailHashes); ok {
		return m, true
	}
	m, ok = Unmask(MaskKinds[Email], text, MailFoldedIdentity)
	m[MailFoldedIdentity], m[MailReservationOfFolded] = m[MailIdentity], m[MailReservation]
	return m, ok
}
