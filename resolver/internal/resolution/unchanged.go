package resolution

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/prefetch"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// unchanged remembers what events said of profiles without changing their documents, the
// latest such event of each profile. Applications send the same user object with nearly each
// event; one that is remembered needs no document. It is in memory alone and starts empty:
// nothing of the state depends on it.
//
// Invariant: an entry of a profile stands for an event with which Resolve, on the present
// document, led to this profile and changed nothing. What Resolve depends on beside the
// document and the event is the owners of its identifiers, which are compared each time, the
// settings and the rules, which empty it, and the time, which must not be in the past of the
// profile.
type unchanged struct {
	seed  maphash.Seed
	how   identrules.Identifiers
	pages []*[unchangedRows]uint64 // fingerprints by ordinal, 0 for none; nil is a page of none
}

// unchangedRows is how many profiles a page has, which takes 8 KiB.
const unchangedRows = 1024

// fingerprint is a hash of an event's user object: identifiers, names, geo and attributes. r has
// just read the event. It is 0 for an event that is never remembered: the effect of events from
// browsers' keys, of SDKs' calls and of aliases depends on more than these. Two different user
// objects have the same hash with probability 2^-64; nobody can look for such a pair, for the
// seed is drawn when the process starts.
func (u *unchanged) fingerprint(r *eventlog.EventsReader, ev *eventlog.Event) uint64 {
	if ev.Public || ev.Call || ev.Redacted || ev.Refused || len(ev.PreviousID) > 0 {
		return 0
	}
	encoded, fields := r.User()
	var f uint64
	if len(ev.AnonymousID) == 0 {
		f = maphash.Bytes(u.seed, encoded)
	} else { // only logs of older rules have it without a call
		var both maphash.Hash
		both.SetSeed(u.seed)
		both.Write(binary.AppendUvarint(nil, uint64(len(encoded))))
		both.Write(encoded)
		both.Write(ev.AnonymousID)
		f = both.Sum64()
	}
	return max(f^uint64(fields)*0x9e3779b97f4a7c15, 1)
}

// prefetch brings the fingerprint of a profile near the processor.
func (u *unchanged) prefetch(ordinal uint32) {
	if i := ordinal / unchangedRows; int(i) < len(u.pages) && u.pages[i] != nil {
		prefetch.Line(&u.pages[i][ordinal%unchangedRows])
	}
}

// has reports whether an event with the fingerprint is remembered of a profile.
func (u *unchanged) has(ordinal uint32, fingerprint uint64) bool {
	i := ordinal / unchangedRows
	return fingerprint != 0 && int(i) < len(u.pages) && u.pages[i] != nil && u.pages[i][ordinal%unchangedRows] == fingerprint
}

func (u *unchanged) remember(ordinal uint32, fingerprint uint64, how identrules.Identifiers) {
	if u.how != how {
		u.clear()
		u.how = how
	}
	i := ordinal / unchangedRows
	for int(i) >= len(u.pages) {
		u.pages = append(u.pages, nil)
	}
	if u.pages[i] == nil {
		u.pages[i] = new([unchangedRows]uint64)
	}
	u.pages[i][ordinal%unchangedRows] = fingerprint
}

// forget is called when the document of a profile has changed or is gone.
func (u *unchanged) forget(ordinal uint32) {
	if i := ordinal / unchangedRows; int(i) < len(u.pages) && u.pages[i] != nil {
		u.pages[i][ordinal%unchangedRows] = 0
	}
}

func (u *unchanged) clear() { u.pages = nil }

// unchangedBy returns the profile that all identifiers of an event lead to, if an event that
// said the same of it is remembered and this one is not of its past; else
// [profile.NoOrdinal].
func (s *State) unchangedBy(p *Lookup, at int64, how identrules.Identifiers) uint32 {
	if p.fingerprint == 0 || s.unchanged.how != how {
		return profile.NoOrdinal
	}
	winner := profile.NoOrdinal
	for k, raw := range identrules.Of(&p.Event) {
		if len(raw) == 0 {
			continue
		}
		o := s.owner(p, identifier.Kind(k))
		if o == profile.NoOrdinal || winner != profile.NoOrdinal && o != winner {
			return profile.NoOrdinal
		}
		winner = o
	}
	if winner == profile.NoOrdinal || !s.unchanged.has(winner, p.fingerprint) || at < s.Headers.Get(winner).LastEvent {
		return profile.NoOrdinal
	}
	return winner
}
