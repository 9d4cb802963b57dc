package resolution

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
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
func identifierField(k identifier.Kind) engine.Fields {
	if k >= identifier.Identifying {
		return 0
	}
	return engine.FieldEmail << k
}

// withoutContradiction says which profile an event is of, and which kind led there, once
// previous ids and anonymous ids are heard: winner and by are what the identifiers say one
// by one. The document of the profile is read where only those lead to it.
func (s *State) withoutContradiction(raw *[identifier.Kinds][]byte, winner uint32, by identifier.Kind, previous uint32) (uint32, identifier.Kind, error) {
	if winner != profile.NoOrdinal && by != identifier.Anonymous {
		return winner, by, nil
	}
	if previous != profile.NoOrdinal {
		return previous, identifier.ExternalID, nil
	}
	if winner == profile.NoOrdinal {
		return winner, by, nil
	}
	with, err := s.contradicts(raw, winner, identifier.Anonymous)
	if with {
		winner = profile.NoOrdinal
	}
	return winner, by, err
}

// contradicts reports whether a profile has a value of a kind that ranks above another, of
// which an event brings a value without an owner.
func (s *State) contradicts(raw *[identifier.Kinds][]byte, o uint32, kind identifier.Kind) (bool, error) {
	if err := s.Load(o, &s.other); err != nil {
		return false, err
	}
	for k := range kind {
		if len(raw[k]) > 0 && s.other.Has(k) {
			return true, nil
		}
	}
	return false, nil
}

// previousAs is the previous id of an alias as an identifier of a kind.
func (p *Lookup) previousAs(kind identifier.Kind) []byte {
	switch {
	case !identifier.IsMasked(p.Event.PreviousID):
		return p.Event.PreviousID
	case kind == identifier.Anonymous:
		return identifier.Masked(identifier.MaskKinds[kind], p.previous.Anonymous)
	}
	return identifier.Masked(identifier.MaskKinds[kind], p.previous.External)
}

// blocksAlias says why an event with a previous id does not join the profile that was called
// so, 0 if it does: it brings an e-mail that is not among those of the profile, or a
// browser's key alone says that the profile was called so.
func (s *State) blocksAlias(p *Lookup, raw *[identifier.Kinds][]byte, emailOwner, previous uint32, kind identifier.Kind) (profile.ConflictReason, error) {
	if previous == profile.NoOrdinal || previous == emailOwner {
		return 0, nil
	}
	with, err := s.contradicts(raw, previous, identifier.ExternalID)
	if with || err != nil {
		return profile.ConflictHigherRank, err
	}
	h := p.previous.External
	if kind == identifier.Anonymous {
		h = p.previous.Anonymous
	}
	if s.other.HasClaimed() && s.claimed(&s.other, kind, h) {
		return profile.ConflictPublic, nil
	}
	return 0, nil
}

// calledBefore is the profile that an alias gave an id to as a previous id, before anything
// came under it; profile.NoOrdinal if there is none. The id is an external id after all.
func (s *State) calledBefore(externalID []byte) (uint32, error) {
	h, ok := s.Hasher.HashAsAnonymous(externalID, &s.normal)
	if !ok {
		return profile.NoOrdinal, nil
	}
	o := s.Owner(h)
	if o == profile.NoOrdinal || s.Erased(o) {
		return profile.NoOrdinal, nil
	}
	if err := s.Load(o, &s.other); err != nil {
		return profile.NoOrdinal, err
	}
	if i := s.shown(&s.other, identifier.Anonymous, h); i < 0 || !s.other.Identifiers[i].Previous {
		return profile.NoOrdinal, nil
	}
	return o, nil
}

// giveUpAnonymous bounds the anonymous ids of a document: the oldest make room for newer
// ones, so that no sender can use up those of a person. An event that has one of them alone
// is still the person's. An erasure finds the newest of them by their hashes, beside all
// records with another identifier of the person.
func (s *State) giveUpAnonymous(d *profile.Document) {
	for n := len(d.Identifiers) - d.Known() - MaxAnonymousIDs; n > 0; n-- {
		i := slices.IndexFunc(d.Identifiers, func(id profile.Identifier) bool { return id.Kind == identifier.Anonymous })
		if h, ok := s.Hasher.HashIdentifier(identifier.Anonymous, d.Identifiers[i].Value, &s.normal); ok {
			d.GivenUp = append(d.GivenUp, h)
		}
		d.Identifiers = slices.Delete(d.Identifiers, i, i+1)
	}
	if n := len(d.GivenUp) - maxGivenUp; n > 0 {
		d.GivenUp = slices.Delete(d.GivenUp, 0, n)
	}
}

// previousProfile is the profile that the previous id of an alias leads to, as an anonymous
// id or as an external id, and the kind it was found by; profile.NoOrdinal for none. One
// that is unknown is noted in r to become an anonymous id of the profile: what comes with it
// later is the same person's.
func (s *State) previousProfile(p *Lookup, winner uint32, how identrules.Identifiers, r *Result) (o uint32, kind identifier.Kind, refusal *refuse.Refusal, err error) {
	ev := &p.Event
	switch {
	case len(ev.PreviousID) == 0:
		return profile.NoOrdinal, 0, nil, nil
	case ev.Public:
		return 0, 0, refuse.Invalid("previousId", "previousId: a browser key may not send alias; send it from a server, with a server key"), nil
	case len(ev.ExternalID) == 0 && !(how.Calls && len(ev.Email) > 0):
		return 0, 0, refuse.Invalid("userId", "userId: alias needs the id that the person has now"), nil
	case p.previousBlank, s.isPlaceholder(identifier.Anonymous, ev.PreviousID, p.previous.Anonymous):
		return 0, 0, refuse.Invalid("previousId", "previousId %q is blank or a placeholder; send no alias when the id before is not known", ev.PreviousID), nil
	}
	// As an anonymous id it may be the person's own by now; then there may be another person
	// who is called so.
	anonymous, external := s.Owner(p.previous.Anonymous), s.Owner(p.previous.External)
	if anonymous != profile.NoOrdinal && s.Erased(anonymous) {
		anonymous = profile.NoOrdinal
	}
	switch {
	case anonymous != profile.NoOrdinal && anonymous != winner:
		return anonymous, identifier.Anonymous, nil, nil
	case external != profile.NoOrdinal:
		return external, identifier.ExternalID, nil, nil
	case anonymous != profile.NoOrdinal:
		return profile.NoOrdinal, 0, nil, nil
	case s.keepsOut(identifier.Anonymous, p.previous.Anonymous, how) || s.host.Erased(p.previous.External):
		if !identifier.IsMasked(ev.PreviousID) {
			s.host.NoteRefused()
		}
		r.Erased.add(identifier.Anonymous)
		return profile.NoOrdinal, 0, nil, nil
	}
	r.attachPrevious = ev.AnonymousID == nil || p.hashes[identifier.Anonymous] != p.previous.Anonymous
	return profile.NoOrdinal, 0, nil, nil
}
