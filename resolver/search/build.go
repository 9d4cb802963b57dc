package search

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Build makes the index of profiles from the documents of a state that was just loaded and
// has none, or one of another version: builds from before there was an index do not keep
// it up to date. known reports whether there is an account with a number.
func Build(s *state.Store, disk *state.Disk, known func(account uint64) bool) error {
	if err := s.DB.DeleteRange([]byte{state.TableProfileIndex}, []byte{state.TableProfileIndex + 1}, pebble.NoSync); err != nil {
		return fmt.Errorf("make the index of profiles: %w", err)
	}
	w := checkpoint.NewBatchWriter(s.DB, nil, disk)
	var keys indexKeys
	err := s.Each(state.TableDocument, func(number uint64, rest, value []byte) error {
		if !known(number) || len(rest) != 4 {
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

// Sum tells the index of an account's profiles apart from other sets of keys, whatever the
// order in which they are added.
type Sum struct {
	account uint64
	hasher  identifier.Hasher
	total   sum
	scratch indexKeys
}

type sum struct {
	keys   uint64
	lo, hi uint64
}

// NewSum returns the sum of no profiles of an account. The hasher is the account's.
func NewSum(account uint64, hasher identifier.Hasher) *Sum {
	return &Sum{account: account, hasher: hasher}
}

// Add adds the keys of a profile with its document.
func (x *Sum) Add(ordinal uint32, document []byte) error {
	if err := x.scratch.set(x.account, ordinal, document); err != nil {
		return err
	}
	for i := range x.scratch.ends {
		x.total.add(x.hasher, x.scratch.at(i))
	}
	return nil
}

func (x *sum) add(hasher identifier.Hasher, key []byte) {
	h := hasher.Sum(key)
	x.keys++
	x.lo += binary.LittleEndian.Uint64(h[:])
	x.hi += binary.LittleEndian.Uint64(h[8:])
}

// Check compares the account's index with what the documents say that were added.
func (x *Sum) Check(s *state.Store) error {
	prefix := state.AccountKey(nil, state.TableProfileIndex, x.account)
	it, err := s.IndexFrom(prefix, state.After(prefix))
	if err != nil {
		return err
	}
	var have sum
	for it.Next() {
		have.add(x.hasher, it.Key)
	}
	if err := it.Close(); err != nil {
		return err
	}
	if have != x.total {
		return fmt.Errorf("state: the index of profiles of account %016x has %d keys that are not those of its documents, which have %d", x.account, have.keys, x.total.keys)
	}
	return nil
}
