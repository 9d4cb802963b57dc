package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// auditGroup holds a group's counts and sizes against what is in it.
func auditGroup(g *group) error {
	var counts [groupSlots]int
	size, bigs := int64(0), 0
	for i := range g.pages.Len() {
		p := g.pages.At(i)
		if p == nil {
			continue
		}
		size += p.size()
		if int(p.ends[pageRows-1]) > int(p.room) {
			return fmt.Errorf("page %d has room for %d bytes, its rows take %d", i, p.room, p.ends[pageRows-1])
		}
		for o := uint32(i) * pageRows; o < uint32(i+1)*pageRows; o++ {
			last := -1
			row := p.row(o)
			for len(row) > 0 {
				slot, n := row[0], sectionHead+int(row[1])
				if int(slot) <= last || slot >= groupSlots {
					return fmt.Errorf("row %d has slot %d after %d", o, slot, last)
				}
				if g.states[slot] == nil && g.retired>>slot&1 == 0 {
					return fmt.Errorf("row %d has a value in slot %d, which nobody had", o, slot)
				}
				if big := g.big[bigOf(slot, o)]; n == sectionHead {
					if big == nil {
						return fmt.Errorf("row %d lacks its big value in slot %d", o, slot)
					}
					bigs++
					size += bigBytes + int64(cap(big.b))
				}
				last = int(slot)
				counts[slot]++
				row = row[n:]
			}
		}
	}
	if counts != g.counts || bigs != len(g.big) {
		return fmt.Errorf("values are %v, counted %v; %d big of %d", counts, g.counts, bigs, len(g.big))
	}
	if size != g.size {
		return fmt.Errorf("%d bytes, counted %d", size, g.size)
	}
	for slot, st := range g.states {
		if st != nil && (g.retired>>slot&1 == 1 || !slices.Contains(g.live, st)) {
			return fmt.Errorf("slot %d is of a state and retired, or not among those that are live", slot)
		}
	}
	return nil
}

// stateValues are a state's values by ordinal.
type stateValues map[uint32]string

// groupModel is a group and, by the states' numbers, the plain maps it must
// equal.
type groupModel struct {
	t     *testing.T
	rng   *rand.Rand
	group *group
	edit  rowEdit
	next  uint32
	want  map[uint32]stateValues
}

func newGroupModel(t *testing.T, seed, stream uint64) *groupModel {
	inlineUpTo(t, []int{maxSection, 20, 60}[seed%3])
	return &groupModel{t: t, rng: rand.New(rand.NewPCG(seed, stream)), group: &group{}, want: map[uint32]stateValues{}}
}

// value draws a value of any length around the bound of what is kept in a row.
func (m *groupModel) value() []byte {
	n := 1 + m.rng.IntN(40)
	switch m.rng.IntN(8) {
	case 0:
		n = maxInline - 1 + m.rng.IntN(3)
	case 1:
		n = 1 + m.rng.IntN(3*maxInline)
	}
	v := make([]byte, n)
	for i := range v {
		v[i] = byte(m.rng.IntN(256))
	}
	return v
}

// ordinal draws from a few crowded pages and some that are far away.
func (m *groupModel) ordinal() uint32 {
	if m.rng.IntN(20) == 0 {
		return uint32(m.rng.IntN(20_000))
	}
	return uint32(m.rng.IntN(100))
}

func (m *groupModel) step() {
	switch n := m.rng.IntN(100); {
	case n < 4 || len(m.group.live) == 0:
		m.next++
		st := &state{id: m.next}
		if m.group.join(st) {
			m.want[st.id] = stateValues{}
			if st.values() != 0 {
				m.t.Fatalf("a new state has %d values", st.values())
			}
		} else if m.group.retired == 0 && len(m.group.live) < groupSlots {
			m.t.Fatal("there is room, and no state gets it")
		}
	case n < 6:
		st := m.some()
		delete(m.want, st.id)
		m.group.retire(st.slot)
	case n < 10:
		m.group.clean(1 + m.rng.IntN(5))
	case n < 25:
		st, o := m.some(), m.ordinal()
		st.remove(&m.edit, o)
		delete(m.want[st.id], o)
	case n < 50:
		m.mutate(m.some(), m.ordinal())
	default:
		m.event(m.ordinal())
	}
}

