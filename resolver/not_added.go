package resolver

import (
	"strings"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// KindSet is a set of kinds of identifiers.
type KindSet uint8

func (s *KindSet) add(k IdentityKind) { *s |= 1 << k }

// Has reports whether the set has a kind.
func (s KindSet) Has(k IdentityKind) bool { return s&(1<<k) != 0 }

// knownKinds is the set of the kinds that identify a person.
const knownKinds = KindSet(1<<identifier.Identifying - 1)

// warnings are the texts for all sets of kinds that were not added, that are no
// identifiers, and that are of erased persons, made once: answers to events allocate
// nothing. Of anonymous ids they do not speak: no caller can do anything about those.
var warnings = func() (texts [knownKinds + 1][knownKinds + 1][knownKinds + 1]string) {
	names := func(s int) string {
		var list []string
		for k := range identifier.Identifying {
			if KindSet(s).Has(k) {
				list = append(list, "user."+k.String())
			}
		}
		return strings.Join(list, ", ")
	}
	for full := range texts {
		for dropped := range texts[full] {
			for erased := range texts[full][dropped] {
				var parts []string
				if full != 0 {
					parts = append(parts, names(full)+" not added: the profile may have no more identifiers; see its conflicts")
				}
				if dropped != 0 {
					parts = append(parts, names(dropped)+" left out: a placeholder or blank is no identifier; send nothing when it is not known")
				}
				if erased != 0 {
					parts = append(parts, names(erased)+" left out: it identified a person who was erased, and may not be stored again")
				}
				texts[full][dropped][erased] = strings.Join(parts, "; ")
			}
		}
	}
	return texts
}()

// foreignKey is the warning of a key that was used for somebody else's event.
const foreignKey = "not recorded: the idempotency_key was used before, for the event of another person, and this answer repeats the first one; give each event a key of its own"

// Warning says what of a stored event was not taken over, "" when all was.
func (o *EventOutcome) Warning() string {
	if o.Foreign {
		return foreignKey
	}
	return warnings[o.NotAdded&knownKinds][o.Dropped&knownKinds][o.Erased&knownKinds]
}

// foreign reports whether a repeated event has identifiers, and none of them is that of
// the profile which the first event was recorded against. Identifiers of a profile stay
// its own, so a repeat of the same event has one.
func (m *Machine) foreign(a *account, p *prepared, ordinal uint32) bool {
	if a.headers.Get(ordinal).Flags&flagErased != 0 {
		return false
	}
	any := false
	for k := range identifier.Kinds {
		raw := identrules.Of(&p.ev)[k]
		if len(raw) == 0 || p.blank[k] || p.junk[k] {
			continue
		}
		if a.ids.Owner(p.hashes[k]) == ordinal {
			return false
		}
		any = true
	}
	return any
}

// notAddedBefore tells of a repeated event which of its identifiers were beyond the
// cap: those that are not the profile's and stand among its conflicts. It forgets what
// was pushed out of the conflicts, or became the profile's, since.
func (m *Machine) notAddedBefore(a *account, p *prepared, ordinal uint32) (s KindSet, err error) {
	raw := identrules.Of(&p.ev)
	loaded := false
	for k := range identifier.Kinds {
		if len(raw[k]) == 0 || p.blank[k] {
			continue
		}
		o := p.owner[k]
		if p.version != a.ids.Version {
			o = a.ids.Owner(p.hashes[k])
		}
		if o == ordinal || a.headers.Get(ordinal).Flags&flagErased != 0 {
			continue
		}
		if !loaded {
			if err := m.load(a, ordinal, &m.other); err != nil {
				return 0, err
			}
			loaded = true
		}
		for _, c := range m.other.Conflicts {
			if c.Kind != k || c.Reason != profile.ConflictTooMany {
				continue
			}
			if h, _ := a.hasher.HashIdentifier(k, c.Value, &m.normal); h == p.hashes[k] {
				s.add(k)
			}
		}
	}
	return s, nil
}
