package resolver

import (
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// An anonymous id is what an SDK made up for a device. It ranks last, and says less than
// what people give of themselves: the next person on the device has the same one until the
// application resets it. So it attaches and merges only where nothing contradicts: it never
// brings an identifier to a profile that has another value of that kind. Where something
// does, the event is the second person's, the anonymous id stays with the first, and both
// profiles note a conflict.
//
// A profile with anonymous ids and no other identifier is an anonymous one: it is in no
// segment whose definition does not include those, in no list of profiles, and in no count.

// identifierField is what conditions look at of a kind of identifier, 0 for an anonymous id.
func identifierField(k IdentityKind) engine.Fields {
	if k >= identifier.Identifying {
		return 0
	}
	return engine.FieldEmail << k
}

// withoutContradiction says which profile an event is of, and which kind led there, once
// previous ids and anonymous ids are heard: winner and by are what the identifiers say one
// by one. The document of the profile is read where only those lead to it.
func (m *Machine) withoutContradiction(a *account, raw *[identifier.Kinds][]byte, winner uint32, by IdentityKind, previous uint32) (uint32, IdentityKind, error) {
	if winner != profile.NoOrdinal && by != IdentityAnonymous {
		return winner, by, nil
	}
	if previous != profile.NoOrdinal {
		return previous, IdentityExternalID, nil
	}
	if winner == profile.NoOrdinal {
		return winner, by, nil
	}
	with, err := m.contradicts(a, raw, winner, IdentityAnonymous)
	if with {
		winner = profile.NoOrdinal
	}
	return winner, by, err
}

// contradicts reports whether a profile has a value of a kind that ranks above another, of
// which an event brings a value that is nobody's.
func (m *Machine) contradicts(a *account, raw *[identifier.Kinds][]byte, o uint32, kind IdentityKind) (bool, error) {
	if err := m.load(a, o, &m.other); err != nil {
		return false, err
	}
	for k := range kind {
		if len(raw[k]) > 0 && m.other.Has(k) {
			return true, nil
		}
	}
	return false, nil
}

// previousAs is the previous id of an alias as an identifier of a kind.
func (p *prepared) previousAs(kind IdentityKind) []byte {
	switch {
	case !identifier.IsMasked(p.ev.PreviousID):
		return p.ev.PreviousID
	case kind == IdentityAnonymous:
		return identifier.Masked(identifier.MaskKinds[kind], p.previous.Anonymous)
	}
	return identifier.Masked(identifier.MaskKinds[kind], p.previous.External)
}

// blocksAlias reports whether an event with a previous id brings an e-mail that is not
// among those of the profile that was called so. Only that keeps two names apart.
func (m *Machine) blocksAlias(a *account, raw *[identifier.Kinds][]byte, emailOwner, previous uint32) (bool, error) {
	if previous == profile.NoOrdinal || previous == emailOwner {
		return false, nil
	}
	return m.contradicts(a, raw, previous, IdentityExternalID)
}

// previousProfile is the profile that the previous id of an alias leads to, as an anonymous
// id or as an external id, and the kind it was found by; profile.NoOrdinal for none. One
// that is unknown is noted in r to become an anonymous id of the profile: what comes with it
// later is the same person's.
func (m *Machine) previousProfile(a *account, p *prepared, winner uint32, how identifierRules, r *resolved) (o uint32, kind IdentityKind, refusal *Refusal, err error) {
	ev := &p.ev
	switch {
	case len(ev.PreviousID) == 0:
		return profile.NoOrdinal, 0, nil, nil
	case ev.Public:
		return 0, 0, invalid("previousId", "previousId: a browser key may not send alias; send it from a server, with a server key"), nil
	case len(ev.ExternalID) == 0:
		return 0, 0, invalid("userId", "userId: alias needs the id that the person has now"), nil
	case p.previousBlank, m.isPlaceholder(a, IdentityAnonymous, ev.PreviousID, p.previous.Anonymous):
		return 0, 0, invalid("previousId", "previousId %q is blank or a placeholder; send no alias when the id before is not known", ev.PreviousID), nil
	}
	// As an anonymous id it may be the person's own by now; then there may be another person
	// who is called so.
	anonymous, external := a.ids.Owner(p.previous.Anonymous), a.ids.Owner(p.previous.External)
	switch {
	case anonymous != profile.NoOrdinal && anonymous != winner:
		return anonymous, IdentityAnonymous, nil, nil
	case external != profile.NoOrdinal:
		return external, IdentityExternalID, nil, nil
	case anonymous != profile.NoOrdinal:
		return profile.NoOrdinal, 0, nil, nil
	case a.erased(p.previous.Anonymous) || a.erased(p.previous.External):
		if !identifier.IsMasked(ev.PreviousID) {
			m.refusedErased = true
		}
		r.erased.add(IdentityAnonymous)
		return profile.NoOrdinal, 0, nil, nil
	}
	r.attachPrevious = ev.AnonymousID == nil || p.hashes[IdentityAnonymous] != p.previous.Anonymous
	return profile.NoOrdinal, 0, nil, nil
}