func (m *groupModel) some() *state { return m.group.live[m.rng.IntN(len(m.group.live))] }

// event changes some states of one row, as one event does.
func (m *groupModel) event(o uint32) {
	m.edit.begin(m.group, o)
	for _, st := range m.group.live {
		if m.rng.IntN(2) == 0 {
			continue
		}
		if old, big := m.edit.take(st.slot); big != nil {
			m.edit.putBig(st.slot, big, m.become(st, o, big.b))
		} else {
			v := m.become(st, o, m.edit.room(old))
			m.edit.put(st.slot, old, v, !bytes.Equal(old, v))
		}
	}
	m.edit.finish()
}

func (m *groupModel) mutate(st *state, o uint32) {
	st.mutate(&m.edit, o, func(v []byte) []byte { return m.become(st, o, v) })
}

// become replaces a value, or changes it in place, grows it, cuts it or drops
// it, as folds do.
func (m *groupModel) become(st *state, o uint32, v []byte) []byte {
	want := m.want[st.id]
	if string(v) != want[o] {
		m.t.Fatalf("state %d is handed %x for %d, want %x", st.id, v, o, want[o])
	}
	switch n := m.rng.IntN(10); {
	case n == 0:
		v = v[:0]
	case n == 1 && len(v) == 0: // stays away
	case len(v) == 0 || n == 2:
		v = m.value()
	case n < 5:
		v = append(v, m.value()...)
	case n < 7:
		v = append(v[:0], v[m.rng.IntN(len(v)):]...)
	case n == 7: // stays as it is
	default:
		v[m.rng.IntN(len(v))]++
	}
	if len(v) > 5*maxInline {
		v = v[:m.rng.IntN(5*maxInline)+1]
	}
	if len(v) == 0 {
		delete(want, o)
	} else {
		want[o] = string(v)
	}
	return v
}

func (m *groupModel) check() {
	if err := auditGroup(m.group); err != nil {
		m.t.Fatal(err)
	}
	for _, st := range m.group.live {
		want := m.want[st.id]
		if st.values() != len(want) {
			m.t.Fatalf("state %d has %d values, want %d", st.id, st.values(), len(want))
		}
		o := m.ordinal()
		if got := st.get(o); string(got) != want[o] || (got == nil) != (want[o] == "") {
			m.t.Fatalf("state %d has %x for %d, want %x", st.id, got, o, want[o])
		}
		from := m.ordinal()
		last := int64(-1)
		got := stateValues{}
		st.each(from, func(o uint32, v []byte) bool {
			if int64(o) <= last || o < from {
				m.t.Fatalf("each from %d meets %d after %d", from, o, last)
			}
			last = int64(o)
			got[o] = string(v)
			return true
		})
		for o, v := range want {
			if o >= from && got[o] != v {
				m.t.Fatalf("state %d, each from %d: %x for %d, want %x", st.id, from, got[o], o, v)
			}
			if o >= from {
				delete(got, o)
			}
		}
		if len(got) != 0 {
			m.t.Fatalf("state %d, each from %d: %d values too many", st.id, from, len(got))
		}
	}
}

func (m *groupModel) copy() map[uint32]stateValues {
	out := map[uint32]stateValues{}
	for id, v := range m.want {
		out[id] = maps.Clone(v)
	}
	return out
}

