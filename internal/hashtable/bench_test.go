package hashtable

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
)

// benchSizes are the sizes of tables that are measured; MUSTER_LONG adds the
// largest.
func benchSizes() []int {
	sizes := []int{100_000, 1_000_000}
	if testlevel.Long() {
		sizes = append(sizes, 10_000_000)
	}
	return sizes
}

// benchKey is the key of a number.
func benchKey(n uint64) (k Key) {
	p := rand.NewPCG(n, 1)
	binary.LittleEndian.PutUint64(k[:], p.Uint64())
	binary.LittleEndian.PutUint64(k[8:], p.Uint64())
	return k
}

var sink uint32

// BenchmarkGet looks keys up that are there (hit) and that are not (miss), one
// after the other, or a hundred touched before they are looked up (batch), in
// the table and in a Go map.
func BenchmarkGet(b *testing.B) {
	for _, n := range benchSizes() {
		tab := New(4)
		ref := map[Key]uint32{}
		for i := range n {
			k := benchKey(uint64(i))
			binary.LittleEndian.PutUint32(tab.Put(&k), uint32(i))
			ref[k] = uint32(i)
		}
		const asked = 1 << 16
		for _, what := range []string{"hit", "miss"} {
			keys := make([]Key, asked)
			rng := rand.New(rand.NewPCG(9, 9))
			for i := range keys {
				x := uint64(rng.IntN(n))
				if what == "miss" {
					x += uint64(n)
				}
				keys[i] = benchKey(x)
			}
			name := fmt.Sprintf("n=%d/%s", n, what)
			b.Run(name+"/table", func(b *testing.B) {
				for i := range b.N {
					if v := tab.Get(&keys[i%asked]); v != nil {
						sink += binary.LittleEndian.Uint32(v)
					}
				}
			})
			b.Run(name+"/map", func(b *testing.B) {
				for i := range b.N {
					sink += ref[keys[i%asked]]
				}
			})
			b.Run(name+"/table-batch", func(b *testing.B) {
				for i := 0; i < b.N; i += 64 {
					batch := keys[i%asked:][:64]
					for k := range batch {
						tab.Prefetch(&batch[k])
					}
					for k := range batch {
						if v := tab.Get(&batch[k]); v != nil {
							sink += binary.LittleEndian.Uint32(v)
						}
					}
				}
			})
			b.Run(name+"/map-batch", func(b *testing.B) {
				for i := 0; i < b.N; i += 64 {
					batch := keys[i%asked:][:64]
					for k := range batch {
						sink += ref[batch[k]]
					}
					for k := range batch {
						sink += ref[batch[k]]
					}
				}
			})
		}
	}
}

// BenchmarkPut fills tables from nothing. The longest a single insertion took is
// reported with it.
func BenchmarkPut(b *testing.B) {
	const n = 1_000_000
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = benchKey(uint64(i))
	}
	b.Run("table", func(b *testing.B) {
		var tab *Table
		for i := range b.N {
			if i%n == 0 {
				tab = New(4)
			}
			binary.LittleEndian.PutUint32(tab.Put(&keys[i%n]), uint32(i))
		}
	})
	b.Run("map", func(b *testing.B) {
		var ref map[Key]uint32
		for i := range b.N {
			if i%n == 0 {
				ref = map[Key]uint32{}
			}
			ref[keys[i%n]] = uint32(i)
		}
	})
	b.Run("table-pauses", func(b *testing.B) {
		var tab *Table
		var longest time.Duration
		for i := range b.N {
			if i%n == 0 {
				tab = New(4)
			}
			begun := time.Now()
			tab.Put(&keys[i%n])
			longest = max(longest, time.Since(begun))
		}
		b.ReportMetric(float64(longest)/1e3, "longest-us")
	})
}
