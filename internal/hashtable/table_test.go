package hashtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// model is a table beside the plainest one.
type model struct {
	t    testing.TB
	tab  *Table
	want map[Key][]byte
}

func newModel(t testing.TB, valueSize int) *model {
	return &model{t, New(valueSize), map[Key][]byte{}}
}

func (m *model) put(k Key, v []byte) {
	copy(m.tab.Put(&k), v)
	m.want[k] = v
}

func (m *model) remove(k Key) {
	m.t.Helper()
	_, there := m.want[k]
	if got := m.tab.Delete(&k); got != there {
		m.t.Fatalf("delete %x says %t, there: %t", k, got, there)
	}
	delete(m.want, k)
}

func (m *model) get(k Key) {
	m.t.Helper()
	got := m.tab.Get(&k)
	if want, there := m.want[k]; (got != nil) != there || !bytes.Equal(got, want) {
		m.t.Fatalf("%x has %x, want %x", k, got, want)
	}
}

// check compares everything, and what the buckets say of themselves.
func (m *model) check() {
	m.t.Helper()
	if m.tab.Len() != len(m.want) {
		m.t.Fatalf("%d entries, want %d", m.tab.Len(), len(m.want))
	}
	for k := range m.want {
		m.get(k)
	}
	seen := map[Key]bool{}
	m.tab.All(func(k *Key, v []byte) bool {
		if seen[*k] || !bytes.Equal(v, m.want[*k]) {
			m.t.Fatalf("%x is met twice (%t) or has %x, want %x", *k, seen[*k], v, m.want[*k])
		}
		seen[*k] = true
		return true
	})
	if len(seen) != len(m.want) {
		m.t.Fatalf("%d entries are met, want %d", len(seen), len(m.want))
	}
	pages := [][]bucket{m.tab.small}
	for i, s := range m.tab.dir {
		if m.tab.first(i) != i {
			continue
		}
		pages = append(pages, s.page[:])
		n := 0
		m.tab.each(s.page[:], func(*Key, []byte) bool { n++; return true })
		if n != int(s.n) {
			m.t.Fatalf("page of slot %d has %d entries, says %d", i, n, s.n)
		}
	}
	for _, p := range pages {
		passed := make([]int, len(p))
		for i := range p {
			at := bucketHead
			for used := p[i][0]; used != 0; used >>= 1 {
				if used&1 == 1 {
					for b := int(binary.LittleEndian.Uint32(p[i][at:])) & (len(p) - 1); b != i; b = (b + 1) & (len(p) - 1) {
						passed[b]++
					}
				}
				at += m.tab.entrySize
			}
		}
		for i := range p {
			if got := int(binary.LittleEndian.Uint16(p[i][2:])); got != passed[i] {
				m.t.Fatalf("bucket %d says %d passed it, %d did", i, got, passed[i])
			}
		}
	}
}

func randomKey(rng *rand.Rand) (k Key) {
	binary.LittleEndian.PutUint64(k[:], rng.Uint64())
	binary.LittleEndian.PutUint64(k[8:], rng.Uint64())
	return k
}

// TestTableEqualsMap: whatever is put and removed, the table holds what a map
// does, while it grows from nothing to many pages and while it empties.
func TestTableEqualsMap(t *testing.T) {
	for _, size := range []int{0, 4, 12, 14} {
		t.Run(fmt.Sprint("value=", size), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(size)))
			m := newModel(t, size)
			var keys []Key
			value := func() []byte {
				v := make([]byte, size)
				for i := range v {
					v[i] = byte(rng.Uint32())
				}
				return v
			}
			for step := range 60_000 {
				removes := 2 + 5*(step/20_000)%9 // 2, 7, 3 of 10
				switch n := rng.IntN(10); {
				case n < removes && len(keys) > 0:
					i := rng.IntN(len(keys))
					m.remove(keys[i])
					if rng.IntN(4) > 0 { // else it is removed again some time
						keys[i] = keys[len(keys)-1]
						keys = keys[:len(keys)-1]
					}
				case n == 9 && len(keys) > 0:
					m.put(keys[rng.IntN(len(keys))], value())
				default:
					k := randomKey(rng)
					m.get(k)
					keys = append(keys, k)
					m.put(k, value())
				}
				if len(keys) > 0 {
					m.get(keys[rng.IntN(len(keys))])
				}
				if step%5000 == 0 {
					m.check()
				}
			}
			m.check()
			for k := range m.want {
				m.remove(k)
			}
			m.check()
		})
	}
}

// TestTableBeginsSmall: a table of few entries takes little memory, one of many
// the memory that is promised.
func TestTableBeginsSmall(t *testing.T) {
	tab := New(4)
	if n := tab.Bytes(); n > 1024 {
		t.Errorf("an empty table takes %d bytes", n)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for tab.Len() < 1_000_000 {
		k := randomKey(rng)
		tab.Put(&k)
		if n := tab.Len(); n >= 100_000 && n%10_000 == 0 {
			if per := float64(tab.Bytes()) / float64(n); per < 26 || per > 56 {
				t.Fatalf("%d entries take %.1f bytes each", n, per)
			}
		}
	}
}

// FuzzTable does what the bytes say. Keys have few different bits where a page
// finds its buckets, so that many pass their own; the directory's bits are even.
func FuzzTable(f *testing.F) {
	f.Add([]byte("0123456789"))
	all := make([]byte, 256) // keys of which halves are equal among them
	for i := range all {
		all[i] = byte(i)
	}
	f.Add(all)
	f.Add(bytes.Repeat([]byte{0, 1, 2, 250, 3, 255}, 200))
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := newModel(t, 4)
		for i, op := range ops {
			k := Key{op & 31, op & 1}
			binary.BigEndian.PutUint64(k[8:], uint64(op&63)*0x9e3779b97f4a7c15)
			switch {
			case op < 128:
				m.put(k, []byte{op, byte(i), 0, 1})
			case op < 192:
				m.get(k)
			default:
				m.remove(k)
			}
		}
		m.check()
	})
}
