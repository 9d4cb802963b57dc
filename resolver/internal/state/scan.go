package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Each calls fn for the entries of a table in order of their keys.
func (s *Store) Each(table byte, fn func(account uint64, rest, value []byte) error) error {
	it, err := s.DB.NewIter(&pebble.IterOptions{LowerBound: []byte{table}, UpperBound: []byte{table + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		if len(k) < KeyHead {
			err = fmt.Errorf("state: key %x is too short", k)
		} else {
			err = fn(binary.BigEndian.Uint64(k[1:]), k[KeyHead:], it.Value())
		}
		if err != nil {
			it.Close()
			return fmt.Errorf("state: key %x: %w", k, err)
		}
	}
	return it.Close()
}

// Scan calls fn for what Pebble has under the keys of a prefix, whose last byte is
// not 0xff, in order.
func (s *Store) Scan(prefix string, fn func(key, value []byte) error) error {
	last := len(prefix) - 1
	it, err := s.DB.NewIter(&pebble.IterOptions{LowerBound: []byte(prefix), UpperBound: append([]byte(prefix[:last]), prefix[last]+1)})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := fn(it.Key(), it.Value()); err != nil {
			return errors.Join(fmt.Errorf("state: key %x: %w", it.Key(), err), it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}
