package resolution

import (
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// Repeated is what became of the identifiers of an event that was recorded before.
type Repeated struct {
	NotAdded, Dropped, Erased KindSet
	// Foreign says that none of the identifiers leads to the profile: the idempotency key was
	// used for another person's event.
	Foreign bool
}

// Repeated says of an event that was recorded before, against the profile with the ordinal,
// what became of its identifiers.
func (s *State) Repeated(p *Lookup, ordinal uint32, how identrules.Identifiers) (r Repeated, err error) {
	ordinal = s.Root(ordinal)
	r.Dropped, r.Erased = s.leftOut(p, how)
	r.Foreign = s.isForeign(p, ordinal)
	r.NotAdded, err = s.notAddedBefore(p, ordinal)
	return r, err
}

// leftOut are the identifiers of an event that are none, and those of erased persons.
func (s *State) leftOut(p *Lookup, how identrules.Identifiers) (dropped, erased KindSet) {
	for k, raw := range identrules.Of(&p.Event) {
		switch k := identifier.Kind(k); {
		case len(raw) == 0:
		case how.Drop && s.noIdentifier(p, k, raw, how) != nil:
			dropped.add(k)
		case how.DropErased && s.keepsOut(k, p.hashes[k], how):
			erased.add(k)
		}
	}
	return dropped, erased
}

// isForeign reports whether a repeated event has identifiers, and none of them is that of
// the profile which the first event was recorded against. Identifiers of a profile stay
// its own, so a repeat of the same event has one.
func (s *State) isForeign(p *Lookup, ordinal uint32) bool {
	if s.Erased(ordinal) {
		return false
	}
	any := false
	for k := range identifier.Kinds {
		raw := identrules.Of(&p.Event)[k]
		if len(raw) == 0 || p.blank[k] || p.junk[k] {
			continue
		}
		if s.Owner(p.hashes[k]) == ordinal {
			return false
		}
		any = true
	}
	return any
}

// notAddedBefore returns which identifiers of a repeated event were beyond the cap:
// those that are not the profile's and stand among its conflicts. It misses those that
// were pushed out of the conflicts, or became the profile's, since.
func (s *State) notAddedBefore(p *Lookup, ordinal uint32) (set KindSet, err error) {
	raw := identrules.Of(&p.Event)
	loaded := false
	for k := range identifier.Kinds {
		if len(raw[k]) == 0 || p.blank[k] {
			continue
		}
		if s.owner(p, k) == ordinal || s.Erased(ordinal) {
			continue
		}
		if !loaded {
			if err := s.Load(ordinal, &s.other); err != nil {
				return 0, err
			}
			loaded = true
		}
		for _, c := range s.other.Conflicts {
			if c.Kind != k || c.Reason != profile.ConflictTooMany {
				continue
			}
			if h, _ := s.Hasher.HashIdentifier(k, c.Value, &s.normal); h == p.hashes[k] {
				set.add(k)
			}
		}
	}
	return set, nil
}
