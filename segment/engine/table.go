package engine

import (
	"math/bits"
	"slices"
)

const pageSlots = 64

// maxInline is the longest value kept in a page. A change of its length moves
// what stands behind it in the page, so it is short; ends have 16 bits.
// Tests lower it.
var maxInline = 240

// table maps ordinals to short byte strings, packed in pages of 64 ordinals
// without a pointer per value. Fixed-size values cost their size and a bit;
// others two bytes more.
//
// Pages are copied before the first write after [table.freeze], so what was
// frozen can be read without a lock while the table goes on changing.
type table struct {
	size  int // bytes of a value; 0: they differ
	pages []*page
	big   map[uint32]*bigValue // values longer than maxInline
	n     int                  // values
	epoch uint32
	// changed are the pages written to since the freeze, changedBig the big
	// values.
	changed    []changedPage
	changedBig map[uint32]struct{}
	scratch    []byte
}

type page struct {
	epoch   uint32
	present uint64
	at      uint32 // in changed, if epoch is the table's
	data    []byte
	ends    []uint16 // of the values present, unless their size is fixed
}

// changedPage says which slots of a page were set or removed.
type changedPage struct {
	index uint32
	slots uint64
}

type bigValue struct {
	epoch uint32
	b     []byte
}

func newTable(size int) table { return table{size: size} }

// get returns the value of an ordinal, nil when there is none. It points into
// the table and is valid until the next change.
func (t *table) get(o uint32) []byte {
	i := o / pageSlots
	if int(i) >= len(t.pages) || t.pages[i] == nil {
		return nil
	}
	p := t.pages[i]
	if p.present>>(o%pageSlots)&1 == 0 {
		return nil
	}
	b := p.slot(t.size, o%pageSlots)
	if len(b) == 0 {
		return t.big[o].b
	}
	return b
}

// has tells whether the page of an ordinal has any values.
func (t *table) has(o uint32) bool {
	i := int(o / pageSlots)
	return i < len(t.pages) && t.pages[i] != nil && t.pages[i].present != 0
}

// slot is the value in a slot that is present; an empty one stands for a big
// value elsewhere.
func (p *page) slot(size int, s uint32) []byte {
	rank := bits.OnesCount64(p.present & (1<<s - 1))
	if size > 0 {
		return p.data[rank*size : (rank+1)*size : (rank+1)*size]
	}
	start := uint16(0)
	if rank > 0 {
		start = p.ends[rank-1]
	}
	return p.data[start:p.ends[rank]:p.ends[rank]]
}

// edit returns the page of an ordinal for writing.
func (t *table) edit(o uint32) *page {
	i := o / pageSlots
	for int(i) >= len(t.pages) {
		t.pages = append(t.pages, nil)
	}
	p := t.pages[i]
	switch {
	case p == nil:
		p = &page{epoch: t.epoch}
	case p.epoch != t.epoch:
		p = &page{epoch: t.epoch, present: p.present, data: slices.Clone(p.data), ends: slices.Clone(p.ends)}
	default:
		t.changed[p.at].slots |= 1 << (o % pageSlots)
		return p
	}
	t.pages[i], p.at = p, uint32(len(t.changed))
	t.changed = append(t.changed, changedPage{i, 1 << (o % pageSlots)})
	return p
}

// set stores a copy of v, which must not be empty.
func (t *table) set(o uint32, v []byte) {
	inline := v
	if len(v) > maxInline && t.size == 0 {
		t.setBig(o, v)
		inline = nil
	} else if len(t.big) > 0 {
		t.dropBig(o)
	}
	p := t.edit(o)
	s := o % pageSlots
	rank := bits.OnesCount64(p.present & (1<<s - 1))
	isNew := p.present>>s&1 == 0
	if isNew {
		p.present |= 1 << s
		t.n++
	}
	if t.size > 0 {
		at := rank * t.size
		if isNew {
			p.data = slices.Insert(p.data, at, inline...)
		} else {
			copy(p.data[at:], inline)
		}
		return
	}
	start := 0
	if rank > 0 {
		start = int(p.ends[rank-1])
	}
	if isNew {
		p.ends = slices.Insert(p.ends, rank, uint16(start))
	}
	end := int(p.ends[rank])
	p.data = slices.Replace(p.data, start, end, inline...)
	if d := len(inline) - (end - start); d != 0 {
		for i := rank; i < len(p.ends); i++ {
			p.ends[i] = uint16(int(p.ends[i]) + d)
		}
	}
}

// prepare returns the value of an ordinal and what fn makes of it: nil stands
// for no value. fn is handed a copy, which it may change, grow and return, as
// with append. Both are valid until the next change; [table.put] stores the
// second.
func (t *table) prepare(o uint32, fn func(v []byte) []byte) (old, v []byte) {
	if old = t.get(o); old == nil {
		return nil, fn(nil)
	}
	t.scratch = append(t.scratch[:0], old...)
	v = fn(t.scratch)
	if cap(v) > cap(t.scratch) {
		t.scratch = v[:0]
	}
	return old, v
}

// put stores a value, or removes it when it is nil.
func (t *table) put(o uint32, v []byte) {
	if v == nil {
		t.remove(o)
	} else {
		t.set(o, v)
	}
}

