package emaildir

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// heldKey names what an account holds in the store.
func heldKey(account uint64, n Name) string {
	return state.EntityKey(account, state.EntityReservation, string(n[:]))
}

// Owner is the account of this partition that holds a name.
func (s *State) Owner(n Name) (account uint64, ok bool) {
	account, ok = s.held[n]
	return account, ok
}

// Held are the names that this partition's accounts hold, with the accounts.
func (s *State) Held() iter.Seq2[Name, uint64] { return maps.All(s.held) }

// Hold gives an account those of the names that no account of the partition holds. With
// a grant it holds them under the id under which the directory has them.
func (s *State) Hold(account uint64, names []Name, g *Grant) {
	under := []byte{}
	if g != nil {
		under = g.ID[:]
	}
	for _, n := range names {
		if _, ok := s.held[n]; !ok {
			s.held[n] = account
			s.store.PutEntity(heldKey(account, n), under)
		}
	}
}

// LetGo gives up those of the names that the account holds. Where there is a directory,
// their release is queued.
func (s *State) LetGo(account uint64, names []Name) {
	for _, n := range names {
		if s.held[n] != account {
			continue
		}
		if id, ok := s.reservedUnder(account, n); ok {
			s.queueRelease(account, n, id)
		}
		delete(s.held, n)
		s.store.PutEntity(heldKey(account, n), nil)
	}
}

// Unconfirmed is how many reservations are neither confirmed nor released.
func (s *State) Unconfirmed() int { return len(s.reserved) }

// Unreleased is how many names wait until the directory knows that they are free.
func (s *State) Unreleased() int { return len(s.releases) }

// HeldUnder are those of the names that the account holds under the id.
func (s *State) HeldUnder(account uint64, id ReservationID, names []Name) (held []Name) {
	for _, n := range names {
		if owner, ok := s.held[n]; !ok || owner != account {
			continue
		}
		if have, ok := s.reservedUnder(account, n); ok && have == id {
			held = append(held, n)
		}
	}
	return held
}

// reservedUnder is the id under which an account holds a name; not ok is one that
// it holds where there is no directory.
func (s *State) reservedUnder(account uint64, n Name) (id ReservationID, ok bool) {
	b, err := s.store.Entity(heldKey(account, n))
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if len(b) != len(id) {
		return id, false
	}
	return ReservationID(b), true
}

// queueRelease queues the message to the directory that a name is free again.
func (s *State) queueRelease(account uint64, n Name, id ReservationID) {
	s.releases[releaseKey{n, id}] = account
	s.store.PutPayload(directoryKey(keyQueued, n[:], id[:]), binary.BigEndian.AppendUint64(nil, account))
}

// ReleasesWaiting are names to be released, as many as one record takes.
func (s *State) ReleasesWaiting() (out []Names) {
	keys := slices.SortedFunc(maps.Keys(s.releases), releaseKey.compare)
	for _, k := range keys[:min(len(keys), MaxItems)] {
		out = append(out, Names{Account: s.releases[k], ID: k.id, Names: []Name{k.name}})
	}
	return out
}

func (s *State) forgetReleases(tx *feature.Tx, c Released) *refuse.Refusal {
	if r := checkItems(c.Items); r != nil {
		return r
	}
	for _, x := range c.Items {
		for _, n := range x.Names {
			k := releaseKey{n, x.ID}
			if _, ok := s.releases[k]; ok {
				delete(s.releases, k)
				s.store.PutPayload(directoryKey(keyQueued, n[:], x.ID[:]), nil)
			}
		}
	}
	return nil
}

// closeGrants says what the account holds for good: a grant that ends no later
// than now is not taken any more.
func (s *State) closeGrants(tx *feature.Tx, c Reconcile) *refuse.Refusal {
	if r := checkItems(c.Items); r != nil {
		return r
	}
	out := Reconciled{Held: make([][]Name, len(c.Items))}
	for i, x := range c.Items {
		if x.UntilMs > tx.AtMs {
			return refuse.Invalid("items", "items[%d] is reserved for another %d ms", i, x.UntilMs-tx.AtMs)
		}
		out.Held[i] = s.HeldUnder(tx.Account, x.ID, x.Names)
	}
	tx.Reply = out
	return nil
}

// Without are the names that are not among the others.
func Without(names, others []Name) (rest []Name) {
	for _, n := range names {
		if !slices.Contains(others, n) {
			rest = append(rest, n)
		}
	}
	return rest
}
