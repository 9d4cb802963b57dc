package engine

import (
	"bufio"
	"math/bits"
	"slices"

	"github.com/musterhq/muster/internal/prefetch"
	"github.com/musterhq/muster/segment/engine/internal/sharedlist"
)

// frozenGroup is a group at one instant.
type frozenGroup struct {
	ids     [groupSlots]uint32 // of the states by slot; 0 where there is none
	pages   sharedlist.List[page]
	changed []changedPage // those to write, unless all is set
	all     bool
	big     map[bigKey][]byte // among those to write
}

// frozenValue is a value of a row that is written.
type frozenValue struct {
	slot uint8
	v    []byte
}

// freeze hands over the rows that changed since the last freeze, or all. It
// copies neither pages nor the list of them.
func (g *group) freeze(all bool) frozenGroup {
	f := frozenGroup{pages: g.pages.Freeze(), changed: g.changed, all: all}
	for slot, st := range g.states {
		if st != nil {
			f.ids[slot] = st.id
		}
	}
	if len(g.big) > 0 {
		f.big = map[bigKey][]byte{}
		if all {
			for k, b := range g.big {
				f.big[k] = b.b
			}
		} else {
			for k := range g.changedBig {
				if b := g.big[k]; b != nil {
					f.big[k] = b.b
				}
			}
		}
	}
	g.settle()
	g.unshared = false
	return f
}

// settle says that all rows are written.
func (g *group) settle() {
	g.changed, g.changedBig = nil, nil
	g.epoch++
}

// each calls fn for the rows to write, in order; one that is gone has no
// values. They are valid during the call.
func (f *frozenGroup) each(fn func(o uint32, values []frozenValue) error) error {
	var values []frozenValue
	do := func(c changedPage) error {
		for left := c.rows; left != 0; left &= left - 1 {
			o := c.index*pageRows + uint32(bits.TrailingZeros32(left))
			values = f.values(values[:0], o)
			if f.all && len(values) == 0 {
				continue // they are all of states that are gone
			}
			if err := fn(o, values); err != nil {
				return err
			}
		}
		return nil
	}
	if f.all {
		for i := range f.pages.Len() {
			p := f.pages.At(i)
			if p == nil {
				continue
			}
			c := changedPage{index: uint32(i)}
			for r := range uint32(pageRows) {
				if start, end := p.bounds(r); end > start {
					c.rows |= 1 << r
				}
			}
			if err := do(c); err != nil {
				return err
			}
		}
		return nil
	}
	slices.SortFunc(f.changed, func(a, b changedPage) int { return int(a.index) - int(b.index) })
	for i, c := range f.changed {
		f.prefetch(i)
		if err := do(c); err != nil {
			return err
		}
	}
	return nil
}

// prefetchPages is how many pages ahead heads are prefetched; rows are half as many ahead.
const prefetchPages = 16

// prefetch brings near what is written after a changed page: pages lie anywhere in memory.
func (f *frozenGroup) prefetch(i int) {
	if i+prefetchPages < len(f.changed) {
		f.pages.At(int(f.changed[i+prefetchPages].index)).prefetch()
	}
	if i+prefetchPages/2 < len(f.changed) {
		c := f.changed[i+prefetchPages/2]
		for left := c.rows; left != 0; left &= left - 1 {
			prefetch.Bytes(f.pages.At(int(c.index)).row(uint32(bits.TrailingZeros32(left))), prefetchBytes)
		}
	}
}

// values appends those of a row whose state was there.
func (f *frozenGroup) values(dst []frozenValue, o uint32) []frozenValue {
	row := f.pages.At(int(o / pageRows)).row(o)
	for i := 0; i < len(row); {
		slot, n := row[i], i+sectionHead+int(row[i+1])
		if f.ids[slot] != 0 {
			v := row[i+sectionHead : n]
			if len(v) == 0 {
				v = f.big[bigOf(slot, o)]
			}
			dst = append(dst, frozenValue{slot, v})
		}
		i = n
	}
	return dst
}

// write writes the states by slot, then the rows.
func (f *frozenGroup) write(w *bufio.Writer, number func(uint64) error, block func([]byte) error) error {
	for _, id := range f.ids {
		if err := number(uint64(id)); err != nil {
			return err
		}
	}
	// Each row as the distance from the last ordinal, from 1, the number of
	// values, and for each its slot and a block. 0 ends the list.
	last := int64(-1)
	err := f.each(func(o uint32, values []frozenValue) error {
		if err := number(uint64(int64(o) - last)); err != nil {
			return err
		}
		last = int64(o)
		if err := w.WriteByte(byte(len(values))); err != nil {
			return err
		}
		for _, x := range values {
			if err := w.WriteByte(x.slot); err != nil {
				return err
			}
			if err := block(x.v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return number(0)
}
