package resolver

import (
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// blind mixes a hash under a key that is no secret with one that is, and back.
func (a *account) blind(identity identifier.Hash, what byte, h identifier.Hash) identifier.Hash {
	with := a.hasher.Sum(append([]byte{0xfb, what}, identity[:]...))
	for i := range h {
		h[i] ^= with[i]
	}
	return h
}

// mask masks an identifier. What is masked, or has nothing to be hashed, is returned
// as it is.
func (m *Machine) mask(a *account, kind IdentityKind, raw []byte) []byte {
	if identifier.IsMasked(raw) {
		return raw
	}
	h, ok := a.hasher.HashIdentifier(kind, raw, &m.normal)
	if !ok {
		return raw
	}
	switch kind {
	case IdentityEmail:
	case IdentityExternalID:
		as, _ := a.hasher.HashIdentifier(IdentityAnonymous, raw, &m.normal) // see calledBefore
		return identifier.Masked(identifier.MaskKinds[kind], h, as)
	default:
		return identifier.Masked(identifier.MaskKinds[kind], h)
	}
	alike, other := a.foldedHash(m, raw)
	hashes := []identifier.Hash{h, a.blind(h, identifier.MailReservation, identifier.Hash(m.reservationOf(a, string(raw)))), alike,
		a.blind(h, identifier.MailFoldedReservation, identifier.Hash(m.foldedReservationOf(a, string(raw))))}
	if other {
		folded := identity.AppendFoldedEmail(nil, raw)
		fh, _ := a.hasher.HashIdentifier(kind, folded, &m.normal)
		hashes = append(hashes, fh, a.blind(h, identifier.MailReservationOfFolded, identifier.Hash(m.reservationOf(a, string(folded)))))
	}
	return identifier.Masked(identifier.MaskKinds[IdentityEmail], hashes...)
}

// maskText masks what is compared, and no identifier: the name of a device, an
// address of one.
func (a *account) maskText(letter byte, text string) string {
	if text == "" || identifier.IsMasked(text) {
		return text
	}
	return string(identifier.Masked(letter, a.hasher.Sum(append([]byte{0xfa, letter}, text...))))
}

// isPlaceholder reports whether an identifier of an event is a placeholder; of a masked
// one its hash tells.
func (m *Machine) isPlaceholder(a *account, kind IdentityKind, raw []byte, h identifier.Hash) bool {
	if !identifier.IsMasked(raw) {
		return a.placeholders.has(raw)
	}
	for _, v := range a.Settings.Placeholders {
		if have, ok := a.hasher.HashIdentifier(kind, []byte(v), &m.normal); ok && have == h {
			return true
		}
	}
	return false
}
