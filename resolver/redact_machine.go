package resolver

import (
	"math"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/redact"
)

// Redactor is one for a batch, as of now. It is used while records are applied: held
// calls a function while the machine is held still, or does not when it is given up.
func (m *Machine) Redactor(b *erasure.Batch, held func(fn func())) (*redact.Redactor, error) {
	a := m.accounts[b.Account]
	marks := a.Erasure.Offsets()
	now := m.redactPeople(a)
	r := redact.New(a.Number, a.Profiles.Hasher, a.Settings.Placeholders, redact.People{
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
		Erased: func(o uint32) (gone bool) {
			held(func() { gone = now.Erased(o) })
			return gone
		},
	})
	ordinals, below, err := a.Erasure.Persons(b)
	if err != nil {
		return nil, err
	}
	r.Erase(ordinals, below)
	return r, nil
}

// redactPeople is the account as it is now. The caller keeps the machine from
// changing.
func (m *Machine) redactPeople(a *account.State) redact.People {
	return redact.People{
		Marked: a.Erasure.MarkedAt,
		Owner:  a.Profiles.Identifiers.Owner,
		Shows: func(o uint32, kind IdentityKind, h identifier.Hash) (bool, error) {
			return a.Profiles.ProfileShows(o, kind, h)
		},
		Named:  a.OrdinalOf,
		Erased: a.IsErased,
	}
}

// KeepOut takes out of a record, before it is stored, what the machine refuses because
// of erased persons. A command that it refuses is not stored at all.
func (m *Machine) KeepOut(env eventlog.Envelope, rec []byte) ([]byte, *Refusal, error) {
	a := m.accounts[env.Account]
	if a == nil || a.Erasure.Marks() == 0 {
		return rec, nil, nil
	}
	r := redact.New(a.Number, a.Profiles.Hasher, a.Settings.Placeholders, m.redactPeople(a))
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
