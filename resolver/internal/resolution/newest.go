package resolution

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/reach"
)

// renew makes a known identifier the newest of its kind, as given now; what is shared
// stays so. It returns whether that changed anything.
func (s *State) renew(d *profile.Document, kind identifier.Kind, raw []byte, h identifier.Hash) bool {
	newest := -1
	at := -1
	for i := len(d.Identifiers) - 1; i >= 0; i-- {
		id := d.Identifiers[i]
		if id.Kind != kind {
			continue
		}
		if newest < 0 {
			newest = i
			if string(id.Value) == string(raw) {
				return false
			}
		}
		if have, _ := s.Hasher.HashIdentifier(kind, id.Value, &s.normal); have == h {
			at = i
			break
		}
	}
	if at < 0 {
		return false
	}
	id := d.Identifiers[at]
	id.Value = raw
	copy(d.Identifiers[at:], d.Identifiers[at+1:])
	d.Identifiers[len(d.Identifiers)-1] = id
	return true
}

// keepsAddress reports whether an identifier is another e-mail or phone than the one that
// a profile has subscribed, which stays its newest.
func (s *State) keepsAddress(d *profile.Document, k identifier.Kind, h identifier.Hash, how identrules.Identifiers) bool {
	if !how.KeepAddress || !subscribedAddress(d, k) {
		return false
	}
	have, _ := s.Hasher.HashIdentifier(k, d.Newest(k), &s.normal)
	return have != h
}

// subscribedAddress reports whether a profile has an e-mail or phone and is subscribed to a
// channel that goes there.
func subscribedAddress(d *profile.Document, k identifier.Kind) bool {
	return d.Has(k) && slices.ContainsFunc(reach.AddressedBy[k], d.Subscribed)
}

// Attach makes an identifier without an owner the newest of a profile, whose document is d.
func (s *State) Attach(ordinal uint32, d *profile.Document, k identifier.Kind, value []byte, h identifier.Hash) {
	s.Identifiers.Set(h, ordinal)
	s.dropShared(d, k, h)
	d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: k, Value: value})
	s.saidIdentifier(d, k, s.AtMs, false)
	if k == identifier.Email {
		s.addCaseFold(value, h)
	}
}

// Renew makes an identifier that a document has the newest of its kind, as given now, and
// more than a claim. It returns whether the identifier was another before.
func (s *State) Renew(d *profile.Document, k identifier.Kind, value []byte, h identifier.Hash) bool {
	s.confirm(d, k, h)
	if !s.renew(d, k, value, h) {
		return false
	}
	s.saidIdentifier(d, k, s.AtMs, false)
	return true
}

// Placeholder refuses an identifier of a command that is a placeholder, nil if it is none.
func (s *State) Placeholder(k identifier.Kind, value []byte, h identifier.Hash) *refuse.Refusal {
	if !s.isPlaceholder(k, value, h) {
		return nil
	}
	return refuse.Invalid(k.String(), "%s %q is a placeholder, not an identifier; leave it out when the person is not known", k, value)
}
