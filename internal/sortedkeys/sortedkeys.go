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
	head    head   // while the chunk is sorted
	at      uint32 // where the key begins in keys
	size    uint16 // of the key, in bytes
	order   uint16 // number of the change in its chunk
	removed bool
}

// head is the 16 bytes of a key behind what it has in common with the keys that it is compared
// with, filled up with zeroes: they nearly always tell keys apart, and are at hand where keys are
// somewhere in memory.
type head [2]uint64

func headOf(rest []byte) head {
	var b [16]byte
	copy(b[:], rest)
	return head{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}

func (h *head) less(o *head) bool {
	if h[0] != o[0] {
		return h[0] < o[0]
	}
	return h[1] < o[1]
}

// common is how many bytes two keys begin with alike.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
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
	l.entries = append(l.entries, entry{at: uint32(len(l.keys)), size: uint16(len(key)), order: uint16(len(l.entries)), removed: removed})
	l.keys = append(l.keys, key...)
	if len(l.entries) == chunkKeys {
		c.full, c.latest = append(c.full, l), nil
		go l.sorted()
	}
}

func (k *chunk) key(e *entry) []byte { return k.keys[e.at:][:e.size] }

// sorted returns when the chunk, which is full, is sorted.
func (k *chunk) sorted() {
	k.sorting.Do(func() {
		k.sort()
		k.pack()
	})
}

// sort sorts by keys, of which there are some; what is of one key, the latest first.
func (k *chunk) sort() {
	first := k.key(&k.entries[0])
	alike := len(first)
	for i := range k.entries {
		alike = common(first[:alike], k.key(&k.entries[i]))
	}
	for i := range k.entries {
		e := &k.entries[i]
		e.head = headOf(k.key(e)[alike:])
	}
	slices.SortFunc(k.entries, func(x, y entry) int {
		switch {
		case x.head == y.head:
		case x.head.less(&y.head):
			return -1
		default:
			return 1
		}
		return cmp.Or(bytes.Compare(k.key(&x), k.key(&y)), -cmp.Compare(x.order, y.order))
	})
}

// pack puts the keys in their order: a reader finds the next one beside the one before.
func (k *chunk) pack() {
	keys := make([]byte, 0, len(k.keys))
	for i := range k.entries {
		e := &k.entries[i]
		key := k.key(e)
		e.at = uint32(len(keys))
		keys = append(keys, key...)
	}
	k.keys = keys
}

// Cursor goes through keys in order.
type Cursor struct {
	// parts is a heap: the least key stands first, and of equal ones the latest.
	parts []part
	alike int // the bytes that all keys begin with
}

// part is the rest of a chunk.
type part struct {
	head head // of the first key
	*chunk
	entries []entry
	age     int // a greater one is later
}

func (p *part) top() []byte { return p.key(&p.entries[0]) }

// before reports whether a part stands before another.
func (p *part) before(o *part) bool {
	if p.head != o.head {
		return p.head.less(&o.head)
	}
	if d := bytes.Compare(p.top(), o.top()); d != 0 {
		return d < 0
	}
	return p.age > o.age
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
			out.parts = append(out.parts, part{chunk: k, entries: rest, age: i})
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
			out.parts = append(out.parts, part{chunk: within, entries: within.entries, age: len(c.full)})
		}
	}
	out.order()
	return out
}

// order makes parts a heap.
func (c *Cursor) order() {
	if len(c.parts) == 0 {
		return
	}
	first := c.parts[0].top()
	c.alike = len(first)
	for i := range c.parts {
		p := &c.parts[i]
		// Sorted keys have in common what the first and the last have.
		c.alike = common(first[:c.alike], p.top())
		c.alike = common(first[:c.alike], p.key(&p.entries[len(p.entries)-1]))
	}
	for i := range c.parts {
		p := &c.parts[i]
		p.head = headOf(p.top()[c.alike:])
	}
	for i := len(c.parts)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
}

// sink moves a part down to its place, below which all are in theirs.
func (c *Cursor) sink(i int) {
	parts := c.parts
	moved := parts[i]
	for {
		least := 2*i + 1
		if least >= len(parts) {
			break
		}
		if right := least + 1; right < len(parts) && parts[right].before(&parts[least]) {
			least = right
		}
		if !parts[least].before(&moved) {
			break
		}
		parts[i] = parts[least]
		i = least
	}
	parts[i] = moved
}

// Valid reports whether there is a key at the place.
func (c *Cursor) Valid() bool { return len(c.parts) > 0 }

// Key is the key at the place. It must not be changed.
func (c *Cursor) Key() []byte { return c.parts[0].top() }

// Removed reports whether the latest change to the key at the place removed it.
func (c *Cursor) Removed() bool { return c.parts[0].entries[0].removed }

// Next goes to the next key.
func (c *Cursor) Next() {
	for key, head := c.Key(), c.parts[0].head; c.Valid() && c.parts[0].head == head && bytes.Equal(c.Key(), key); {
		x := &c.parts[0]
		if x.entries = x.entries[1:]; len(x.entries) > 0 {
			x.head = headOf(x.top()[c.alike:])
		} else {
			last := len(c.parts) - 1
			c.parts[0], c.parts[last] = c.parts[last], part{}
			c.parts = c.parts[:last]
		}
		if len(c.parts) > 0 {
			c.sink(0)
		}
	}
}
