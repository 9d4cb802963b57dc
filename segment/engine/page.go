package engine

import "slices"

const (
	// pageRows is how many ordinals share a page: few, so that a row that grows
	// moves little; enough for the page's 64 bytes to be spread.
	pageRows = 16
	// pageBytes is what a page takes beside its data: one line of the cache.
	pageBytes = 64

	// A section of a row begins with its slot and the length of its value.
	sectionHead = 2
	// maxSection is the longest value kept in a row: ends have 16 bits, and a
	// page may hold pageRows·groupSlots sections.
	maxSection = 240
)

// page packs the rows of consecutive ordinals, one after another, without a
// pointer for each. A row is the sections of its profile in order of slots;
// an empty row is one of whom nothing is kept.
type page struct {
	data  []byte
	epoch uint32
	at    uint32 // in the group's changed, if epoch is the group's
	ends  [pageRows]uint16
}

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
	return p.data[start:end:end]
}

// put replaces the row of an ordinal. The page must be the writer's own.
func (p *page) put(o uint32, row []byte) {
	start, end := p.bounds(o)
	if d := len(row) - (end - start); d != 0 {
		n := len(p.data)
		if n+d > cap(p.data) {
			p.data = withRoom(p.data, n+d)
		}
		p.data = p.data[:max(n, n+d)]
		copy(p.data[end+d:], p.data[end:n])
		p.data = p.data[:n+d]
		for r := o % pageRows; r < pageRows; r++ {
			p.ends[r] = uint16(int(p.ends[r]) + d)
		}
	}
	copy(p.data[start:], row)
}

// withRoom copies data to where n bytes and a little more have room.
func withRoom(data []byte, n int) []byte {
	return append(slices.Grow([]byte(nil), n+n/8), data...)
}

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
