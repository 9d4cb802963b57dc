package resolver

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/resolver/internal/state"
)

// makeProfileIndex makes the index of profiles from the documents of a state that was
// just loaded and has none, or one of another version: builds from before there was an
// index do not keep it up to date.
func (m *Machine) makeProfileIndex(disk *state.Disk) error {
	s := m.store
	if err := s.DB.DeleteRange([]byte{state.TableProfileIndex}, []byte{state.TableProfileIndex + 1}, pebble.NoSync); err != nil {
		return fmt.Errorf("make the index of profiles: %w", err)
	}
	w := checkpoint.NewBatchWriter(s.DB, nil, 0, disk)
	var keys indexKeys
	err := s.Each(state.TableDocument, func(number uint64, rest, value []byte) error {
		if m.accounts[number] == nil || len(rest) != 4 {
			return errors.New("document of an unknown account")
		}
		if err := keys.set(number, binary.BigEndian.Uint32(rest), value); err != nil {
			return err
		}
		for i := range keys.ends {
			w.Set(keys.at(i), []byte{})
		}
		return w.Err()
	})
	if err = errors.Join(err, w.Finish()); err != nil {
		return fmt.Errorf("make the index of profiles: %w", err)
	}
	return nil
}

// indexSum tells sets of keys apart, whatever the order in which they are added.
type indexSum struct {
	keys   uint64
	lo, hi uint64
}

func (x *indexSum) add(a *account, key []byte) {
	h := a.hasher.Sum(key)
	x.keys++
	x.lo += binary.LittleEndian.Uint64(h[:])
	x.hi += binary.LittleEndian.Uint64(h[8:])
}

// checkProfileIndex compares the index of an account with what its documents say.
func (m *Machine) checkProfileIndex(a *account, want indexSum) error {
	prefix := state.AccountKey(nil, state.TableProfileIndex, a.number)
	it, err := m.store.IndexFrom(prefix, state.After(prefix))
	if err != nil {
		return err
	}
	var have indexSum
	for it.Next() {
		have.add(a, it.Key)
	}
	if err := it.Close(); err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("state: the index of profiles of account %016x has %d keys that are not those of its documents, which have %d", a.number, have.keys, want.keys)
	}
	return nil
}
