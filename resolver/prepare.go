package resolver

import (
	"bytes"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/hashtable"
)

// windowEvents is how many events are prepared together.
const windowEvents = 32

// prepared is an event whose identifiers are hashed and looked up.
//
// Looking up the identifiers of many events one after the other, before any is
// applied, lets the processor wait for several cache misses at once; applying
// them then finds everything near. On a million profiles this nearly halves
// the time of an event.
type prepared struct {
	ev     eventlog.Event
	hashes [identityKinds]hash128
	blank  [identityKinds]bool // nothing is left of the value
	junk   [identityKinds]bool // what is left is a placeholder
	key    hash128
	// owner holds the profiles found at the version of the identity map;
	// noOrdinal where there is none.
	owner   [identityKinds]uint32
	version uint64
}

// hashIdentifiers hashes the identifiers of the event in p.
func (m *Machine) hashIdentifiers(a *account, p *prepared) {
	for k, raw := range [identityKinds][]byte{p.ev.Email, p.ev.ExternalID, p.ev.Phone} {
		p.owner[k], p.blank[k], p.junk[k] = noOrdinal, false, false
		if len(raw) > 0 {
			h, ok := a.hasher.identityHash(IdentityKind(k), raw, &m.normal)
			p.hashes[k], p.blank[k] = h, !ok
			if ok && IdentityKind(k) == IdentityPhone {
				p.junk[k] = a.placeholders.has(bytes.TrimPrefix(m.normal[1:], []byte("+")))
			}
		}
	}
}

// lookUp prepares the one event in p, whose identifiers may have changed since.
func (m *Machine) lookUp(a *account, p *prepared) {
	m.hashIdentifiers(a, p)
	p.version = a.ids.version
	for k, raw := range [identityKinds][]byte{p.ev.Email, p.ev.ExternalID, p.ev.Phone} {
		if len(raw) > 0 && !p.blank[k] {
			p.owner[k] = a.ids.owner(p.hashes[k])
		}
	}
}

// prepare reads the next window of events and returns how many there are.
func (m *Machine) prepare(a *account, r *eventlog.EventsReader) int {
	n := 0
	for n < windowEvents && r.Next(&m.window[n].ev) {
		p := &m.window[n]
		m.hashIdentifiers(a, p)
		if len(p.ev.IdempotencyKey) > 0 {
			p.key = a.hasher.idempotencyHash(p.ev.IdempotencyKey, &m.normal)
		}
		n++
	}
	for i := range m.window[:n] {
		p := &m.window[i]
		p.version = a.ids.version
		for k, raw := range [identityKinds][]byte{p.ev.Email, p.ev.ExternalID, p.ev.Phone} {
			if len(raw) > 0 && !p.blank[k] {
				p.owner[k] = a.ids.owner(p.hashes[k])
			}
		}
	}
	for i := range m.window[:n] {
		p := &m.window[i]
		for _, o := range p.owner {
			if o != noOrdinal {
				m.touched += m.store.touch(a, o) + byte(a.headers.get(o).winner) + a.engine.Warm(o, p.ev.Type)
				break
			}
		}
		if len(p.ev.IdempotencyKey) > 0 {
			m.touched += m.keys.recent.table.Touch((*hashtable.Key)(&p.key))
		}
	}
	return n
}
