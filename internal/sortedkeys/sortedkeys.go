// Package sortedkeys keeps what was done to keys since some moment, which of them were
// set and which removed, so that it costs little to note and can be read in order.
//
// Changes are noted in chunks. A chunk that is full is sorted beside the writer, which takes
// place within the processor's cache, and does not change any more. A reader merges the chunks
// from a key on and sorts what it needs of the one that is not full. One sorted
// structure of everything would miss the cache at each step of each insertion.
//
// A [Changes] has one writer at a time and no reader meanwhile; without a writer, any
// number of readers.
package sortedkeys

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"slices"
	"sort"
	"sync"
)

// chunkKeys is how many changes make a chunk.
const chunkKeys = 4096

// Changes is a set of changes to keys. The zero value is empty.
type Changes struct {
	full   []*chunk // the oldest first, sorted or about to be
	latest *chunk   // in order of time; nil if there is none
}

// chunk is a number of changes.
type chunk struct {
	keys    []byte
	entries []entry
	sorting sync.Once // of a full one
}

type entry struct {
	first   [2]uint64 // the first 16 bytes of the key, which are compared first
	at      uint32    // where the key begins in keys
	size    uint16    // of the key, in bytes
	order   uint16    // number of the change in its chunk
	removed bool
}

// MaxKey is how many bytes a key may have.
const MaxKey = 1<<16 - 1

// Len is the number of changes; a key that changed twice counts twice.
func (c *Changes) Len() int {
	n := len(c.full) * chunkKeys
	if c.latest != nil {
		n += len(c.latest.entries)
	}
	return n
}

// Put notes that a key was set or removed; what was noted of it before no longer
// counts. The key is copied.
func (c *Changes) Put(key []byte, removed bool) {
	if c.latest == nil {
		c.latest = &chunk{}
	}
	l := c.latest
	var b [16]byte
	copy(b[:], key)
	l.entries = append(l.entries, entry{
		first: [2]uint64{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])},
		at:    uint32(len(l.keys)), size: uint16(len(key)), order: uint16(len(l.entries)), removed: removed,
	})
	l.keys = append(l.keys, key...)
	if len(l.entries) == chunkKeys {
		c.full, c.latest = append(c.full, l), nil
		go l.sorted()
	}
}

func (k *chunk) key(e *entry) []byte { return k.keys[e.at:][:e.size] }

// sorted returns when the chunk, which is full, is sorted.
func (k *chunk) sorted() { k.sorting.Do(k.sort) }

// sort sorts by keys; what is of one key, the latest first.
func (k *chunk) sort() {
	slices.SortFunc(k.entries, func(x, y entry) int {
		if x.first[0] != y.first[0] {
			return cmp.Compare(x.first[0], y.first[0])
		}
		if x.first[1] != y.first[1] {
			return cmp.Compare(x.first[1], y.first[1])
		}
		return cmp.Or(bytes.Compare(k.key(&x), k.key(&y)), -cmp.Compare(x.order, y.order))
	})
}

// Cursor goes through keys in order.
type Cursor struct{ parts parts }

// part is the rest of a chunk.
type part struct {
	*chunk
	entries []entry
	age     int // a greater one is later
}

func (p *part) top() []byte { return p.key(&p.entries[0]) }

// parts is a heap: the least key stands first, and of equal ones the latest.
type parts []part

func (p parts) Len() int      { return len(p) }
func (p parts) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p parts) Less(i, j int) bool {
	if d := bytes.Compare(p[i].top(), p[j].top()); d != 0 {
		return d < 0
	}
	return p[i].age > p[j].age
}
func (p *parts) Push(x any) { *p = append(*p, x.(part)) }
func (p *parts) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// From returns the changes to keys from one on and below another; nil is no bound.
func (c *Changes) From(lower, upper []byte) Cursor {
	var out Cursor
	below := func(key, bound []byte) bool { return bound != nil && bytes.Compare(key, bound) < 0 }
	for i, k := range c.full {
		k.sorted()
		from := sort.Search(len(k.entries), func(i int) bool { return !below(k.key(&k.entries[i]), lower) })
		rest := k.entries[from:]
		if upper != nil {
			rest = rest[:sort.Search(len(rest), func(i int) bool { return !below(k.key(&rest[i]), upper) })]
		}
		if len(rest) > 0 {
			out.parts = append(out.parts, part{k, rest, i})
		}
	}
	if c.latest != nil {
		within := &chunk{keys: c.latest.keys}
		for i := range c.latest.entries {
			e := &c.latest.entries[i]
			if key := c.latest.key(e); !below(key, lower) && (upper == nil || below(key, upper)) {
				within.entries = append(within.entries, *e)
			}
		}
		if len(within.entries) > 0 {
			within.sort()
			out.parts = append(out.parts, part{within, within.entries, len(c.full)})
		}
	}
	heap.Init(&out.parts)
	return out
}

// Valid reports whether there is a key at the place.
func (p *Cursor) Valid() bool { return len(p.parts) > 0 }

// Key is the key at the place. It must not be changed.
func (p *Cursor) Key() []byte { return p.parts[0].top() }

// Removed reports whether the latest change to the key at the place removed it.
func (p *Cursor) Removed() bool { return p.parts[0].entries[0].removed }

// Next goes to the next key.
func (p *Cursor) Next() {
	for key := p.Key(); p.Valid() && bytes.Equal(p.Key(), key); {
		x := &p.parts[0]
		if x.entries = x.entries[1:]; len(x.entries) == 0 {
			heap.Pop(&p.parts)
		} else {
			heap.Fix(&p.parts, 0)
		}
	}
}
