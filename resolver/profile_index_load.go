package resolver

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// makeProfileIndex makes the index of profiles from the documents of a state that was
// just loaded and has none, or one of another version: builds from before there was an
// index do not keep it up to date.
func (m *Machine) makeProfileIndex(disk *disk) error {
	s := m.store
	if err := s.db.DeleteRange([]byte{tableProfileIndex}, []byte{tableProfileIndex + 1}, pebble.NoSync); err != nil {
		return fmt.Errorf("make the index of profiles: %w", err)
	}
	w := batchWriter{db: s.db, batch: s.db.NewBatch(), pace: newPace(nil, 0), disk: disk}
	var keys indexKeys
	err := s.each(tableDocument, func(number uint64, rest, value []byte) error {
		if m.accounts[number] == nil || len(rest) != 4 {
			return errors.New("document of an unknown account")
		}
		if err := keys.set(number, binary.BigEndian.Uint32(rest), value); err != nil {
			return err
		}
		for i := range keys.ends {
			w.set(keys.at(i), []byte{})
		}
		return w.err
	})
	if err = errors.Join(err, w.finish()); err != nil {
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
	prefix := accountKey(nil, tableProfileIndex, a.number)
	it, err := m.store.indexFrom(prefix, after(prefix))
	if err != nil {
		return err
	}
	var have indexSum
	for it.next() {
		have.add(a, it.key)
	}
	if err := it.close(); err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("state: the index of profiles of account %016x has %d keys that are not those of its documents, which have %d", a.number, have.keys, want.keys)
	}
	return nil
}
