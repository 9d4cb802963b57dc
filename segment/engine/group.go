package engine

import (
	"math/bits"
	"slices"

	"github.com/musterhq/muster/segment/engine/internal/sharedlist"
)

// groupSlots is how many states share rows.
const groupSlots = 16

// maxInline is the longest value kept in a row; longer ones are kept outside
// and changed in place. Tests lower it.
var maxInline = maxSection

// group keeps the values of up to sixteen states that are changed together,
// those of one type of events or of profiles' fields. It maps ordinals to rows:
// what one event touches lies together, whatever the number of states.
//
// Pages are copied before the first write after [group.freeze], so what was
// frozen can be read without a lock while the group keeps changing.
type group struct {
	states [groupSlots]*state // by slot; nil where there is none
	live   []*state           // in order of slots
	counts [groupSlots]int    // values in each slot
	// retired are slots whose state is gone and whose values are not all
	// dropped yet. They are not read, and no state gets the slot until then.
	retired uint16
	cleanAt int // the page at which dropping continues

	pages sharedlist.List[page]
	big   map[bigKey]*bigValue // values longer than maxInline
	epoch uint32
	// unshared says that what was read was not frozen yet: its pages are the writer's own,
	// though of an earlier epoch.
	unshared bool
	// changed are the pages written to since the freeze, changedBig the big
	// values in rows that were.
	changed    []changedPage
	changedBig map[bigKey]struct{}
	size       int64 // bytes of pages and big values
}

// changedPage says which rows of a page were written.
type changedPage struct {
	index uint32
	rows  uint32
}

// bigKey names a value by slot and ordinal.
type bigKey uint64

func bigOf(slot uint8, o uint32) bigKey { return bigKey(slot)<<32 | bigKey(o) }

type bigValue struct {
	epoch uint32
	b     []byte
}

// bigBytes is roughly what a big value takes beside its bytes.
const bigBytes = 80

// join gives a state the first slot that is free; ok is false when none is.
func (g *group) join(st *state) (ok bool) {
	for slot := range g.states {
		if g.states[slot] == nil && g.retired>>slot&1 == 0 {
			g.place(st, uint8(slot))
			return true
		}
	}
	return false
}

// place gives a state a slot that is free.
func (g *group) place(st *state, slot uint8) {
	st.group, st.slot = g, slot
	g.states[slot] = st
	g.arrange()
}

// retire takes a state away. Its values stay where they are until
// [group.clean] meets them.
func (g *group) retire(slot uint8) {
	g.states[slot] = nil
	if g.counts[slot] > 0 {
		g.retired |= 1 << slot
	}
	g.arrange()
}

func (g *group) arrange() {
	g.live = nil
	for _, st := range g.states {
		if st != nil {
			g.live = append(g.live, st)
		}
	}
}

// clean drops values of retired slots from some pages and reports whether all
// are gone.
func (g *group) clean(pages int) bool {
	for ; pages > 0 && g.retired != 0; pages-- {
		if g.cleanAt >= g.pages.Len() {
			g.cleanAt = 0
		}
		g.cleanPage(uint32(g.cleanAt))
		g.cleanAt++
	}
	return g.retired == 0
}

func (g *group) cleanPage(index uint32) {
	p := g.pages.At(int(index))
	if p == nil || !g.stale(p.rows()) {
		return
	}
	p = g.edit(index, 0) // what is gone was not there for those who read
	to, from, space := 0, 0, p.space()
	for r := range p.ends {
		for from < int(p.ends[r]) {
			slot, n := space[from], sectionHead+int(space[from+1])
			if g.retired>>slot&1 == 1 {
				if n == sectionHead {
					g.dropBig(slot, index*pageRows+uint32(r))
				}
				g.counts[slot]--
			} else {
				copy(space[to:], space[from:from+n])
				to += n
			}
			from += n
		}
		p.ends[r] = uint16(to)
	}
	for left := g.retired; left != 0; left &= left - 1 {
		if slot := bits.TrailingZeros16(left); g.counts[slot] == 0 {
			g.retired &^= 1 << slot
		}
	}
}

// stale reports whether some section is in a retired slot.
func (g *group) stale(rows []byte) bool {
	for i := 0; i < len(rows); i += sectionHead + int(rows[i+1]) {
		if g.retired>>rows[i]&1 == 1 {
			return true
		}
	}
	return false
}

