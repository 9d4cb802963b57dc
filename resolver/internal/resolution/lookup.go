package resolution

import (
	"bytes"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// WindowEvents is how many events are looked up together.
const WindowEvents = 32

// Lookup is an event whose identifiers are hashed and looked up.
//
// The events of a window go through each step together: hashing their identifiers, looking
// these up, reading what the profiles found need. The memory that a step needs is prefetched
// in the one before, so that the processor waits for many cache misses at once.
type Lookup struct {
	Event eventlog.Event
	Key   identifier.Hash // of the idempotency key, if there is one

	hashes [identifier.Kinds]identifier.Hash
	blank  [identifier.Kinds]bool // nothing is left of the value
	junk   [identifier.Kinds]bool // what is left is a placeholder
	// previous are the hashes of the previous id, previousBlank says that nothing is left
	// of it.
	previous      identifier.Previous
	previousBlank bool
	// owner holds the profiles found at the version of the identifier map;
	// profile.NoOrdinal where there is none.
	owner   [identifier.Kinds]uint32
	version uint64
	// fingerprint is of what the event says of its user, see unchanged.fingerprint; 0 for none.
	fingerprint uint64
}

// Hash is that of an identifier that the event has.
func (p *Lookup) Hash(k identifier.Kind) identifier.Hash { return p.hashes[k] }

// hashIdentifiers hashes the identifiers of the event in p.
func (s *State) hashIdentifiers(p *Lookup) {
	for k, raw := range identrules.Of(&p.Event) {
		p.owner[k], p.blank[k], p.junk[k] = profile.NoOrdinal, false, false
		if len(raw) > 0 {
			h, ok := s.Hasher.HashIdentifier(identifier.Kind(k), raw, &s.normal)
			p.hashes[k], p.blank[k] = h, !ok
			s.Identifiers.PrefetchPage(h)
			if ok && identifier.Kind(k) == identifier.Phone {
				p.junk[k] = s.placeholders.Has(bytes.TrimPrefix(s.normal[1:], []byte("+")))
			}
		}
	}
	if len(p.Event.PreviousID) > 0 {
		previous, ok := s.Hasher.HashPrevious(p.Event.PreviousID, &s.normal)
		p.previous, p.previousBlank = previous, !ok
	}
}

// prefetchOwners brings near what findOwners reads.
func (s *State) prefetchOwners(p *Lookup) {
	for k, raw := range identrules.Of(&p.Event) {
		if len(raw) > 0 && !p.blank[k] {
			s.Identifiers.Prefetch(p.hashes[k])
		}
	}
}

// findOwners looks the hashed identifiers up.
func (s *State) findOwners(p *Lookup) {
	p.version = s.Identifiers.Version
	for k, raw := range identrules.Of(&p.Event) {
		if len(raw) > 0 && !p.blank[k] {
			p.owner[k] = s.Identifiers.Owner(p.hashes[k])
		}
	}
}

// owner is [State.Owner] of an identifier that was looked up.
func (s *State) owner(p *Lookup, k identifier.Kind) uint32 {
	if p.version != s.Identifiers.Version {
		return s.Owner(p.hashes[k])
	}
	if p.owner[k] == profile.NoOrdinal {
		return profile.NoOrdinal
	}
	return s.Root(p.owner[k])
}

// LookUp looks up a single event. The result is valid until the next call.
func (s *State) LookUp(ev eventlog.Event) *Lookup {
	p := &s.single
	p.Event, p.fingerprint = ev, 0
	s.hashIdentifiers(p)
	s.findOwners(p)
	return p
}

// ReadWindow reads and looks up the next events, which are valid until the next call.
// It returns fewer than [WindowEvents] only at the end.
func (s *State) ReadWindow(r *eventlog.EventsReader) []Lookup {
	n := 0
	for n < WindowEvents && r.Next(&s.window[n].Event) {
		p := &s.window[n]
		s.hashIdentifiers(p)
		p.fingerprint = s.unchanged.fingerprint(r, &p.Event)
		if len(p.Event.IdempotencyKey) > 0 {
			p.Key = identrules.KeyHash(s.Hasher, &p.Event, &s.normal)
		}
		n++
	}
	window := s.window[:n]
	for i := range window {
		s.prefetchOwners(&window[i])
	}
	for i := range window {
		s.findOwners(&window[i])
	}
	return window
}

// Prefetch brings the first profile that an event's identifiers lead to near the processor, but
// for its document, and returns it; profile.NoOrdinal for none.
func (s *State) Prefetch(p *Lookup) uint32 {
	for _, o := range p.owner {
		if o != profile.NoOrdinal {
			s.Headers.Prefetch(o)
			s.unchanged.prefetch(o)
			return o
		}
	}
	return profile.NoOrdinal
}

// PrefetchDocument brings a profile's document near the processor, unless the event is likely to
// change nothing of it and it is not needed otherwise.
func (s *State) PrefetchDocument(p *Lookup, ordinal uint32, needed bool) {
	if needed || !s.unchanged.has(ordinal, p.fingerprint) {
		s.store.Prefetch(s.account, ordinal)
	}
}
