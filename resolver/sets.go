package resolver

import (
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/reach"
)

// set finds a named set of the account or makes it.
func (a *account) set(name string) *profile.OrdinalSet { return a.sets.Set(name) }

// members reads a named set of the account, which need not exist. It must not be changed.
func (a *account) members(name string) *roaring.Bitmap { return a.sets.Members(name) }

// setKey names a piece of a set in the store.
func setKey(account uint64, name string, piece uint16) string {
	return state.EntityKey(account, state.EntitySet, string(binary.BigEndian.AppendUint16(append([]byte(name), 0), piece)))
}

// dropSet removes a set and what is stored of it.
func (m *Machine) dropSet(a *account, name string) {
	a.sets.Drop(name, func(piece uint16) { m.store.PutEntity(setKey(a.number, name, piece), nil) })
}

// storeSets hands the pieces changed since the last checkpoint to the store.
func (m *Machine) storeSets(a *account) {
	a.sets.Store(func(name string, piece uint16, value []byte) { m.store.PutEntity(setKey(a.number, name, piece), value) })
}

// loadSet reads a stored piece.
func (a *account) loadSet(rest string, value []byte) error {
	if len(rest) < 3 || rest[len(rest)-3] != 0 {
		return fmt.Errorf("piece of a set has a bad name")
	}
	return a.sets.Load(rest[:len(rest)-3], value)
}

// checkSets finds profiles in sets that do not exist.
func (a *account) checkSets() error {
	for name, s := range a.sets.All() {
		if !isRefusedRowsSet(name) && !s.Bits.IsEmpty() && s.Bits.Maximum() >= a.profiles.Headers.Count {
			return fmt.Errorf("state: set %q of account %016x has profile %d, there are %d", name, a.number, s.Bits.Maximum(), a.profiles.Headers.Count)
		}
	}
	return nil
}

// hashSets is the sets' part of the state's hash, without those of who can be reached,
// which follow from the documents.
func (a *account) hashSets(put func([]byte)) { a.sets.Hash(reach.IsSet, put) }
