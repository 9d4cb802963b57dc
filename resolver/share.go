package resolver

import "slices"

// A contact is made with the phone and the external id that its sender gives, also
// where another profile has the same: colleagues share a switchboard's number. Each
// value identifies one profile only (R2), the one that held it first. Others show it:
// it is in their documents, marked as shared, and conditions, messages and answers see
// it there. The identity map does not lead to them by it, erasing them does not keep it
// out, and it ceases to be shared when it comes to identify them after all: by an event
// when it has become free, or by a merge with the profile that it identifies.

// shown is where the document has a value of a kind, -1 if it has not.
func (a *account) shown(m *Machine, d *document, kind IdentityKind, h hash128) int {
	for i, id := range d.idents {
		if id.kind != kind {
			continue
		}
		if have, ok := a.hasher.identityHash(kind, id.value, &m.normal); ok && have == h {
			return i
		}
	}
	return -1
}

// share shows an identifier of another profile as the newest of its kind. It returns
// whether that changed what is shown; at the cap it does not.
func (a *account) share(m *Machine, d *document, kind IdentityKind, raw []byte, h hash128) bool {
	i := a.shown(m, d, kind, h)
	switch {
	case i >= 0:
		d.idents = slices.Delete(d.idents, i, i+1)
	case len(d.idents) >= a.Settings.IdentifierCap:
		return false
	}
	d.idents = append(d.idents, ident{kind: kind, value: raw, shared: true})
	return true
}

// hasShared reports whether the document shows an identifier of another profile.
func (d *document) hasShared() bool {
	return slices.ContainsFunc(d.idents, func(id ident) bool { return id.shared })
}

// dropShared takes out a shared identifier that is about to identify the profile.
func (a *account) dropShared(m *Machine, d *document, kind IdentityKind, h hash128) {
	if !d.hasShared() {
		return
	}
	if i := a.shown(m, d, kind, h); i >= 0 && d.idents[i].shared {
		d.idents = slices.Delete(d.idents, i, i+1)
	}
}

// haveInCommon reports whether two profiles show the same value of a kind, which one of
// them then shares.
func (a *account) haveInCommon(m *Machine, d, other *document, kind IdentityKind) bool {
	if !d.hasShared() && !other.hasShared() {
		return false // values belong to one profile each
	}
	for _, id := range other.idents {
		if id.kind != kind {
			continue
		}
		if h, ok := a.hasher.identityHash(kind, id.value, &m.normal); ok && a.shown(m, d, kind, h) >= 0 {
			return true
		}
	}
	return false
}

// mergeIdents appends to dst the identifiers of two profiles that become one: those of
// other, which are older, and then those of d. What both show is d's, and is shared no
// longer if it identifies other.
func (a *account) mergeIdents(m *Machine, dst []ident, d, other *document) []ident {
	if !d.hasShared() && !other.hasShared() {
		return append(append(dst, other.idents...), d.idents...)
	}
	for _, id := range other.idents {
		h, ok := a.hasher.identityHash(id.kind, id.value, &m.normal)
		if ok {
			if i := a.shown(m, d, id.kind, h); i >= 0 {
				d.idents[i].shared = d.idents[i].shared && id.shared
				continue
			}
		}
		dst = append(dst, id)
	}
	return append(dst, d.idents...)
}
