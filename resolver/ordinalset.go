package resolver

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// pieceOrdinals is how many ordinals share one stored piece of a set.
const pieceOrdinals = 1 << 16

// ordinalSet is a set of profiles of an account that is part of the state: who
// is on a list, who was sent a campaign. It is stored in pieces, so that a
// checkpoint writes what changed and no more.
type ordinalSet struct {
	account *account
	name    string
	bits    *roaring.Bitmap
	dirty   map[uint16]struct{} // pieces changed in this generation
}

func (s *ordinalSet) touch(o uint32) {
	if s.dirty == nil {
		s.dirty = map[uint16]struct{}{}
		s.account.dirtySets = append(s.account.dirtySets, s)
	}
	s.dirty[uint16(o/pieceOrdinals)] = struct{}{}
}

// add puts a profile into the set; it returns whether that was new.
func (s *ordinalSet) add(o uint32) bool {
	if !s.bits.CheckedAdd(o) {
		return false
	}
	s.touch(o)
	return true
}

// remove takes a profile out of the set; it returns whether it was there.
func (s *ordinalSet) remove(o uint32) bool {
	if !s.bits.CheckedRemove(o) {
		return false
	}
	s.touch(o)
	return true
}

// assign makes the set what b is; b is the set's from then on.
func (s *ordinalSet) assign(b *roaring.Bitmap) {
	for _, old := range []*roaring.Bitmap{s.bits, b} {
		for _, piece := range piecesOf(old) {
			s.touch(uint32(piece) * pieceOrdinals)
		}
	}
	s.bits = b
}

// piecesOf lists the pieces in which a set has members.
func piecesOf(b *roaring.Bitmap) []uint16 {
	var out []uint16
	for it := b.Iterator(); it.HasNext(); {
		piece := it.PeekNext() / pieceOrdinals
		out = append(out, uint16(piece))
		if piece == 1<<16-1 {
			break
		}
		it.AdvanceIfNeeded((piece + 1) * pieceOrdinals)
	}
	return out
}

// piece is one piece as it is stored, nil when it is empty.
func (s *ordinalSet) piece(i uint16) []byte {
	from := uint64(i) * pieceOrdinals
	part := roaring.New()
	part.AddRange(from, from+pieceOrdinals)
	part.And(s.bits)
	if part.IsEmpty() {
		return nil
	}
	part.RunOptimize()
	b, err := part.ToBytes()
	if err != nil {
		panic(err) // writing to memory does not fail
	}
	return b
}

// set finds a named set of the account or makes it. Names are made by the
// code alone and hold no NUL.
func (a *account) set(name string) *ordinalSet {
	s := a.sets[name]
	if s == nil {
		s = &ordinalSet{account: a, name: name, bits: roaring.New()}
		a.sets[name] = s
	}
	return s
}

// members reads a named set, which need not exist. It must not be changed.
func (a *account) members(name string) *roaring.Bitmap {
	if s := a.sets[name]; s != nil {
		return s.bits
	}
	return emptySet
}

// emptySet stands for sets that have never had a member.
var emptySet = roaring.New()

// setKey names a piece of a set in the store.
func setKey(account uint64, name string, piece uint16) string {
	return entityKey(account, entitySet, string(binary.BigEndian.AppendUint16(append([]byte(name), 0), piece)))
}

// dropSet removes a set and what is stored of it.
func (m *Machine) dropSet(a *account, name string) {
	s := a.sets[name]
	if s == nil {
		return
	}
	for _, piece := range piecesOf(s.bits) {
		s.touch(uint32(piece) * pieceOrdinals)
	}
	for piece := range s.dirty {
		m.store.putEntity(setKey(a.number, name, piece), nil)
	}
	delete(a.sets, name)
}

// storeSets hands the pieces changed since the last checkpoint to the store.
func (m *Machine) storeSets(a *account) {
	for _, s := range a.dirtySets {
		if a.sets[s.name] == s { // not dropped meanwhile
			for piece := range s.dirty {
				m.store.putEntity(setKey(a.number, s.name, piece), s.piece(piece))
			}
		}
		s.dirty = nil
	}
	clear(a.dirtySets)
	a.dirtySets = a.dirtySets[:0]
}

// loadSet reads a stored piece.
func (a *account) loadSet(rest string, value []byte) error {
	if len(rest) < 3 || rest[len(rest)-3] != 0 {
		return fmt.Errorf("piece of a set has a bad name")
	}
	part := roaring.New()
	if err := part.UnmarshalBinary(value); err != nil {
		return fmt.Errorf("piece of a set: %w", err)
	}
	a.set(rest[:len(rest)-3]).bits.Or(part)
	return nil
}

// checkSets finds profiles in sets that do not exist.
func (a *account) checkSets() error {
	for name, s := range a.sets {
		if !s.bits.IsEmpty() && s.bits.Maximum() >= a.headers.n {
			return fmt.Errorf("state: set %q of account %016x has profile %d, there are %d", name, a.number, s.bits.Maximum(), a.headers.n)
		}
	}
	return nil
}

// hashSets is the sets' part of the state's hash. Empty sets do not count:
// whether one was made is no part of the state.
func (a *account) hashSets(put func([]byte)) error {
	for _, name := range slices.Sorted(maps.Keys(a.sets)) {
		s := a.sets[name]
		if s.bits.IsEmpty() {
			continue
		}
		put([]byte(name))
		for _, piece := range piecesOf(s.bits) {
			put(s.piece(piece))
		}
	}
	return nil
}
