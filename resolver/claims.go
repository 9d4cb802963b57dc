package resolver

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// A browser's key is public: anybody can send with it that an e-mail and an external id are
// one person's. What such an event attaches to a profile that is identified already is a claim.
// A claimed identifier leads to its profile like others, but by itself it is no better than
// the key that attached it: an event of a server that only a claim leads to joins no two
// identified profiles and attaches no second e-mail, external id or phone, and what else it
// attaches is a claim again. An event of a server that has another identifier of the profile,
// which is no claim, confirms it.
//
// What a server says goes before a claim. An event that has an identifier of somebody else, or
// another value of a kind that the claiming profile has, is not that profile's. The claimed
// identifier stays there, since an erasure finds records by who has an identifier now; the
// person whom the server named has a conflict instead. Nobody knows then what else would have
// kept this person apart from others, so such a conflict keeps apart: the person
// is joined with no identified profile but the one that has the identifier for certain by now.

// claiming says which identifiers an event attaches as claims.
type claiming struct {
	weak       bool // the event is of a browser's key, or led by a claim
	known      bool // the profile had an identifier that identifies a person
	created    bool // the event made the profile
	externalID bool // the event brings an external id that no profile has
}

// claim reports whether an identifier that is about to be attached is a claim. The first one
// of a person is none: it is whom the others are claimed to be of. Of several that come
// together that is the external id, which applications give to their users. With the first
// one, the anonymous ids that were there become claims.
func (c *claiming) claim(d *profile.Document, k IdentityKind) bool {
	if !c.weak {
		return false
	}
	first := !c.known && k != IdentityAnonymous && (k == IdentityExternalID || !c.externalID && d.Known() == 0)
	if first {
		claimAnonymous(d)
	}
	return !first && (k != IdentityAnonymous || d.Known() > 0)
}

// claimAnonymous makes claims of all anonymous ids of a document.
func claimAnonymous(d *profile.Document) {
	for i := range d.Identifiers {
		if id := &d.Identifiers[i]; id.Kind == IdentityAnonymous {
			id.Claimed = true
		}
	}
}

// claimed reports whether a document has an identifier as a claim.
func (a *account) claimed(m *Machine, d *profile.Document, k IdentityKind, h identifier.Hash) bool {
	i := a.shown(m, d, k, h)
	return i >= 0 && d.Identifiers[i].Claimed
}

// confirm makes an identifier that the document has more than a claim. It returns true, for
// conditions.
func (a *account) confirm(m *Machine, d *profile.Document, k IdentityKind, h identifier.Hash) bool {
	if !d.HasClaimed() {
		return true
	}
	if i := a.shown(m, d, k, h); i >= 0 {
		d.Identifiers[i].Claimed = false
	}
	return true
}

// brings reports whether an event brings a value that no profile has, of a kind that ranks above
// another and of which the profile in d has one.
func brings(raw *[identifier.Kinds][]byte, owner *[identifier.Kinds]uint32, d *profile.Document, kind IdentityKind) bool {
	for k := range min(kind, identifier.Identifying) {
		if len(raw[k]) > 0 && owner[k] == profile.NoOrdinal && d.Has(k) {
			return true
		}
	}
	return false
}

// nextOwner is the profile that an event is of when it is not that of one which was found by
// a kind, and the kind it is found by; profile.NoOrdinal for none.
func (m *Machine) nextOwner(a *account, raw *[identifier.Kinds][]byte, owner *[identifier.Kinds]uint32, not uint32, by IdentityKind) (uint32, IdentityKind, error) {
	for k := by + 1; k < identifier.Kinds; k++ {
		if o := owner[k]; o != profile.NoOrdinal && o != not {
			return m.withoutContradiction(a, raw, o, k, profile.NoOrdinal)
		}
	}
	return profile.NoOrdinal, by, nil
}

// claimedLink looks at what leads from an event of a server to a profile. weak says that it
// is claims alone. Another identifier confirms them: confirmed says that the document, d, has
// changed by that. Under rules before [rulesYield] several claims confirm each other.
func (m *Machine) claimedLink(a *account, d *profile.Document, p *prepared, owner *[identifier.Kinds]uint32, o uint32, how identifierRules) (weak, confirmed bool) {
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
		if i := a.shown(m, d, IdentityKind(k), p.hashes[k]); i >= 0 && d.Identifiers[i].Claimed {
			claims = append(claims, i)
		}
	}
	if len(claims) == 0 || links == 1 {
		return len(claims) == 1, false
	}
	if how.yields && len(claims) == links {
		return true, false
	}
	for _, i := range claims {
		d.Identifiers[i].Claimed = false
	}
	return false, true
}

// insteadOfClaim is the profile that an event of a server is of which claims alone lead to the
// profile claiming, whose document is d, by a kind; and the kind it is found by. It is one that
// another identifier leads to for certain; nobody, where the event contradicts the claim; or
// else claiming itself. d is read and not changed.
func (m *Machine) insteadOfClaim(a *account, p *prepared, raw *[identifier.Kinds][]byte, owner *[identifier.Kinds]uint32, d *profile.Document, claiming uint32, by IdentityKind, joins uint32, how identifierRules) (uint32, IdentityKind, error) {
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
		if err := m.load(a, o, &m.other); err != nil {
			return 0, 0, err
		}
		if claim, _ := m.claimedLink(a, &m.other, p, owner, o, how); !claim {
			return o, k, nil
		}
	}
	if joins != profile.NoOrdinal {
		return joins, IdentityExternalID, nil
	}
	if o := owner[IdentityAnonymous]; o != profile.NoOrdinal && o != claiming {
		// A device says whose the event is where it is somebody's. Else it becomes the claiming
		// profile's, as another device of the person.
		o, _, err := m.withoutContradiction(a, raw, o, IdentityAnonymous, profile.NoOrdinal)
		if err != nil {
			return 0, 0, err
		}
		if o != profile.NoOrdinal { // m.other is its document
			claim, _ := m.claimedLink(a, &m.other, p, owner, o, how)
			if !claim && (contradicts || m.other.Known() > 0) {
				return o, IdentityAnonymous, nil
			}
		}
	}
	if contradicts {
		return profile.NoOrdinal, by, nil
	}
	return claiming, by, nil
}

// inDoubt reports whether a claim of a browser's key has kept an identifier from the person in
// d that a server gave, and the profile in o is not the one which has that for certain by now.
func (a *account) inDoubt(m *Machine, d, o *profile.Document) bool {
	return slices.ContainsFunc(d.Conflicts, func(c profile.Conflict) bool {
		if c.Reason != profile.ConflictClaimed {
			return false
		}
		h, ok := a.hasher.HashIdentifier(c.Kind, c.Value, &m.normal)
		if !ok {
			return true
		}
		if i := a.shown(m, d, c.Kind, h); i >= 0 && !d.Identifiers[i].Shared {
			return false // it came to the person after all
		}
		i := a.shown(m, o, c.Kind, h)
		return i < 0 || o.Identifiers[i].Shared || o.Identifiers[i].Claimed
	})
}
