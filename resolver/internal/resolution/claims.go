package resolution

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// A browser's key is public: anyone can use it to send that an e-mail and an external id belong
// to one person. An identifier that such an event attaches to an identified profile is a claim.
// A claimed identifier leads to its profile as any other does, but an event of a server that
// finds its profile by a claim alone has no more rights than the browser's key: it merges no two
// identified profiles, attaches no second e-mail, external id or phone, and what it does
// attach is a claim again. An event of a server that also has an identifier of the profile
// that is not a claim confirms the claim.
//
// Servers take precedence over claims. An event that has an identifier of another profile, or
// a different value of a kind that the claiming profile has, does not belong to the claiming
// profile. The claimed identifier stays where it is, because an erasure finds records by the
// present owner of an identifier. The profile that the server named gets a conflict instead.
// Evidence that would have kept this profile apart from others may now be missing, so the
// conflict itself keeps it apart: it merges with no identified profile, except one that
// has the identifier and not as a claim.

// claiming says which identifiers an event attaches as claims.
type claiming struct {
	weak       bool // the event is of a browser's key, or led by a claim
	known      bool // the profile had an identifier that identifies a person
	created    bool // the event made the profile
	externalID bool // the event brings an external id that no profile has
}

// claim reports whether an identifier that is about to be attached is a claim. The first
// identifier of a person is not: the later ones are claims about it. Of several that arrive
// together, the external id counts as the first, because applications assign it. When the first
// one is attached, the anonymous ids that were there become claims.
func (c *claiming) claim(d *profile.Document, k identifier.Kind) bool {
	if !c.weak {
		return false
	}
	first := !c.known && k != identifier.Anonymous && (k == identifier.ExternalID || !c.externalID && d.Known() == 0)
	if first {
		claimAnonymous(d)
	}
	return !first && (k != identifier.Anonymous || d.Known() > 0)
}

// claimAnonymous makes claims of all anonymous ids of a document.
func claimAnonymous(d *profile.Document) {
	for i := range d.Identifiers {
		if id := &d.Identifiers[i]; id.Kind == identifier.Anonymous {
			id.Claimed = true
		}
	}
}

// claimed reports whether a document has an identifier as a claim.
func (s *State) claimed(d *profile.Document, k identifier.Kind, h identifier.Hash) bool {
	i := s.shown(d, k, h)
	return i >= 0 && d.Identifiers[i].Claimed
}

// confirm makes an identifier that the document has more than a claim.
func (s *State) confirm(d *profile.Document, k identifier.Kind, h identifier.Hash) {
	if !d.HasClaimed() {
		return
	}
	if i := s.shown(d, k, h); i >= 0 {
		d.Identifiers[i].Claimed = false
	}
}

// brings reports whether an event brings a value that no profile has, of a kind that ranks above
// another and of which the profile in d has one.
func brings(raw *[identifier.Kinds][]byte, owner *[identifier.Kinds]uint32, d *profile.Document, kind identifier.Kind) bool {
	for k := range min(kind, identifier.Identifying) {
		if len(raw[k]) > 0 && owner[k] == profile.NoOrdinal && d.Has(k) {
			return true
		}
	}
	return false
}

// nextOwner returns the profile that an event belongs to when it does not belong to the one
// found by kind by, and the kind it is found by; profile.NoOrdinal for none.
func (s *State) nextOwner(raw *[identifier.Kinds][]byte, owner *[identifier.Kinds]uint32, not uint32, by identifier.Kind) (uint32, identifier.Kind, error) {
	for k := by + 1; k < identifier.Kinds; k++ {
		if o := owner[k]; o != profile.NoOrdinal && o != not {
			return s.withoutContradiction(raw, o, k, profile.NoOrdinal)
		}
	}
	return profile.NoOrdinal, by, nil
}

// claimedLink reports whether only claims lead from an event of a server to the profile o (weak).
// Any other identifier confirms the claims, which changes the document d (confirmed).
// Under rules before [identrules.VersionYield] several claims confirm each other.
func (s *State) claimedLink(d *profile.Document, p *Lookup, owner *[identifier.Kinds]uint32, o uint32, how identrules.Identifiers) (weak, confirmed bool) {
	if !d.HasClaimed() {
		return false, false
	}
	links := 0
	var claims []int
	for k, by := range owner {
		if by != o {
			continue
		}
		links++
		if i := s.shown(d, identifier.Kind(k), p.hashes[k]); i >= 0 && d.Identifiers[i].Claimed {
			claims = append(claims, i)
		}
	}
	if len(claims) == 0 || links == 1 {
		return len(claims) == 1, false
	}
	if how.Yields && len(claims) == links {
		return true, false
	}
	for _, i := range claims {
		d.Identifiers[i].Claimed = false
	}
	return false, true
}

// insteadOfClaim returns the profile that an event of a server belongs to, and the kind it is
// found by, when only claims lead to the profile claiming, whose document is d. It is a
// profile that another identifier leads to without being a claim; no profile, if the event contradicts
// the claim; or else claiming itself. It reads d and does not change it.
func (s *State) insteadOfClaim(p *Lookup, raw *[identifier.Kinds][]byte, owner *[identifier.Kinds]uint32, d *profile.Document, claiming uint32, by identifier.Kind, joins uint32, how identrules.Identifiers) (uint32, identifier.Kind, error) {
	contradicts := false
	for k := range identifier.Identifying {
		o := owner[k]
		if len(raw[k]) == 0 || o == claiming {
			continue
		}
		contradicts = contradicts || d.Has(k)
		if o == profile.NoOrdinal {
			continue
		}
		if err := s.Load(o, &s.other); err != nil {
			return 0, 0, err
		}
		if claim, _ := s.claimedLink(&s.other, p, owner, o, how); !claim {
			return o, k, nil
		}
	}
	if joins != profile.NoOrdinal {
		return joins, identifier.ExternalID, nil
	}
	if o := owner[identifier.Anonymous]; o != profile.NoOrdinal && o != claiming {
		// The device decides if it belongs to an identified profile. Otherwise it becomes
		// another device of the claiming profile.
		o, _, err := s.withoutContradiction(raw, o, identifier.Anonymous, profile.NoOrdinal)
		if err != nil {
			return 0, 0, err
		}
		if o != profile.NoOrdinal { // s.other is its document
			claim, _ := s.claimedLink(&s.other, p, owner, o, how)
			if !claim && (contradicts || s.other.Known() > 0) {
				return o, identifier.Anonymous, nil
			}
		}
	}
	if contradicts {
		return profile.NoOrdinal, by, nil
	}
	return claiming, by, nil
}

// inDoubt reports whether a claim has kept from the profile in d an identifier that a server
// gave it, unless the profile in o has that identifier by now, not as a claim.
func (s *State) inDoubt(d, o *profile.Document) bool {
	return slices.ContainsFunc(d.Conflicts, func(c profile.Conflict) bool {
		if c.Reason != profile.ConflictClaimed {
			return false
		}
		h, ok := s.Hasher.HashIdentifier(c.Kind, c.Value, &s.normal)
		if !ok {
			return true
		}
		if i := s.shown(d, c.Kind, h); i >= 0 && !d.Identifiers[i].Shared {
			return false // it came to the person after all
		}
		i := s.shown(o, c.Kind, h)
		return i < 0 || o.Identifiers[i].Shared || o.Identifiers[i].Claimed
	})
}
