package resolver

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
func (a *account) shown(m *Machine, d *profile.Document, kind IdentityKind, h identifier.Hash) int {
	for i, id := range d.Identifiers {
		if id.Kind != kind {
			continue
		}
		if have, ok := a.hasher.HashIdentifier(kind, id.Value, &m.normal); ok && have == h {
			return i
		}
	}
	return -1
}

// share shows an identifier of another profile as the newest of its kind. It returns
// whether that changed what is shown; at the cap it does not.
func (a *account) share(m *Machine, d *profile.Document, kind IdentityKind, raw []byte, h identifier.Hash) bool {
	i := a.shown(m, d, kind, h)
	switch {
	case i >= 0:
		d.Identifiers = slices.Delete(d.Identifiers, i, i+1)
	case d.Known() >= a.Settings.IdentifierCap:
		return false
	}
	d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: kind, Value: raw, Shared: true})
	return true
}

// dropShared takes out a shared identifier that is about to identify the profile.
func (a *account) dropShared(m *Machine, d *profile.Document, kind IdentityKind, h identifier.Hash) {
	if !d.HasShared() {
		return
	}
	if i := a.shown(m, d, kind, h); i >= 0 && d.Identifiers[i].Shared {
		d.Identifiers = slices.Delete(d.Identifiers, i, i+1)
	}
}

// haveInCommon reports whether two profiles show the same value of a kind, which one of
// them then shares.
func (a *account) haveInCommon(m *Machine, d, other *profile.Document, kind IdentityKind) bool {
	if !d.HasShared() && !other.HasShared() {
		return false // values belong to one profile each
	}
	for _, id := range other.Identifiers {
		if id.Kind != kind {
			continue
		}
		if h, ok := a.hasher.HashIdentifier(kind, id.Value, &m.normal); ok && a.shown(m, d, kind, h) >= 0 {
			return true
		}
	}
	return false
}

// mergeIdents appends to dst the identifiers of two profiles that become one: those of
// other, which are older, and then those of d. What both show is d's, and is shared no
// longer if it identifies other.
func (a *account) mergeIdents(m *Machine, dst []profile.Identifier, d, other *profile.Document) []profile.Identifier {
	if !d.HasShared() && !other.HasShared() {
		return append(append(dst, other.Identifiers...), d.Identifiers...)
	}
	for _, id := range other.Identifiers {
		h, ok := a.hasher.HashIdentifier(id.Kind, id.Value, &m.normal)
		if ok {
			if i := a.shown(m, d, id.Kind, h); i >= 0 {
				d.Identifiers[i].Shared = d.Identifiers[i].Shared && id.Shared
				continue
			}
		}
		dst = append(dst, id)
	}
	return append(dst, d.Identifiers...)
}
