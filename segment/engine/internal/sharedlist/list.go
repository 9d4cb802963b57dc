// Package sharedlist is a list of pointers that can be had as it is at an instant without a copy
// of all of it.
//
// # Background
//
// A checkpoint reads the list while it goes on changing. There is an entry for each sixteen
// profiles: a copy of millions of pointers takes tens of milliseconds, more while the garbage
// collector marks, and all of Apply waits for it.
//
// # How data is organised
//
// A list is chunks of entries. What was frozen has the same chunks. The first change of a chunk
// after that copies it.
//
// Invariant: a chunk of an older epoch is never written to.
package sharedlist

import (
	"slices"
	"unsafe"
)

// chunkEntries is how many entries a chunk has: 2 KB of pointers, which the first change copies.
const chunkEntries = 256

// List is a list of pointers to T. The zero value is an empty one.
type List[T any] struct {
	chunks []*chunk[T] // nil where no entry is
	n      int
	epoch  uint64
}

type chunk[T any] struct {
	epoch uint64
	at    [chunkEntries]*T
}

// Len is one more than the greatest index that was set.
func (l *List[T]) Len() int { return l.n }

// At is an entry, nil where none was set.
func (l *List[T]) At(i int) *T {
	k := i / chunkEntries
	if k >= len(l.chunks) || l.chunks[k] == nil {
		return nil
	}
	return l.chunks[k].at[i%chunkEntries]
}

// Set sets an entry, also one behind the end.
func (l *List[T]) Set(i int, p *T) {
	k := i / chunkEntries
	if more := k + 1 - len(l.chunks); more > 0 {
		l.chunks = append(l.chunks, make([]*chunk[T], more)...)
	}
	c := l.chunks[k]
	switch {
	case c == nil:
		c = &chunk[T]{epoch: l.epoch}
	case c.epoch != l.epoch:
		own := *c
		own.epoch = l.epoch
		c = &own
	}
	l.chunks[k], l.n = c, max(l.n, i+1)
	c.at[i%chunkEntries] = p
}

// Freeze is the list as it is. It may be read while the list changes, and is not to be changed.
func (l *List[T]) Freeze() List[T] {
	l.epoch++
	return List[T]{chunks: slices.Clone(l.chunks), n: l.n}
}

// Bytes is about what the list takes in memory, beside what it points to.
func (l *List[T]) Bytes() int64 {
	n := 8 * int64(cap(l.chunks))
	for _, c := range l.chunks {
		if c != nil {
			n += int64(unsafe.Sizeof(*c))
		}
	}
	return n
}
