package resolver

import (
	"slices"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/reservation"
)

// hasEmail reports whether an e-mail, or one that differs from it in case alone, is
// on file: with a profile of the account other than except, or as the e-mail of a
// contact of another account.
func (m *Machine) hasEmail(a *account.State, email string, except uint32) bool {
	if _, ok := a.Profiles.Hasher.HashIdentifier(IdentityEmail, []byte(email), &m.tx.normal); !ok {
		return false
	}
	if a.Profiles.HasEmail(email, except) {
		return true
	}
	for _, r := range emaildir.NamesToCheck(a.Profiles.Hasher, email, &m.tx.normal) {
		if owner, held := m.emailDirectory.Owner(r); held && owner != a.Number {
			return true
		}
	}
	return false
}

// reserve keeps an e-mail from being a contact's in other accounts. With a grant it
// is kept with the id under which the directory has it.
func (m *Machine) reserve(a *account.State, email string, g *emaildir.Grant) {
	m.emailDirectory.Hold(a.Number, emaildir.NamesOf(a.Profiles.Hasher, email, &m.tx.normal), g)
}

// unreserve gives up what an e-mail of the account reserved. An e-mail that
// reserved nothing, since no contact was made with it, leaves alone what another
// with its folded form has reserved.
func (m *Machine) unreserve(a *account.State, email string) {
	list := emaildir.NamesOf(a.Profiles.Hasher, email, &m.tx.normal)
	if owner, held := m.emailDirectory.Owner(list[0]); held && owner == a.Number {
		m.emailDirectory.LetGo(a.Number, list)
	}
}

// namesToReserve are the names that an account must reserve before an e-mail that
// no contact has can become one of its contacts'. What it holds it need not reserve
// again.
func (m *Machine) namesToReserve(a *account.State, email string) (names []emaildir.Name) {
	if _, ok := a.Profiles.Hasher.HashIdentifier(IdentityEmail, []byte(email), &m.tx.normal); !ok {
		return nil
	}
	for _, n := range emaildir.NamesOf(a.Profiles.Hasher, email, &m.tx.normal) {
		if owner, held := m.emailDirectory.Owner(n); !held || owner != a.Number {
			names = append(names, n)
		}
	}
	return names
}

// MissingEmail returns what the directory must be asked for before a command can give a
// contact its e-mail: nothing when the account's partition decides by itself. It
// guesses: the state moves on until the command is applied. It uses the machine's scratch
// memory, so the caller keeps readers out, too.
func (m *Machine) MissingEmail(account uint64, c *contacts.EmailCommand) (take, check []emaildir.Name) {
	a, email := m.accounts[account], c.Email()
	if a == nil {
		return nil, nil
	}
	except := profile.NoOrdinal
	if id, ok := c.Changes(); ok {
		if except, ok = a.ResolveText(id); !ok {
			return nil, nil
		}
	}
	if h, ok := a.Profiles.Hasher.HashIdentifier(IdentityEmail, []byte(email), &m.tx.normal); ok && a.Profiles.Identifiers.Owner(h) != profile.NoOrdinal || m.hasEmail(a, email, except) {
		return nil, nil
	}
	if take = m.namesToReserve(a, email); len(take) == 0 {
		return nil, nil
	}
	for _, n := range emaildir.NamesToCheck(a.Profiles.Hasher, email, &m.tx.normal) {
		check = append(check, emaildir.Name(n))
	}
	return take, check
}

// mayHold refuses an e-mail that no profile of the account has and that the
// directory has not given to the account.
func (m *Machine) mayHold(a *account.State, email string, g *emaildir.Grant) *Refusal {
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
		return &Refusal{Code: reservation.CodeUnreserved, Field: "email", Message: "email: it is not reserved for this account; try again"}
	case m.logTime >= g.UntilMs:
		return &Refusal{Code: reservation.CodeExpired, Field: "email", Message: "email: it took too long to store the contact; try again"}
	}
	return nil
}
