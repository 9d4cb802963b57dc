package profile

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// pieceOrdinals is how many ordinals share one stored piece of a set.
const pieceOrdinals = 1 << 16

// OrdinalSet is a set of profiles of an account that is part of the state: the
// contacts on a list, the recipients of a campaign. It is stored in pieces, so that
// a checkpoint writes what changed and no more.
type OrdinalSet struct {
	in    *OrdinalSets
	Name  string
	Bits  *roaring.Bitmap     // for reading; Add, Remove and Assign change it
	dirty map[uint16]struct{} // pieces changed in this generation
}

// OrdinalSets are the named sets of an account. Names are made by the code alone and
// hold no NUL.
type OrdinalSets struct {
	byName map[string]*OrdinalSet
	dirty  []*OrdinalSet // changed in this generation
}

// NewOrdinalSets returns no sets.
func NewOrdinalSets() *OrdinalSets { return &OrdinalSets{byName: map[string]*OrdinalSet{}} }

func (s *OrdinalSet) touch(o uint32) {
	if s.dirty == nil {
		s.dirty = map[uint16]struct{}{}
		s.in.dirty = append(s.in.dirty, s)
	}
	s.dirty[uint16(o/pieceOrdinals)] = struct{}{}
}

// Add puts a profile into the set; it returns whether that was new.
func (s *OrdinalSet) Add(o uint32) bool {
	if !s.Bits.CheckedAdd(o) {
		return false
	}
	s.touch(o)
	return true
}

// Remove takes a profile out of the set; it returns whether it was there.
func (s *OrdinalSet) Remove(o uint32) bool {
	if !s.Bits.CheckedRemove(o) {
		return false
	}
	s.touch(o)
	return true
}

// Put makes a profile be in the set, or not.
func (s *OrdinalSet) Put(o uint32, in bool) {
	if in {
		s.Add(o)
	} else {
		s.Remove(o)
	}
}

// Assign makes the set what b is; b is the set's from then on.
func (s *OrdinalSet) Assign(b *roaring.Bitmap) {
	for _, old := range []*roaring.Bitmap{s.Bits, b} {
		for _, piece := range piecesOf(old) {
			s.touch(uint32(piece) * pieceOrdinals)
		}
	}
	s.Bits = b
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
func (s *OrdinalSet) piece(i uint16) []byte {
	from := uint64(i) * pieceOrdinals
	part := roaring.New()
	part.AddRange(from, from+pieceOrdinals)
	part.And(s.Bits)
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

// Set finds a named set or makes it.
func (l *OrdinalSets) Set(name string) *OrdinalSet {
	s := l.byName[name]
	if s == nil {
		s = &OrdinalSet{in: l, Name: name, Bits: roaring.New()}
		l.byName[name] = s
	}
	return s
}

// Find returns a named set, nil if none was made.
func (l *OrdinalSets) Find(name string) *OrdinalSet { return l.byName[name] }

// All lists the sets by name, in no order.
func (l *OrdinalSets) All() iter.Seq2[string, *OrdinalSet] { return maps.All(l.byName) }

// Members reads a named set, which need not exist. It must not be changed.
func (l *OrdinalSets) Members(name string) *roaring.Bitmap {
	if s := l.byName[name]; s != nil {
		return s.Bits
	}
	return EmptySet
}

// EmptySet stands for sets that have never had a member. It must not be changed.
var EmptySet = roaring.New()

// Drop removes a set. It calls remove for every piece that may be stored of it.
func (l *OrdinalSets) Drop(name string, remove func(piece uint16)) {
	s := l.byName[name]
	if s == nil {
		return
	}
	for _, piece := range piecesOf(s.Bits) {
		s.touch(uint32(piece) * pieceOrdinals)
	}
	for piece := range s.dirty {
		remove(piece)
	}
	delete(l.byName, name)
}

// Store calls put with the pieces changed since its last call, nil for one that became
// empty.
func (l *OrdinalSets) Store(put func(name string, piece uint16, value []byte)) {
	for _, s := range l.dirty {
		if l.byName[s.Name] == s { // not dropped meanwhile
			for piece := range s.dirty {
				put(s.Name, piece, s.piece(piece))
			}
		}
		s.dirty = nil
	}
	clear(l.dirty)
	l.dirty = l.dirty[:0]
}

// Load adds a stored piece to a set.
func (l *OrdinalSets) Load(name string, value []byte) error {
	part := roaring.New()
	if err := part.UnmarshalBinary(value); err != nil {
		return fmt.Errorf("piece of a set: %w", err)
	}
	l.Set(name).Bits.Or(part)
	return nil
}

// Hash is the sets' part of the state's hash, but for those that skip names. Empty sets
// do not count: whether one was made is no part of the state.
func (l *OrdinalSets) Hash(skip func(name string) bool, put func([]byte)) {
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		s := l.byName[name]
		if s.Bits.IsEmpty() || skip(name) {
			continue
		}
		put([]byte(name))
		for _, piece := range piecesOf(s.Bits) {
			put(s.piece(piece))
		}
	}
}

// Page lists members of a set in order, from an ordinal on, limit at most.
func Page(b *roaring.Bitmap, from uint32, limit int) []uint32 {
	var out []uint32
	it := b.Iterator()
	for it.AdvanceIfNeeded(from); it.HasNext() && len(out) < limit; {
		out = append(out, it.Next())
	}
	return out
}
