package resolution

import (
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// noIdentifier says why a value cannot be an identifier, nil if it may.
func (s *State) noIdentifier(p *Lookup, k identifier.Kind, raw []byte, how identrules.Identifiers) *refuse.Refusal {
	if p.blank[k] {
		return Empty(k)
	}
	if p.junk[k] || s.isPlaceholder(k, raw, p.hashes[k]) && (!how.Optional || k != identifier.Email) {
		return refuse.Invalid("user."+k.String(), "user.%s %q is a placeholder, not an identifier; leave it out when the person is not known", k, raw)
	}
	return nil
}

// keepsOut is [Host.Erased] of an identifier of a kind. The anonymous id of an erased person is the
// next one's on the device: it leads to nothing of the erased person.
func (s *State) keepsOut(k identifier.Kind, h identifier.Hash, how identrules.Identifiers) bool {
	return s.host.Erased(h) && (k != identifier.Anonymous || !how.Calls)
}
