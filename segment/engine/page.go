package engine

import (
	"slices"
	"unsafe"
)

const (
	// pageRows is how many ordinals share a page: few, so that a row that grows
	// moves little; enough for the page's head to be spread.
	pageRows = 16
	// pageBytes is what a page takes beside its rows.
	pageBytes = int(unsafe.Sizeof(page{}))

	// A section of a row begins with its slot and the length of its value.
	sectionHead = 2
	// maxSection is the longest value kept in a row: ends have 16 bits, and a
	// page may hold pageRows·groupSlots sections.
	maxSection = 240
)

// page packs the rows of consecutive ordinals, one after another, without a
// pointer for each. A row is the sections of its profile in order of slots;
// an empty row is one of whom nothing is kept.
//
// A page and its rows are one object without pointers: this is its head, and room bytes
// follow. The garbage collector has one object to mark and nothing to scan.
type page struct {
	epoch uint32
	at    uint32 // in the group's changed, if epoch is the group's
	room  uint32
	ends  [pageRows]uint16 // of the rows, counted from behind the head
}

// newPage is a page with room for n bytes, or a little more.
func newPage(n int) *page {
	b := slices.Grow([]byte(nil), pageBytes+n)
	b = b[:cap(b)]
	clear(b[:pageBytes])
	p := (*page)(unsafe.Pointer(unsafe.SliceData(b))) // an object of this size is aligned
	p.room = uint32(len(b) - pageBytes)
	return p
}

// clone is a copy with room for n bytes, of which the rows take some.
func (p *page) clone(n int) *page {
	c := newPage(n)
	c.epoch, c.at, c.ends = p.epoch, p.at, p.ends
	copy(c.space(), p.rows())
	return c
}

// space is what follows the head, rows what the rows take of it.
func (p *page) space() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p), pageBytes)), p.room)
}

func (p *page) rows() []byte { return p.space()[:p.ends[pageRows-1]] }

// size is what the page takes in memory.
func (p *page) size() int64 { return int64(pageBytes) + int64(p.room) }

// bounds is where the row of an ordinal begins and ends.
func (p *page) bounds(o uint32) (start, end int) {
	r := o % pageRows
	if r > 0 {
		start = int(p.ends[r-1])
	}
	return start, int(p.ends[r])
}

func (p *page) row(o uint32) []byte {
	start, end := p.bounds(o)
	return p.space()[start:end:end]
}

// put replaces the row of an ordinal and returns the page, another one where the room was not
// enough. The page must be the writer's own.
func (p *page) put(o uint32, row []byte) *page {
	start, end := p.bounds(o)
	if d := len(row) - (end - start); d != 0 {
		n := len(p.rows())
		if n+d > int(p.room) {
			p = p.clone(withRoom(n + d))
		}
		space := p.space()
		copy(space[end+d:], space[end:n])
		for r := o % pageRows; r < pageRows; r++ {
			p.ends[r] = uint16(int(p.ends[r]) + d)
		}
	}
	copy(p.space()[start:], row)
	return p
}

// withRoom is n and a little more, for rows that grow.
func withRoom(n int) int { return n + n/8 }

// section is the value in a slot of a row; ok is false when there is none. An
// empty value stands for one that is kept elsewhere.
func section(row []byte, slot uint8) (v []byte, ok bool) {
	for i := 0; i < len(row) && row[i] <= slot; {
		n := i + sectionHead + int(row[i+1])
		if row[i] == slot {
			return row[i+sectionHead : n : n], true
		}
		i = n
	}
	return nil, false
}