// TestGroupAgainstMaps (R1) changes the rows of states that come and go at
// random, with values on both sides of the bound that keeps them in a row, and
// freezes them in between. What was frozen stays as it was while the rows continue
// changing and slots get other states; all rows with the deltas after them make
// the same values; and no state is ever handed what was another's.
func TestGroupAgainstMaps(t *testing.T) {
	for seed := range uint64(24) {
		m := newGroupModel(t, seed, 3)
		type frozen struct {
			f    frozenGroup
			want map[uint32]stateValues
		}
		var files []frozen
		for range 30 {
			for range m.rng.IntN(150) {
				m.step()
			}
			m.check()
			files = append(files, frozen{m.group.freeze(len(files) == 0 || m.rng.IntN(6) == 0), m.copy()})
		}
		replayed := map[uint32]map[uint32]string{} // by ordinal, then state
		for _, f := range files {
			if f.f.all {
				clear(replayed)
			}
			last := int64(-1)
			err := f.f.each(func(o uint32, values []frozenValue) error {
				if int64(o) <= last {
					t.Fatalf("seed %d: frozen rows have %d after %d", seed, o, last)
				}
				last = int64(o)
				replayed[o] = map[uint32]string{}
				for _, x := range values {
					replayed[o][f.f.ids[x.slot]] = string(x.v)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got := map[uint32]stateValues{}
			for id := range f.want {
				got[id] = stateValues{}
			}
			for o, row := range replayed {
				for id, v := range row {
					if got[id] != nil {
						got[id][o] = v
					}
				}
			}
			for id, want := range f.want {
				if !maps.Equal(got[id], want) {
					t.Fatalf("seed %d: all rows and the deltas after them make %d values of state %d, want %d", seed, len(got[id]), id, len(want))
				}
			}
		}
	}
}

// TestGroupDeltasAreSmall (L3): a freeze hands over the rows that changed since
// the last one, each once, and nothing else.
func TestGroupDeltasAreSmall(t *testing.T) {
	g, ed := &group{}, &rowEdit{}
	a, b, gone := &state{id: 1}, &state{id: 2}, &state{id: 3}
	for _, st := range []*state{a, b, gone} {
		g.join(st)
	}
	set := func(st *state, o uint32, v []byte) { st.mutate(ed, o, func([]byte) []byte { return v }) }
	for o := range uint32(10_000) {
		set(a, o, make([]byte, 8))
		set(gone, o, make([]byte, 8))
	}
	set(b, 5000, make([]byte, 4*maxSection))
	g.freeze(true)
	set(a, 77, []byte("12345678"))
	set(b, 77, []byte("1"))
	a.remove(ed, 6400)
	gone.remove(ed, 6400)
	b.mutate(ed, 5000, func(v []byte) []byte { v[0]++; return v })
	g.retire(gone.slot)
	for !g.clean(10) { // what is dropped is no change
	}
	count := func() (got []uint32) {
		f := g.freeze(false)
		_ = f.each(func(o uint32, values []frozenValue) error {
			n := 0
			for _, x := range values {
				n += len(x.v)
			}
			if n != map[uint32]int{77: 9, 5000: 8 + 4*maxSection, 6400: 0}[o] {
				t.Errorf("row %d has %d bytes", o, n)
			}
			got = append(got, o)
			return nil
		})
		return got
	}
	if got := count(); !slices.Equal(got, []uint32{77, 5000, 6400}) {
		t.Errorf("the delta has %v", got)
	}
	if got := count(); len(got) != 0 {
		t.Errorf("a delta without changes has %v", got)
	}
	if err := auditGroup(g); err != nil {
		t.Error(err)
	}
}

// TestGroupFrozenIsReadWhileChanging (R1) reads frozen rows in goroutines of
// their own while the group changes; the race detector watches.
func TestGroupFrozenIsReadWhileChanging(t *testing.T) {
	for seed := range uint64(8) {
		m := newGroupModel(t, seed, 4)
		var readers sync.WaitGroup
		for i := range 20 {
			for range 200 {
				m.step()
			}
			f := m.group.freeze(i%5 == 0)
			want := m.copy()
			readers.Go(func() {
				for range 3 {
					_ = f.each(func(o uint32, values []frozenValue) error {
						met := map[uint32]bool{}
						for _, x := range values {
							met[f.ids[x.slot]] = true
							if string(x.v) != want[f.ids[x.slot]][o] {
								t.Errorf("seed %d: frozen %d is %x, want %x", seed, o, x.v, want[f.ids[x.slot]][o])
							}
						}
						for id, v := range want {
							if _, there := v[o]; there != met[id] {
								t.Errorf("seed %d: frozen row %d, state %d: %v, want %v", seed, o, id, met[id], there)
							}
						}
						return nil
					})
				}
			})
		}
		readers.Wait()
	}
}
