package engine

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// seat is where the values of a state are.
type seat struct {
	group *group
	slot  uint8
}

// readGroup reads what one file says of a group: the rows it has replace those
// of the files before. seats are those of the file.
func (r *Restorer) readGroup(in *bufio.Reader, number func() (uint64, error), block func() ([]byte, error), specs map[uint32]fold.Spec, seats map[uint32]seat) error {
	var ids [groupSlots]uint32
	var folds [groupSlots]fold.Fold
	for slot := range ids {
		id, err := number()
		if err != nil {
			return err
		}
		if id == 0 {
			continue
		}
		sp, ok := specs[uint32(id)]
		f := sp.New()
		if _, twice := seats[uint32(id)]; !ok || f == nil || twice || uint64(uint32(id)) != id {
			return fmt.Errorf("%w: state %d is of no known kind or there twice", ErrFormat, id)
		}
		ids[slot], folds[slot] = uint32(id), f
		seats[uint32(id)] = seat{nil, uint8(slot)} // its group comes below
	}
	g, err := r.group(&ids)
	if err != nil {
		return err
	}
	for _, at := range seats {
		if at.group == g {
			return fmt.Errorf("%w: the rows of a group are there twice", ErrFormat)
		}
	}
	for slot, id := range ids {
		if id != 0 {
			seats[id] = seat{g, uint8(slot)}
		}
	}
	for o := int64(-1); ; {
		d, err := number()
		if err == nil && d == 0 {
			r.page.finish(g)
		}
		if err != nil || d == 0 {
			return err
		}
		if o += int64(min(d, maxOrdinal+1)); o >= maxOrdinal {
			return fmt.Errorf("%w: ordinal %d", ErrFormat, o)
		}
		if err := r.readRow(in, block, g, uint32(o), &ids, &folds); err != nil {
			return err
		}
	}
}

// group is the one in which the files before have these states, or a new one.
// A state that they have in its slot and that is gone leaves it.
func (r *Restorer) group(ids *[groupSlots]uint32) (*group, error) {
	var g *group
	for slot, id := range ids {
		if was, known := r.seats[id]; known {
			if was.slot != uint8(slot) || g != nil && was.group != g {
				return nil, fmt.Errorf("%w: state %d has moved", ErrFormat, id)
			}
			g = was.group
		}
	}
	if g == nil {
		g = &group{}
	}
	for slot, id := range ids {
		if st := g.states[slot]; st != nil && st.id != id {
			g.retire(uint8(slot))
		}
		if id != 0 && g.states[slot] == nil {
			for g.retired>>slot&1 == 1 {
				g.clean(g.pages.Len())
			}
			g.place(&state{id: id}, uint8(slot)) // stands in for the one to come
		}
	}
	if len(g.live) == 0 {
		return nil, fmt.Errorf("%w: rows of no state", ErrFormat)
	}
	return g, nil
}

// readRow reads the values of one profile, in order of slots.
func (r *Restorer) readRow(in *bufio.Reader, block func() ([]byte, error), g *group, o uint32, ids *[groupSlots]uint32, folds *[groupSlots]fold.Fold) error {
	n, err := in.ReadByte()
	if err != nil {
		return err
	}
	ed := &r.edit
	ed.begin(g, o)
	next := uint8(0) // the first slot not spoken of
	for ; n > 0; n-- {
		slot, err := in.ReadByte()
		if err != nil {
			return err
		}
		v, err := block()
		if err != nil {
			return err
		}
		if slot < next || slot >= groupSlots || folds[slot] == nil || !folds[slot].Valid(v) {
			return fmt.Errorf("%w: value of profile %d in slot %d", ErrFormat, o, slot)
		}
		r.without(ids, next, slot)
		if old, big := ed.take(slot); big != nil {
			ed.putBig(slot, big, append(big.b[:0], v...))
		} else {
			ed.put(slot, old, v, true)
		}
		next = slot + 1
	}
	r.without(ids, next, groupSlots)
	if row, changed := ed.result(); changed {
		r.page.put(g, o, row)
	}
	return nil
}

// newPages makes the pages that a group does not have yet, of rows that come in order: each once
// and as large as its rows, where [group.put] would make it larger with each row. No row counts
// as changed: see [Engine.adopt].
type newPages struct {
	index uint32
	ends  [pageRows]uint16
	space []byte // the rows
}

// put is [group.put] of a group whose rows come in order.
func (n *newPages) put(g *group, o uint32, row []byte) {
	index := o / pageRows
	if n.index != index {
		n.finish(g)
	}
	if g.pages.At(int(index)) != nil {
		g.put(o, row)
		return
	}
	n.index = index
	n.space = append(n.space, row...)
	for r := o % pageRows; r < pageRows; r++ {
		n.ends[r] = uint16(len(n.space))
	}
}

// finish hands the group the page whose rows came last, if it is a new one.
func (n *newPages) finish(g *group) {
	if len(n.space) > 0 {
		p := newPage(withRoom(len(n.space)))
		p.ends = n.ends
		copy(p.space(), n.space)
		g.add(n.index, 0, p)
		n.ends, n.space = [pageRows]uint16{}, n.space[:0]
	}
}

// without drops the values of the slots from one to before another.
func (r *Restorer) without(ids *[groupSlots]uint32, from, to uint8) {
	ed := &r.edit
	for slot := from; slot < to && len(ed.rest) > 0; slot++ {
		if ids[slot] == 0 {
			continue
		}
		if old, big := ed.take(slot); big != nil {
			ed.putBig(slot, big, nil)
		} else if old != nil {
			ed.put(slot, old, nil, true)
		}
	}
}

// seat gives a state the place that the files have it in.
func (e *Engine) seat(st *state, seats map[uint32]seat) error {
	at, ok := seats[st.id]
	if !ok {
		return fmt.Errorf("%w: it has no rows", ErrFormat)
	}
	k := e.kinOf(st)
	mine := slices.Contains(k.groups, at.group)
	for _, other := range at.group.live {
		// Those that are seated already are of the engine, the others stand in.
		if e.states[other.id] == other && e.kinOf(other) != k {
			return fmt.Errorf("%w: its rows are those of other events", ErrFormat)
		}
	}
	if !mine {
		k.groups = append(k.groups, at.group)
	}
	at.group.place(st, at.slot)
	k.dispatch = nil
	return nil
}

func (e *Engine) kinOf(st *state) *kin {
	if st.source == nil {
		return e.spans
	}
	return e.types[st.source.event]
}

// adopt makes the groups the engine's: what is in them is written, and answers
// and what falls due follow from it, for all leaves in one pass.
func (e *Engine) adopt(states []stateEntry) {
	met := map[*group]bool{}
	for _, x := range states {
		g := e.states[x.ID].group
		if met[g] {
			continue
		}
		met[g] = true
		g.settle()
		g.unshared = true
		g.eachRow(0, func(o uint32, row []byte) bool {
			g.each(o, row, func(st *state, v []byte) {
				for _, l := range st.leaves {
					if l.holds(v, e.now) != l.base {
						l.diff.Add(o)
					}
					if d := l.due(v, e.now); d != never {
						e.schedule(l, o, d)
					}
				}
			})
			return true
		})
		if g.retired != 0 {
			e.stale = append(e.stale, g)
		}
	}
}
