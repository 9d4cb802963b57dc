package resolver

import "github.com/musterhq/muster/resolver/internal/identrules"

// noIdentifier says why a value identifies nobody, nil if it may.
func (m *Machine) noIdentifier(a *account, p *prepared, k IdentityKind, raw []byte, how identrules.Identifiers) *Refusal {
	if p.blank[k] {
		return emptyIdentifier(k)
	}
	if p.junk[k] || m.isPlaceholder(a, k, raw, p.hashes[k]) && (!how.Optional || k != IdentityEmail) {
		return invalid("user."+k.String(), "user.%s %q is a placeholder, not an identifier; leave it out when the person is not known", k, raw)
	}
	return nil
}

// leftOut are the identifiers of an event that are none, and those of erased persons.
func (m *Machine) leftOut(a *account, p *prepared, how identrules.Identifiers) (dropped, erased KindSet) {
	for k, raw := range identrules.Of(&p.ev) {
		switch k := IdentityKind(k); {
		case len(raw) == 0:
		case how.Drop && m.noIdentifier(a, p, k, raw, how) != nil:
			dropped.add(k)
		case how.DropErased && a.keepsOut(k, p.hashes[k], how):
			erased.add(k)
		}
	}
	return dropped, erased
}
