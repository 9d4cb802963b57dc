package resolver

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/state"
)

// namesToReserve are the names that an account must reserve before an e-mail that
// is nobody's can be one of its contacts'. What it holds it need not reserve again.
func (m *Machine) namesToReserve(a *account, email string) (names []EmailName) {
	if _, ok := a.hasher.HashIdentifier(IdentityEmail, []byte(email), &m.normal); !ok {
		return nil
	}
	for _, n := range m.reservationsOf(a, email) {
		if owner, held := m.reservations[n]; !held || owner != a.number {
			names = append(names, EmailName(n))
		}
	}
	return names
}

// mayHold refuses an e-mail, on file with nobody here, that the directory has not
// given to the account.
func (m *Machine) mayHold(a *account, email string, g *EmailGrant) *Refusal {
	if g == nil {
		return nil
	}
	names := m.namesToReserve(a, email)
	switch {
	case len(names) == 0:
		return nil
	case g.Taken:
		return duplicateEmail()
	case slices.ContainsFunc(names, func(n EmailName) bool { return !slices.Contains(g.Names, n) }):
		return &Refusal{Code: codeUnreserved, Field: "email", Message: "email: it is not reserved for this account; try again"}
	case m.logTime >= g.UntilMs:
		return &Refusal{Code: codeExpired, Field: "email", Message: "email: it took too long to store the contact; try again"}
	}
	return nil
}

// HeldUnder are those of the names that the account holds under the id.
func (m *Machine) HeldUnder(account uint64, id ReservationID, names []EmailName) (held []EmailName) {
	for _, n := range names {
		if owner, ok := m.reservations[identifier.Hash(n)]; !ok || owner != account {
			continue
		}
		if have, ok := m.reservedUnder(account, n); ok && have == id {
			held = append(held, n)
		}
	}
	return held
}

// reservedUnder is the id under which an account holds a name; not ok is one that
// it holds where there is no directory.
func (m *Machine) reservedUnder(account uint64, n EmailName) (id ReservationID, ok bool) {
	b, err := m.store.Entity(state.EntityKey(account, state.EntityReservation, string(n[:])))
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if len(b) != len(id) {
		return id, false
	}
	return ReservationID(b), true
}

// queueRelease has the directory told that a name is free again.
func (m *Machine) queueRelease(account uint64, n EmailName, id ReservationID) {
	m.emails.releases[releaseKey{n, id}] = account
	m.store.PutPayload(emailKey(emailQueued, n[:], id[:]), binary.BigEndian.AppendUint64(nil, account))
}

// ReleasesWaiting are names to be released, as many as one record takes.
func (m *Machine) ReleasesWaiting() (out []EmailNames) {
	keys := slices.SortedFunc(maps.Keys(m.emails.releases), releaseKey.compare)
	for _, k := range keys[:min(len(keys), MaxEmailItems)] {
		out = append(out, EmailNames{Account: m.emails.releases[k], ID: k.id, Names: []EmailName{k.name}})
	}
	return out
}

func (m *Machine) forgetReleases(_ *command, c EmailReleased) *Refusal {
	if r := checkItems(c.Items); r != nil {
		return r
	}
	for _, x := range c.Items {
		for _, n := range x.Names {
			k := releaseKey{n, x.ID}
			if _, ok := m.emails.releases[k]; ok {
				delete(m.emails.releases, k)
				m.store.PutPayload(emailKey(emailQueued, n[:], x.ID[:]), nil)
			}
		}
	}
	return nil
}

// settleEmails says what the account holds for good: a grant that ends no later
// than now is not taken any more, see mayHold.
func (m *Machine) settleEmails(cmd *command, c EmailSettle) *Refusal {
	if r := checkItems(c.Items); r != nil {
		return r
	}
	out := EmailSettled{Held: make([][]EmailName, len(c.Items))}
	for i, x := range c.Items {
		if x.UntilMs > m.logTime {
			return invalid("items", "items[%d] is reserved for another %d ms", i, x.UntilMs-m.logTime)
		}
		out.Held[i] = m.HeldUnder(cmd.env.Account, x.ID, x.Names)
	}
	cmd.reply(out)
	return nil
}
