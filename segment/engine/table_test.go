package engine

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// tableModel is a table and the plain map it must equal.
type tableModel struct {
	t     *testing.T
	rng   *rand.Rand
	size  int
	table table
	want  map[uint32]string
	// replayed is what all values, then the deltas, put in order come to.
	replayed map[uint32]string
}

// value draws a value: of the fixed size, or of any length around the bound of
// what is kept in a page.
func (m *tableModel) value() []byte {
	n := m.size
	if n == 0 {
		switch m.rng.IntN(8) {
		case 0:
			n = maxInline - 1 + m.rng.IntN(3)
		case 1:
			n = 1 + m.rng.IntN(3*maxInline)
		default:
			n = 1 + m.rng.IntN(40)
		}
	}
	v := make([]byte, n)
	for i := range v {
		v[i] = byte(m.rng.IntN(256))
	}
	return v
}

// ordinal draws from a few crowded pages and some that are far away.
func (m *tableModel) ordinal() uint32 {
	if m.rng.IntN(20) == 0 {
		return uint32(m.rng.IntN(50_000))
	}
	return uint32(m.rng.IntN(200))
}

func (m *tableModel) step() {
	o := m.ordinal()
	switch m.rng.IntN(5) {
	case 0:
		v := m.value()
		m.table.set(o, v)
		m.want[o] = string(v)
		for i := range v { // the table has its own copy
			v[i]++
		}
	case 1:
		m.table.remove(o)
		delete(m.want, o)
	default:
		m.mutate(o)
	}
}

// mutate replaces a value, or changes it in place, grows it, cuts it or drops
// it, as folds do.
func (m *tableModel) mutate(o uint32) {
	var now []byte
	m.table.mutate(o, func(v []byte) []byte {
		if (v == nil) != (m.want[o] == "") || string(v) != m.want[o] {
			m.t.Errorf("mutate is handed %x for %d, want %x", v, o, m.want[o])
		}
		switch n := m.rng.IntN(10); {
		case n == 0:
			v = nil
		case n == 1 && v == nil: // stays away
		case v == nil || n == 2:
			v = m.value()
		case n < 5 && m.size == 0:
			v = append(v, m.value()...)
		case n < 7 && m.size == 0:
			v = append(v[:0], v[m.rng.IntN(len(v)):]...)
		default:
			v[m.rng.IntN(len(v))]++
		}
		if len(v) > 5*maxInline {
			v = v[:m.rng.IntN(5*maxInline)+1]
		}
		now = bytes.Clone(v)
		return v
	})
	if now == nil {
		delete(m.want, o)
	} else {
		m.want[o] = string(now)
	}
}

func (m *tableModel) check() {
	if m.table.n != len(m.want) {
		m.t.Fatalf("%d values, want %d", m.table.n, len(m.want))
	}
	o := m.ordinal()
	if got := m.table.get(o); (got != nil) != (m.want[o] != "") || string(got) != m.want[o] {
		m.t.Fatalf("%d is %x, want %x", o, got, m.want[o])
	}
	from := m.ordinal()
	got := map[uint32]string{}
	last := int64(-1)
	m.table.each(from, func(o uint32, v []byte) bool {
		if int64(o) <= last || o < from {
			m.t.Fatalf("each from %d meets %d after %d", from, o, last)
		}
		last = int64(o)
		got[o] = string(v)
		return true
	})
	want := maps.Clone(m.want)
	maps.DeleteFunc(want, func(o uint32, _ string) bool { return o < from })
	if !maps.Equal(got, want) {
		m.t.Fatalf("each from %d: %d values, want %d", from, len(got), len(want))
	}
}

// TestTableAgainstMap (R1) changes tables at random, with values on both sides
// of the bound that keeps them in a page, and freezes them in between: what was
// frozen stays as it was while the table goes on changing, and all values with
// the deltas after them, in order, make the same table.
func TestTableAgainstMap(t *testing.T) {
	for seed := range uint64(24) {
		m := &tableModel{
			t: t, rng: rand.New(rand.NewPCG(seed, 3)), size: []int{0, 0, 4, 8}[seed%4],
			want: map[uint32]string{}, replayed: map[uint32]string{},
		}
		m.table = newTable(m.size)
		type frozen struct {
			f    frozenTable
			all  bool
			want map[uint32]string
		}
		var files []frozen
		for range 40 {
			for range m.rng.IntN(120) {
				m.step()
			}
			m.check()
			all := len(files) == 0 || m.rng.IntN(6) == 0
			files = append(files, frozen{m.table.freeze(all), all, maps.Clone(m.want)})
		}
		for _, f := range files {
			if f.all {
				clear(m.replayed)
			}
			last := int64(-1)
			err := f.f.each(func(o uint32, v []byte) error {
				if int64(o) <= last {
					t.Fatalf("seed %d: a frozen table has %d after %d", seed, o, last)
				}
				last = int64(o)
				if v == nil {
					delete(m.replayed, o)
				} else {
					m.replayed[o] = string(v)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(m.replayed, f.want) {
				t.Fatalf("seed %d: all values and the deltas after them make %d values, want %d", seed, len(m.replayed), len(f.want))
			}
		}
	}
}

// TestTableDeltasAreSmall (L3): a freeze hands over what changed since the last
// one, each ordinal once, and nothing else.
func TestTableDeltasAreSmall(t *testing.T) {
	for _, size := range []int{0, 8} {
		x := newTable(size)
		for o := range uint32(10_000) {
			x.set(o, make([]byte, 8))
		}
		x.freeze(true)
		x.set(77, make([]byte, 8))
		x.set(77, []byte("12345678"))
		x.remove(6400)
		x.mutate(9999, func(v []byte) []byte { return v })
		count := func() (got []uint32) {
			f := x.freeze(false)
			_ = f.each(func(o uint32, v []byte) error {
				if (v == nil) != (o == 6400) {
					t.Errorf("%d is %x", o, v)
				}
				got = append(got, o)
				return nil
			})
			return got
		}
		if got := count(); !slices.Equal(got, []uint32{77, 6400, 9999}) {
			t.Errorf("size %d: the delta has %v", size, got)
		}
		if got := count(); len(got) != 0 {
			t.Errorf("size %d: a delta without changes has %v", size, got)
		}
	}
}

// TestTableFrozenIsReadWhileChanging (R1) reads frozen tables in goroutines of
// their own while the table changes; the race detector watches.
func TestTableFrozenIsReadWhileChanging(t *testing.T) {
	for seed := range uint64(8) {
		m := &tableModel{t: t, rng: rand.New(rand.NewPCG(seed, 4)), size: int(seed % 2 * 8), want: map[uint32]string{}}
		m.table = newTable(m.size)
		var readers sync.WaitGroup
		for i := range 20 {
			for range 200 {
				m.step()
			}
			f := m.table.freeze(i%5 == 0)
			want := maps.Clone(m.want)
			readers.Go(func() {
				for range 3 {
					_ = f.each(func(o uint32, v []byte) error {
						if string(v) != want[o] {
							t.Errorf("seed %d: frozen %d is %x, want %x", seed, o, v, want[o])
						}
						return nil
					})
				}
			})
		}
		readers.Wait()
	}
}