// row is the sections of an ordinal. It points into the group and is valid
// until the next change.
func (g *group) row(o uint32) []byte {
	if p := g.pages.At(int(o / pageRows)); p != nil {
		return p.row(o)
	}
	return nil
}

// get is the value in a slot of an ordinal's row, nil when there is none.
func (g *group) get(o uint32, slot uint8) []byte {
	v, ok := section(g.row(o), slot)
	if ok && len(v) == 0 {
		return g.big[bigOf(slot, o)].b
	}
	return v
}

// edit returns a page for writing to some of its rows.
func (g *group) edit(index, rows uint32) *page {
	p := g.pages.At(int(index))
	switch {
	case p == nil:
		p = newPage(0)
	case p.epoch != g.epoch:
		g.size -= p.size()
		if !g.unshared {
			p = p.clone(withRoom(len(p.rows())))
		}
	default:
		g.changed[p.at].rows |= rows
		return p
	}
	g.add(index, rows, p)
	return p
}

// add takes a page for writing, of which some rows were written.
func (g *group) add(index, rows uint32, p *page) {
	p.epoch, p.at = g.epoch, uint32(len(g.changed))
	g.size += p.size()
	g.pages.Set(int(index), p)
	g.changed = append(g.changed, changedPage{index, rows})
}

// put replaces the row of an ordinal.
func (g *group) put(o uint32, row []byte) {
	p := g.edit(o/pageRows, 1<<(o%pageRows))
	size := p.size()
	if changed := p.put(o, row); changed != p {
		p = changed
		g.pages.Set(int(o/pageRows), p)
		g.size += p.size() - size
	}
	if len(g.big) > 0 {
		g.noteBig(o, row)
	}
}

// noteBig notes the values of a changed row that are kept elsewhere.
func (g *group) noteBig(o uint32, row []byte) {
	for i := 0; i < len(row); i += sectionHead + int(row[i+1]) {
		if row[i+1] == 0 {
			if g.changedBig == nil {
				g.changedBig = map[bigKey]struct{}{}
			}
			g.changedBig[bigOf(row[i], o)] = struct{}{}
		}
	}
}

// ownBig is a big value for writing.
func (g *group) ownBig(slot uint8, o uint32) *bigValue {
	k := bigOf(slot, o)
	b := g.big[k]
	if b.epoch != g.epoch && !g.unshared {
		g.size -= int64(cap(b.b))
		b = &bigValue{b: slices.Clone(b.b)}
		g.size += int64(cap(b.b))
		g.big[k] = b
	}
	b.epoch = g.epoch
	return b
}

// addBig keeps a copy of a value outside of its row.
func (g *group) addBig(slot uint8, o uint32, v []byte) {
	if g.big == nil {
		g.big = map[bigKey]*bigValue{}
	}
	b := &bigValue{epoch: g.epoch, b: slices.Clone(v)}
	g.big[bigOf(slot, o)] = b
	g.size += bigBytes + int64(cap(b.b))
}

func (g *group) dropBig(slot uint8, o uint32) {
	k := bigOf(slot, o)
	g.size -= bigBytes + int64(cap(g.big[k].b))
	delete(g.big, k)
}

// eachRow calls fn for the rows that are not empty from an ordinal on, in
// order, until fn returns false. The group must not change meanwhile.
func (g *group) eachRow(from uint32, fn func(o uint32, row []byte) bool) {
	for i := int(from / pageRows); i < g.pages.Len(); i++ {
		p := g.pages.At(i)
		if p == nil {
			continue
		}
		for o := max(from, uint32(i)*pageRows); o < uint32(i+1)*pageRows; o++ {
			if row := p.row(o); len(row) > 0 && !fn(o, row) {
				return
			}
		}
	}
}

// each calls fn for every value of a row, in order of slots; slots without a
// state are passed over.
func (g *group) each(o uint32, row []byte, fn func(st *state, v []byte)) {
	for i := 0; i < len(row); {
		slot, n := row[i], i+sectionHead+int(row[i+1])
		if st := g.states[slot]; st != nil {
			v := row[i+sectionHead : n : n]
			if len(v) == 0 {
				v = g.big[bigOf(slot, o)].b
			}
			fn(st, v)
		}
		i = n
	}
}

// bytes is roughly what the group takes in memory.
func (g *group) bytes() int64 { return g.size + g.pages.Bytes() }
