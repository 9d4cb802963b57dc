package resolver

import (
	"math"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/redact"
)

// Redactor is one for a batch, as of now. It is used while records are applied: held
// calls a function while the machine is held still, or does not when it is given up.
func (m *Machine) Redactor(b *erasure.Batch, held func(fn func())) (*redact.Redactor, error) {
	a := m.accounts[b.Account]
	marks := a.erasure.Offsets()
	now := m.redactPeople(a)
	r := redact.New(a.number, a.profiles.Hasher, a.Settings.Placeholders, redact.People{
		Marked: func(h identifier.Hash) (int64, bool) {
			at, ok := marks[h]
			return at, ok
		},
		Owner: func(h identifier.Hash) (o uint32) {
			held(func() { o = now.Owner(h) })
			return o
		},
		Shows: func(o uint32, kind IdentityKind, h identifier.Hash) (shows bool, err error) {
			held(func() { shows, err = now.Shows(o, kind, h) })
			return shows, err
		},
		Named: func(id string) (o uint32, ok bool) {
			held(func() { o, ok = now.Named(id) })
			return o, ok
		},
		Gone: func(o uint32) (gone bool) {
			held(func() { gone = now.Gone(o) })
			return gone
		},
	})
	ordinals, below, err := a.erasure.Persons(b)
	if err != nil {
		return nil, err
	}
	r.Erase(ordinals, below)
	return r, nil
}

// redactPeople is the account as it is, for whoever holds the machine still.
func (m *Machine) redactPeople(a *account) redact.People {
	return redact.People{
		Marked: a.erasure.MarkedAt,
		Owner:  a.profiles.Identifiers.Owner,
		Shows: func(o uint32, kind IdentityKind, h identifier.Hash) (bool, error) {
			return a.profiles.ProfileShows(o, kind, h)
		},
		Named: a.ordinalOf,
		Gone:  a.isGone,
	}
}

// KeepOut takes out of a record, before it is stored, what the machine refuses because
// of erased persons. A command that it refuses is not stored at all.
func (m *Machine) KeepOut(env eventlog.Envelope, rec []byte) ([]byte, *Refusal, error) {
	a := m.accounts[env.Account]
	if a == nil || a.erasure.Marks() == 0 {
		return rec, nil, nil
	}
	r := redact.New(a.number, a.profiles.Hasher, a.Settings.Placeholders, m.redactPeople(a))
	x := eventlog.Redaction{}
	var err error
	if x.Splices, err = r.Record(math.MaxInt64, rec); err != nil || x.Splices == nil {
		return rec, nil, err
	}
	if kind, out := r.KeptOut(); out {
		return nil, contacts.OwnField(erasure.Refuse(kind)), nil
	}
	now, _ := x.Apply(make([]byte, 0, len(rec)), rec)
	return now, nil, nil
}

// isGone is gone of an ordinal that need not be one.
func (a *account) isGone(o uint32) bool { return o < a.profiles.Headers.Count && a.profiles.Gone(o) }

// ordinalOf is the ordinal that an id carries, of whoever is left of it.
func (a *account) ordinalOf(id string) (uint32, bool) {
	x, ok := ParseProfileID(id)
	if !ok {
		return 0, false
	}
	return a.profiles.Ordinal(x)
}
