// Package dueset is a set of what falls due when: pairs of an instant and an
// ordinal, in order of both, without pointers. A million pairs take about
// twenty megabytes.
package dueset

import (
	"cmp"
	"slices"
	"sort"
)

// Item is one pair.
type Item struct {
	Due     int64
	Ordinal uint32
}

// Compare orders items by instant, then ordinal.
func Compare(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Ordinal, b.Ordinal))
}

// blockItems is how many items a block has at most; one that is full is halved.
const blockItems = 512

// Set is a set of items. The zero value is empty.
//
// Items lie in blocks, each sorted and none empty, and blocks are in order. To
// take the first is to cut it off, which costs nothing.
type Set struct {
	blocks [][]Item
	n      int
}

// Len is how many items there are.
func (s *Set) Len() int { return s.n }

// Min is the first item; ok is false when there is none.
func (s *Set) Min() (it Item, ok bool) {
	if s.n == 0 {
		return it, false
	}
	return s.blocks[0][0], true
}

// From is the first item that is not due before an instant; ok is false when there
// is none.
func (s *Set) From(due int64) (it Item, ok bool) {
	from := Item{Due: due}
	for b := s.blockOf(from); b < len(s.blocks); b++ {
		if i, _ := slices.BinarySearchFunc(s.blocks[b], from, Compare); i < len(s.blocks[b]) {
			return s.blocks[b][i], true
		}
	}
	return it, false
}

// Add puts an item in; it returns false if it was there.
func (s *Set) Add(it Item) bool {
	b := s.blockOf(it)
	if b == len(s.blocks) { // only when there is none
		s.blocks = append(s.blocks, append(make([]Item, 0, 8), it))
		s.n++
		return true
	}
	i, found := slices.BinarySearchFunc(s.blocks[b], it, Compare)
	if found {
		return false
	}
	block := slices.Insert(s.blocks[b], i, it)
	s.blocks[b] = block
	if len(block) >= blockItems {
		s.halve(b)
	}
	s.n++
	return true
}

// halve makes two blocks of one. The last one is left nearly full: items often
// come in order.
func (s *Set) halve(b int) {
	block := s.blocks[b]
	at := len(block) / 2
	if b == len(s.blocks)-1 {
		at = len(block) - blockItems/16
	}
	s.blocks[b] = slices.Clone(block[:at])
	s.blocks = slices.Insert(s.blocks, b+1, append(make([]Item, 0, blockItems/2), block[at:]...))
}

// Remove takes an item out; it returns false if it was not there.
func (s *Set) Remove(it Item) bool {
	b := s.blockOf(it)
	if b == len(s.blocks) {
		return false
	}
	block := s.blocks[b]
	i, found := slices.BinarySearchFunc(block, it, Compare)
	if !found {
		return false
	}
	s.n--
	switch {
	case len(block) == 1:
		s.blocks = slices.Delete(s.blocks, b, b+1)
	case i == 0:
		s.blocks[b] = block[1:]
	default:
		s.blocks[b] = slices.Delete(block, i, i+1)
	}
	return true
}

// blockOf is the block an item is in or belongs into: the last one that does not
// begin after it, or the first one.
func (s *Set) blockOf(it Item) int {
	b := sort.Search(len(s.blocks), func(i int) bool { return Compare(s.blocks[i][0], it) > 0 })
	return max(b-1, 0)
}

// Load makes the set what items are, which it sorts and keeps no reference to.
func (s *Set) Load(items []Item) {
	slices.SortFunc(items, Compare)
	items = slices.Compact(items)
	s.blocks, s.n = nil, len(items)
	for part := range slices.Chunk(items, blockItems*3/4) {
		s.blocks = append(s.blocks, slices.Clone(part))
	}
}