// mutate does both; a big value is changed in place.
func (t *table) mutate(o uint32, fn func(v []byte) []byte) {
	if !t.isBig(o) {
		_, v := t.prepare(o, fn)
		t.put(o, v)
		return
	}
	b := t.big[o]
	if b.epoch != t.epoch {
		b = &bigValue{epoch: t.epoch, b: slices.Clone(b.b)}
		t.big[o] = b
	}
	v := fn(b.b)
	if len(v) <= maxInline {
		t.put(o, v)
		return
	}
	b.b = v
	t.noteBig(o)
	t.edit(o)
}

func (t *table) noteBig(o uint32) {
	if t.changedBig == nil {
		t.changedBig = map[uint32]struct{}{}
	}
	t.changedBig[o] = struct{}{}
}

// isBig tells whether the value is kept outside of the page.
func (t *table) isBig(o uint32) bool { return len(t.big) > 0 && t.big[o] != nil }

// setBig stores a copy of v, in place unless the last one may be frozen.
func (t *table) setBig(o uint32, v []byte) {
	if t.big == nil {
		t.big = map[uint32]*bigValue{}
	}
	t.noteBig(o)
	if b := t.big[o]; b != nil && b.epoch == t.epoch {
		b.b = append(b.b[:0], v...)
		return
	}
	t.big[o] = &bigValue{epoch: t.epoch, b: slices.Clone(v)}
}

func (t *table) dropBig(o uint32) { delete(t.big, o) }

// remove removes the value of an ordinal, if there is one.
func (t *table) remove(o uint32) {
	if t.get(o) == nil {
		return
	}
	t.dropBig(o)
	p := t.edit(o)
	s := o % pageSlots
	rank := bits.OnesCount64(p.present & (1<<s - 1))
	p.present &^= 1 << s
	t.n--
	if t.size > 0 {
		p.data = slices.Delete(p.data, rank*t.size, (rank+1)*t.size)
		return
	}
	start := 0
	if rank > 0 {
		start = int(p.ends[rank-1])
	}
	size := int(p.ends[rank]) - start
	p.data = slices.Delete(p.data, start, start+size)
	p.ends = slices.Delete(p.ends, rank, rank+1)
	for i := rank; i < len(p.ends); i++ {
		p.ends[i] -= uint16(size)
	}
}

// each calls fn for the values from an ordinal on, in order, until fn returns
// false. The table must not change meanwhile, except for the value at hand.
func (t *table) each(from uint32, fn func(o uint32, v []byte) bool) {
	for i := int(from / pageSlots); i < len(t.pages); i++ {
		p := t.pages[i]
		if p == nil {
			continue
		}
		left := p.present
		if i == int(from/pageSlots) {
			left &= ^uint64(0) << (from % pageSlots)
		}
		for left != 0 {
			s := uint32(bits.TrailingZeros64(left))
			left &= left - 1
			o := uint32(i)*pageSlots + s
			if v := t.get(o); v != nil && !fn(o, v) {
				return
			}
		}
	}
}

// bytes is roughly what the table takes in memory.
func (t *table) bytes() int64 {
	n := int64(len(t.pages)) * 8
	for _, p := range t.pages {
		if p != nil {
			n += 88 + int64(cap(p.data)) + 2*int64(cap(p.ends))
		}
	}
	for _, b := range t.big {
		n += 80 + int64(cap(b.b))
	}
	return n
}

// frozenTable is a table at one instant.
type frozenTable struct {
	size    int
	pages   []*page
	changed []changedPage // those to write, unless all is set
	all     bool
	big     map[uint32][]byte // among those to write
}

// freeze hands over the values that changed since the last freeze, or all. It
// copies pointers to pages, no values.
func (t *table) freeze(all bool) frozenTable {
	f := frozenTable{size: t.size, pages: slices.Clone(t.pages), changed: t.changed, all: all, big: map[uint32][]byte{}}
	if all {
		for o, b := range t.big {
			f.big[o] = b.b
		}
	} else {
		for o := range t.changedBig {
			if b := t.big[o]; b != nil {
				f.big[o] = b.b
			}
		}
	}
	t.changed, t.changedBig = nil, nil
	t.epoch++
	return f
}

// each calls fn for the values to write in order; v is nil for one that is
// gone.
func (f *frozenTable) each(fn func(o uint32, v []byte) error) error {
	if f.all {
		for i, p := range f.pages {
			if p == nil {
				continue
			}
			if err := f.eachOf(changedPage{uint32(i), p.present}, fn); err != nil {
				return err
			}
		}
		return nil
	}
	slices.SortFunc(f.changed, func(a, b changedPage) int { return int(a.index) - int(b.index) })
	for _, c := range f.changed {
		if err := f.eachOf(c, fn); err != nil {
			return err
		}
	}
	return nil
}

func (f *frozenTable) eachOf(c changedPage, fn func(o uint32, v []byte) error) error {
	p := f.pages[c.index]
	for left := c.slots; left != 0; left &= left - 1 {
		s := uint32(bits.TrailingZeros64(left))
		o := c.index*pageSlots + s
		var v []byte
		if p.present>>s&1 == 1 {
			if v = p.slot(f.size, s); len(v) == 0 {
				v = f.big[o]
			}
		}
		if err := fn(o, v); err != nil {
			return err
		}
	}
	return nil
}
