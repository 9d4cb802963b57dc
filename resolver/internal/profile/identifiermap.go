package profile

import (
	"encoding/binary"

	"github.com/musterhq/muster/internal/hashtable"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// IdentifierMap maps identifiers to ordinals. Changes are logged for the next
// checkpoint.
type IdentifierMap struct {
	entries *hashtable.Table   // of ordinals
	Changed []IdentifierChange // since the last checkpoint, which takes them
	Version uint64             // moves with every change
}

const ordinalSize = 4

// NewIdentifierMap returns an empty map.
func NewIdentifierMap() IdentifierMap { return IdentifierMap{entries: hashtable.New(ordinalSize)} }

// IdentifierChange is one entry of the log of changes; ordinal NoOrdinal removes.
type IdentifierChange struct {
	Hash    identifier.Hash
	Ordinal uint32
}

// Size is the number of identifiers.
func (m *IdentifierMap) Size() int { return m.entries.Len() }

// Get returns the ordinal of the profile that holds an identifier; ok is false when
// none does.
func (m *IdentifierMap) Get(h identifier.Hash) (ordinal uint32, ok bool) {
	o := m.Owner(h)
	return o, o != NoOrdinal
}

// Owner is the profile that holds an identifier, NoOrdinal if none does.
func (m *IdentifierMap) Owner(h identifier.Hash) uint32 {
	if v := m.entries.Get((*hashtable.Key)(&h)); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return NoOrdinal
}

// PrefetchPage brings near what Prefetch of an identifier reads.
func (m *IdentifierMap) PrefetchPage(h identifier.Hash) { m.entries.PrefetchPage((*hashtable.Key)(&h)) }

// Prefetch brings near what Owner of an identifier reads.
func (m *IdentifierMap) Prefetch(h identifier.Hash) { m.entries.Prefetch((*hashtable.Key)(&h)) }

// Each calls fn for all identifiers, in no order.
func (m *IdentifierMap) Each(fn func(h identifier.Hash, ordinal uint32)) {
	m.entries.All(func(k *hashtable.Key, v []byte) bool {
		fn(*k, binary.LittleEndian.Uint32(v))
		return true
	})
}

// loadOrderBits is by how many bits LoadAll orders what it takes in.
const loadOrderBits = 12

// LoadAll takes in entries of a checkpoint, all of them new, those that lie near
// each other in memory one after the other. room is for as many.
func (m *IdentifierMap) LoadAll(list, room []IdentifierChange) {
	part := func(c *IdentifierChange) int {
		return int(hashtable.Order((*hashtable.Key)(&c.Hash)) >> (64 - loadOrderBits))
	}
	var ends [1<<loadOrderBits + 1]int
	for i := range list {
		ends[part(&list[i])+1]++
	}
	for i := range ends[1:] {
		ends[i+1] += ends[i]
	}
	for i := range list {
		at := part(&list[i])
		room[ends[at]] = list[i]
		ends[at]++
	}
	for i := range list {
		binary.LittleEndian.PutUint32(m.entries.Add((*hashtable.Key)(&room[i].Hash)), room[i].Ordinal)
	}
}

// Set makes a profile hold an identifier, also when another held it before.
func (m *IdentifierMap) Set(h identifier.Hash, ordinal uint32) {
	binary.LittleEndian.PutUint32(m.entries.Put((*hashtable.Key)(&h)), ordinal)
	m.Version++
	m.Changed = append(m.Changed, IdentifierChange{h, ordinal})
}

// Remove makes no profile hold an identifier.
func (m *IdentifierMap) Remove(h identifier.Hash) {
	m.entries.Delete((*hashtable.Key)(&h))
	m.Version++
	m.Changed = append(m.Changed, IdentifierChange{h, NoOrdinal})
}
