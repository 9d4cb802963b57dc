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
// A list is chunks of entries; one has as much room as it needs. What was frozen has the same
// chunks. The first change of a chunk after that copies it.
//
// Invariant: what was frozen of a chunk is never written to.
package sharedlist

import "slices"

// chunkEntries is how many entries a chunk has at most: 2 KB of pointers, which the first change
// copies.
const chunkEntries = 256

// List is a list of pointers to T. The zero value is an empty one.
type List[T any] struct {
	chunks [][]*T
	epochs []uint64 // of chunks: in which they were made
	n      int
	epoch  uint64
}

// Len is one more than the greatest index that was set.
func (l *List[T]) Len() int { return l.n }

// At is an entry, nil where none was set.
func (l *List[T]) At(i int) *T {
	k, at := i/chunkEntries, i%chunkEntries
	if k >= len(l.chunks) || at >= len(l.chunks[k]) {
		return nil
	}
	return l.chunks[k][at]
}

// Set sets an entry, also one behind the end.
func (l *List[T]) Set(i int, p *T) {
	k, at := i/chunkEntries, i%chunkEntries
	if more := k + 1 - len(l.chunks); more > 0 {
		l.chunks, l.epochs = append(l.chunks, make([][]*T, more)...), append(l.epochs, make([]uint64, more)...)
	}
	c := l.chunks[k]
	room := cap(c)
	if at >= room {
		room = min(max(2*room, at+1), chunkEntries)
	}
	if room > cap(c) || l.epochs[k] != l.epoch {
		c = append(make([]*T, 0, room), c...)
	}
	if at >= len(c) {
		c = c[:at+1] // what is between was never set
	}
	c[at] = p
	l.chunks[k], l.epochs[k], l.n = c, l.epoch, max(l.n, i+1)
}

// Freeze is the list as it is. It may be read while the list changes, and is not to be changed.
func (l *List[T]) Freeze() List[T] {
	l.epoch++
	return List[T]{chunks: slices.Clone(l.chunks), n: l.n}
}

// Bytes is about what the list takes in memory, beside what it points to.
func (l *List[T]) Bytes() int64 {
	n := 32 * cap(l.chunks)
	for _, c := range l.chunks {
		n += 8 * cap(c)
	}
	return int64(n)
}
