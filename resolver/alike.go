package resolver

import (
	"slices"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Two e-mails are one identifier when their normal forms are equal, which are
// lower-cased. Contacts' e-mails are unique in a stricter way: they must differ
// when cases are folded in full, so that STRASSE@x is refused where straße@x is
// on file. Three things answer that:
//
//   - identities: whose e-mail has the folded form for its normal form;
//   - the e-mails of the account whose folded form is another than their normal
//     form, by the folded one (account.caseFolds);
//   - reservations, by both forms.

// addCaseFold notes that an e-mail is on file, h being its identity. It costs
// nothing for the e-mails whose folded form is the normal one, as good as all.
func (m *Machine) addCaseFold(a *account, email []byte, h identifier.Hash) {
	if isASCII(email) && !identifier.IsMasked(email) {
		return
	}
	f, other := a.hasher.HashFolded(email, &m.normal)
	if !other || slices.Contains(a.caseFolds[f], h) {
		return
	}
	a.caseFolds[f] = append(a.caseFolds[f], h)
	slices.SortFunc(a.caseFolds[f], func(x, y identifier.Hash) int { return slices.Compare(x[:], y[:]) })
	m.store.PutEntity(caseFoldKey(a.number, f, h), []byte{})
}

// removeCaseFold forgets an e-mail that is not on file any more.
func (m *Machine) removeCaseFold(a *account, email []byte, h identifier.Hash) {
	if isASCII(email) && !identifier.IsMasked(email) {
		return
	}
	f, _ := a.hasher.HashFolded(email, &m.normal)
	i := slices.Index(a.caseFolds[f], h)
	if i < 0 {
		return
	}
	if a.caseFolds[f] = slices.Delete(a.caseFolds[f], i, i+1); len(a.caseFolds[f]) == 0 {
		delete(a.caseFolds, f)
	}
	m.store.PutEntity(caseFoldKey(a.number, f, h), nil)
}

func isASCII(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 })
}

func caseFoldKey(account uint64, f, h identifier.Hash) string {
	return state.EntityKey(account, state.EntityAlike, string(f[:])+string(h[:]))
}

// hasEmail reports whether an e-mail, or one that differs from it in case alone, is
// on file: with a profile of the account other than except, or as the e-mail of a
// contact of another account.
func (a *account) hasEmail(m *Machine, email string, except uint32) bool {
	held := func(h identifier.Hash) bool { o := a.ids.Owner(h); return o != profile.NoOrdinal && o != except }
	h, ok := a.hasher.HashIdentifier(IdentityEmail, []byte(email), &m.normal)
	if !ok {
		return false
	}
	if held(h) {
		return true
	}
	f, _ := a.hasher.HashFolded([]byte(email), &m.normal)
	if slices.ContainsFunc(a.caseFolds[f], held) {
		return true
	}
	if held(a.hasher.HashFoldedIdentity(email, &m.normal)) {
		return true
	}
	for _, r := range emaildir.NamesToCheck(a.hasher, email, &m.normal) {
		if owner, held := m.emails.Owner(r); held && owner != a.number {
			return true
		}
	}
	return false
}

// reserve keeps an e-mail from being a contact's in other accounts. With a grant it
// is kept with the id under which the directory has it.
func (m *Machine) reserve(a *account, email string, g *emaildir.Grant) {
	m.emails.Hold(a.number, emaildir.NamesOf(a.hasher, email, &m.normal), g)
}

// unreserve gives up what an e-mail of the account reserved. An e-mail that
// reserved nothing, since no contact was made with it, leaves alone what another
// with its folded form has reserved.
func (m *Machine) unreserve(a *account, email string) {
	list := emaildir.NamesOf(a.hasher, email, &m.normal)
	if owner, held := m.emails.Owner(list[0]); held && owner == a.number {
		m.emails.LetGo(a.number, list)
	}
}

// namesToReserve are the names that an account must reserve before an e-mail that
// is nobody's can be one of its contacts'. What it holds it need not reserve again.
func (m *Machine) namesToReserve(a *account, email string) (names []emaildir.Name) {
	if _, ok := a.hasher.HashIdentifier(IdentityEmail, []byte(email), &m.normal); !ok {
		return nil
	}
	for _, n := range emaildir.NamesOf(a.hasher, email, &m.normal) {
		if owner, held := m.emails.Owner(n); !held || owner != a.number {
			names = append(names, n)
		}
	}
	return names
}

// mayHold refuses an e-mail, on file with nobody here, that the directory has not
// given to the account.
func (m *Machine) mayHold(a *account, email string, g *emaildir.Grant) *Refusal {
	if g == nil {
		return nil
	}
	names := m.namesToReserve(a, email)
	switch {
	case len(names) == 0:
		return nil
	case g.Taken:
		return contacts.DuplicateEmail()
	case slices.ContainsFunc(names, func(n emaildir.Name) bool { return !slices.Contains(g.Names, n) }):
		return &Refusal{Code: codeUnreserved, Field: "email", Message: "email: it is not reserved for this account; try again"}
	case m.logTime >= g.UntilMs:
		return &Refusal{Code: codeExpired, Field: "email", Message: "email: it took too long to store the contact; try again"}
	}
	return nil
}
