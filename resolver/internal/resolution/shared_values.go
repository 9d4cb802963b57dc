package resolution

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// A contact is made with the phone and the external id that its sender gives, also
// where another profile has the same: colleagues share a switchboard's number. Each
// value identifies one profile only (R2), the one that held it first. Others show it:
// it is in their documents, marked as shared, and conditions, messages and answers see
// it there. The identity map does not lead to them by it, erasing them does not keep it
// out, and it ceases to be shared when it comes to identify them after all: by an event
// when it has become free, or by a merge with the profile that it identifies.

// shown is where the document has a value of a kind, -1 if it has not.
func (s *State) shown(d *profile.Document, kind identifier.Kind, h identifier.Hash) int {
	return shown(s.Hasher, d, kind, h, &s.normal)
}

func shown(hasher identifier.Hasher, d *profile.Document, kind identifier.Kind, h identifier.Hash, normal *[]byte) int {
	for i, id := range d.Identifiers {
		if id.Kind != kind {
			continue
		}
		if have, ok := hasher.HashIdentifier(kind, id.Value, normal); ok && have == h {
			return i
		}
	}
	return -1
}

// Shows reports whether a document has a value of a kind.
func (s *State) Shows(d *profile.Document, kind identifier.Kind, h identifier.Hash) bool {
	return s.shown(d, kind, h) >= 0
}

// ProfileShows is Shows of the profile that an ordinal leads to. It uses no scratch memory.
func (s *State) ProfileShows(ordinal uint32, kind identifier.Kind, h identifier.Hash) (bool, error) {
	b, err := s.store.Peek(s.account, s.Root(ordinal))
	if err != nil {
		return false, err
	}
	var d profile.Document
	if err := d.Decode(b); err != nil {
		return false, err
	}
	var normal []byte
	return shown(s.Hasher, &d, kind, h, &normal) >= 0, nil
}

// share shows an identifier of another profile as the newest of its kind. It returns
// whether that changed what is shown; at the cap it does not.
func (s *State) share(d *profile.Document, kind identifier.Kind, raw []byte, h identifier.Hash) bool {
	i := s.shown(d, kind, h)
	switch {
	case i >= 0:
		d.Identifiers = slices.Delete(d.Identifiers, i, i+1)
	case d.Known() >= s.identifierCap:
		return false
	}
	d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: kind, Value: raw, Shared: true})
	return true
}

// dropShared takes out a shared identifier that is about to identify the profile.
func (s *State) dropShared(d *profile.Document, kind identifier.Kind, h identifier.Hash) {
	if !d.HasShared() {
		return
	}
	if i := s.shown(d, kind, h); i >= 0 && d.Identifiers[i].Shared {
		d.Identifiers = slices.Delete(d.Identifiers, i, i+1)
	}
}

// haveInCommon reports whether two profiles show the same value of a kind, which one of
// them then shares.
func (s *State) haveInCommon(d, other *profile.Document, kind identifier.Kind) bool {
	if !d.HasShared() && !other.HasShared() {
		return false // values belong to one profile each
	}
	for _, id := range other.Identifiers {
		if id.Kind != kind {
			continue
		}
		if h, ok := s.Hasher.HashIdentifier(kind, id.Value, &s.normal); ok && s.shown(d, kind, h) >= 0 {
			return true
		}
	}
	return false
}

// mergeIdents appends to dst the identifiers of two profiles that become one: those of
// other, which are older, and then those of d. What both show is d's, and is shared no
// longer if it identifies other.
func (s *State) mergeIdents(dst []profile.Identifier, d, other *profile.Document) []profile.Identifier {
	if !d.HasShared() && !other.HasShared() {
		return append(append(dst, other.Identifiers...), d.Identifiers...)
	}
	for _, id := range other.Identifiers {
		h, ok := s.Hasher.HashIdentifier(id.Kind, id.Value, &s.normal)
		if ok {
			if i := s.shown(d, id.Kind, h); i >= 0 {
				d.Identifiers[i].Shared = d.Identifiers[i].Shared && id.Shared
				continue
			}
		}
		dst = append(dst, id)
	}
	return append(dst, d.Identifiers...)
}
