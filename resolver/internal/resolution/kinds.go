package resolution

import (
	"strings"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// KindSet is a set of kinds of identifiers.
type KindSet uint8

func (s *KindSet) add(k identifier.Kind) { *s |= 1 << k }

// Has reports whether the set has a kind.
func (s KindSet) Has(k identifier.Kind) bool { return s&(1<<k) != 0 }

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

// Warning says what of an event's identifiers was not taken over, "" when all was.
func Warning(notAdded, dropped, erased KindSet) string {
	return warnings[notAdded&knownKinds][dropped&knownKinds][erased&knownKinds]
}
