package identifier

import "github.com/musterhq/muster/internal/identity"

// Two e-mails are one identifier when their normal forms are equal, which are lower-cased.
// Contacts' e-mails are unique in a stricter way: they must differ when cases are folded in
// full, and over all accounts. So an e-mail has the hash of its folded form, too, and
// reserves names among all accounts, by both forms.

// reservationHasher is the same for all accounts. Its key is no secret: the hashes leave
// the process only inside checkpoints, beside the e-mails.
var reservationHasher = NewHasher([16]byte{'e', '-', 'm', 'a', 'i', 'l', 's', ' ', 'o', 'n', ' ', 'f', 'i', 'l', 'e', '.'})

// HashFolded hashes the folded form of an e-mail, apart from all identifiers; buf is
// scratch. other reports whether that is another than the normal form.
func (h Hasher) HashFolded(email []byte, buf *[]byte) (sum Hash, other bool) {
	if x, ok := UnmaskEmail(email); ok {
		return x[MailCaseFold], x[MailFoldedIdentity] != x[MailIdentity]
	}
	b := identity.AppendNormalEmail((*buf)[:0], email)
	n := len(b)
	b = identity.AppendFoldedEmail(append(b, 0xfc), email)
	*buf = b
	return h.Sum(b[n:]), string(b[:n]) != string(b[n+1:])
}

// HashFoldedIdentity hashes the folded form of an e-mail as an identifier; buf is scratch.
func (h Hasher) HashFoldedIdentity(email string, buf *[]byte) Hash {
	if x, ok := UnmaskEmail([]byte(email)); ok {
		return x[MailFoldedIdentity]
	}
	sum, _ := h.HashIdentifier(Email, identity.AppendFoldedEmail(nil, []byte(email)), buf)
	return sum
}

// Reservation names an e-mail among all accounts; buf is scratch.
func (h Hasher) Reservation(email string, buf *[]byte) Hash {
	if x, ok := UnmaskEmail([]byte(email)); ok {
		return h.blind(x[MailIdentity], MailReservation, x[MailReservation])
	}
	*buf = identity.AppendNormalEmail(append((*buf)[:0], 'r'), []byte(email))
	return reservationHasher.Sum(*buf)
}

// FoldedReservation names all e-mails with one folded form among all accounts; buf is
// scratch.
func (h Hasher) FoldedReservation(email string, buf *[]byte) Hash {
	if x, ok := UnmaskEmail([]byte(email)); ok {
		return h.blind(x[MailIdentity], MailFoldedReservation, x[MailFoldedReservation])
	}
	*buf = identity.AppendFoldedEmail(append((*buf)[:0], 'f'), []byte(email))
	return reservationHasher.Sum(*buf)
}

// ReservationOfFolded names the folded form of an e-mail among all accounts; buf is
// scratch.
func (h Hasher) ReservationOfFolded(email string, buf *[]byte) Hash {
	if x, ok := UnmaskEmail([]byte(email)); ok {
		if x[MailFoldedIdentity] == x[MailIdentity] {
			return h.Reservation(email, buf)
		}
		return h.blind(x[MailIdentity], MailReservationOfFolded, x[MailReservationOfFolded])
	}
	return h.Reservation(string(identity.AppendFoldedEmail(nil, []byte(email))), buf)
}

// blind mixes a hash under a key that is no secret with one that is, and back.
func (h Hasher) blind(identity Hash, what byte, x Hash) Hash {
	with := h.Sum(append([]byte{0xfb, what}, identity[:]...))
	for i := range x {
		x[i] ^= with[i]
	}
	return x
}

// Mask masks an identifier; buf is scratch. What is masked, or has nothing to be hashed,
// is returned as it is.
func (h Hasher) Mask(kind Kind, raw []byte, buf *[]byte) []byte {
	if IsMasked(raw) {
		return raw
	}
	sum, ok := h.HashIdentifier(kind, raw, buf)
	if !ok {
		return raw
	}
	switch kind {
	case Email:
	case ExternalID:
		as, _ := h.HashIdentifier(Anonymous, raw, buf) // see HashAsAnonymous
		return Masked(MaskKinds[kind], sum, as)
	default:
		return Masked(MaskKinds[kind], sum)
	}
	folded, other := h.HashFolded(raw, buf)
	hashes := []Hash{sum, h.blind(sum, MailReservation, h.Reservation(string(raw), buf)), folded,
		h.blind(sum, MailFoldedReservation, h.FoldedReservation(string(raw), buf))}
	if other {
		hashes = append(hashes, h.HashFoldedIdentity(string(raw), buf), h.blind(sum, MailReservationOfFolded, h.ReservationOfFolded(string(raw), buf)))
	}
	return Masked(MaskKinds[Email], hashes...)
}
