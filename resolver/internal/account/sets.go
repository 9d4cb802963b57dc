package account

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/musterhq/muster/resolver/internal/state"
)

// LoadSet reads a stored piece.
func (a *State) LoadSet(rest string, value []byte) error {
	if len(rest) < 3 || rest[len(rest)-3] != 0 {
		return fmt.Errorf("piece of a set has a bad name")
	}
	return a.Sets.Load(rest[:len(rest)-3], value)
}

// CheckSets finds profiles in sets that do not exist.
func (a *State) CheckSets() error {
	for name, s := range a.Sets.All() {
		if !IsRefusedRowsSet(name) && !s.Bits.IsEmpty() && s.Bits.Maximum() >= a.Profiles.Headers.Count {
			return fmt.Errorf("state: set %q of account %016x has profile %d, there are %d", name, a.Number, s.Bits.Maximum(), a.Profiles.Headers.Count)
		}
	}
	return nil
}

// setKey names a piece of a set in the store.
func setKey(account uint64, name string, piece uint16) string {
	return state.EntityKey(account, state.EntitySet, string(binary.BigEndian.AppendUint16(append([]byte(name), 0), piece)))
}

// DropSet removes a set and what is stored of it.
func (a *State) DropSet(store *state.Store, name string) {
	a.Sets.Drop(name, func(piece uint16) { store.PutEntity(setKey(a.Number, name, piece), nil) })
}

// StoreSets hands the pieces changed since the last checkpoint to the store.
func (a *State) StoreSets(store *state.Store) {
	a.Sets.Store(func(name string, piece uint16, value []byte) { store.PutEntity(setKey(a.Number, name, piece), value) })
}

// refusedRowsPrefix begins the names of the sets of refused rows: one for each file of
// which rows were refused. The members are numbers of rows, not ordinals.
const refusedRowsPrefix = "import/refused/"

func RefusedRowsName(file [32]byte) string { return refusedRowsPrefix + hex.EncodeToString(file[:]) }

// IsRefusedRowsSet reports whether the members of a set are rows of a file.
func IsRefusedRowsSet(name string) bool { return strings.HasPrefix(name, refusedRowsPrefix) }
