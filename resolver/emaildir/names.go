package emaildir

import "github.com/musterhq/muster/resolver/internal/identifier"

// NamesOf are the names that a contact's e-mail reserves: its own, and that of all with its
// folded form where that is another than the normal one. The hasher is the account's, buf
// is scratch.
func NamesOf(h identifier.Hasher, email string, buf *[]byte) []Name {
	out := []Name{Name(h.Reservation(email, buf))}
	if _, other := h.HashFolded([]byte(email), buf); other {
		out = append(out, Name(h.FoldedReservation(email, buf)))
	}
	return out
}

// NamesToCheck are the names of which another account may have none, or the e-mail is
// taken. The hasher is the account's, buf is scratch.
func NamesToCheck(h identifier.Hasher, email string, buf *[]byte) [3]Name {
	return [3]Name{Name(h.Reservation(email, buf)), Name(h.ReservationOfFolded(email, buf)), Name(h.FoldedReservation(email, buf))}
}
