package resolution

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment/engine"
)

// What calls of SDKs say of a person is as of the time of the call. Calls arrive in any
// order: SDKs send several requests at once, and again what has failed. So each name, member
// of geo and attribute has the time of the call that said it, and the latest call stands,
// whichever came last. An object is one value. What others than SDKs say of such a person
// counts as of then.

// sayTraits sets what a call says of the person in d.
func (s *State) sayTraits(d *profile.Document, ev *eventlog.Event, at int64) (changed bool, fields engine.Fields, refusal *refuse.Refusal, err error) {
	for _, f := range [...]struct {
		dst   *[]byte
		src   []byte
		trait profile.TraitKind
		field engine.Fields
	}{{&d.FirstName, ev.FirstName, profile.TraitFirstName, engine.FieldFirstName}, {&d.LastName, ev.LastName, profile.TraitLastName, engine.FieldLastName}} {
		if len(f.src) == 0 {
			continue
		}
		stands, moved := d.Times.Say(profile.TraitKey(f.trait, nil), at, len(*f.dst) > 0)
		changed = changed || moved
		if stands && string(*f.dst) != string(f.src) {
			*f.dst = f.src
			changed = true
			fields |= f.field
		}
	}
	for _, f := range [...]struct {
		dst   *[]byte
		src   []byte
		name  string
		trait profile.TraitKind
		field engine.Fields
	}{{&d.Geo, ev.Geo, "address", profile.TraitGeo, engine.FieldGeo}, {&d.Attributes, ev.Attributes, "traits", profile.TraitAttribute, engine.FieldAttributes}} {
		if len(f.src) == 0 {
			continue
		}
		now, differs, err := s.merger.Choose(*f.dst, f.src, func(key []byte, has, _, said bool) bool {
			if !said {
				return false
			}
			stands, moved := d.Times.Say(profile.TraitKey(f.trait, key), at, has)
			changed = changed || moved
			return stands
		})
		if err != nil {
			return false, 0, nil, err
		}
		if differs {
			if profile.TooLarge(now) {
				return false, 0, refuse.AtLimit(f.name, "%s would grow past %d bytes on this profile; remove keys by sending null for them", f.name, profile.MaxObjectBytes), nil
			}
			*f.dst = now
			changed = true
			fields |= f.field
		}
	}
	d.Times.Trim()
	return changed, fields, nil, nil
}

// saidIdentifier notes when an identifier became the one that is shown of its kind, by a call
// or otherwise. It reports whether that changed anything.
func (s *State) saidIdentifier(d *profile.Document, k identifier.Kind, at int64, call bool) (moved bool) {
	if k == identifier.Anonymous || !call && !d.Times.Any() {
		return false
	}
	_, moved = d.Times.Say(profile.IdentifierTrait(k), at, true)
	d.Times.Trim()
	return moved
}

// mergeTraits merges an object of two profiles that become one, geo or the attributes: the
// latest call stands, and what d has where the times are not known.
func (s *State) mergeTraits(d, o *profile.Document, mine, theirs []byte, trait profile.TraitKind) (merged []byte, err error) {
	if !d.Times.Any() && !o.Times.Any() {
		merged, _, err = s.merger.Merge(mine, theirs, profile.Fill)
		return merged, err
	}
	merged, _, err = s.merger.Choose(mine, theirs, func(key []byte, has, other, _ bool) bool {
		return d.Times.Later(&o.Times, profile.TraitKey(trait, key), has, other)
	})
	return merged, err
}
