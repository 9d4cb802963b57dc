package state

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/sortedkeys"
)

// PutIndex sets or removes a key of the index.
func (s *Store) PutIndex(key []byte, remove bool) {
	s.index.Put(key, remove)
	s.CurrentBytes += int64(len(key)) + indexOverhead
}

// indexOverhead is roughly what a change of the index costs beside the key's bytes.
const indexOverhead = 32

// IndexIter goes through the keys of the index from one on and below another.
type IndexIter struct {
	memory [2]sortedkeys.Cursor // this generation and the one being written
	stored *pebble.Iterator
	Key    []byte // the one at hand, until the next call of Next
}

// IndexFrom returns the keys from lower on and below upper. It must be closed, and not
// outlive the lock.
func (s *Store) IndexFrom(lower, upper []byte) (*IndexIter, error) {
	stored, err := s.DB.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, fmt.Errorf("read the index of profiles: %w", err)
	}
	it := &IndexIter{stored: stored, memory: [2]sortedkeys.Cursor{s.index.From(lower, upper), s.FrozenIndex.From(lower, upper)}}
	stored.First()
	return it, nil
}

// Next goes to the next key, which is then in it.Key; false is the end, or an error,
// which Close returns.
func (it *IndexIter) Next() bool {
	for {
		// Of equal keys the latest counts: it stands first here.
		var least []byte
		removed := false
		for i := range it.memory {
			if c := &it.memory[i]; c.Valid() && (least == nil || bytes.Compare(c.Key(), least) < 0) {
				least, removed = c.Key(), c.Removed()
			}
		}
		if it.stored.Valid() && (least == nil || bytes.Compare(it.stored.Key(), least) < 0) {
			least, removed = it.stored.Key(), false
		}
		if least == nil {
			return false
		}
		it.Key = append(it.Key[:0], least...)
		for i := range it.memory {
			if c := &it.memory[i]; c.Valid() && bytes.Equal(c.Key(), it.Key) {
				c.Next()
			}
		}
		if it.stored.Valid() && bytes.Equal(it.stored.Key(), it.Key) {
			it.stored.Next()
		}
		if !removed {
			return true
		}
	}
}

// Close ends it, and returns what went wrong on the way.
func (it *IndexIter) Close() error {
	if err := it.stored.Close(); err != nil {
		return fmt.Errorf("read the index of profiles: %w", err)
	}
	return nil
}

// After is the first key that does not begin with prefix and is greater; nil if there
// is none.
func After(prefix []byte) []byte {
	for n := len(prefix) - 1; n >= 0; n-- {
		if prefix[n] != 0xff {
			out := slices.Clone(prefix[:n+1])
			out[n]++
			return out
		}
	}
	return nil
}
