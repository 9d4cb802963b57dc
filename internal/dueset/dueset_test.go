package dueset

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSetEqualsSortedSlice compares the set with a sorted slice, over random
// changes.
func TestSetEqualsSortedSlice(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s Set
		var want []Item
		spread := int64(1) << (2 + seed%12)
		for step := range 20_000 {
			it := Item{r.Int64N(spread), r.Uint32N(8)}
			if seed%3 == 0 {
				it.Due += int64(step) // in order, mostly
			}
			i, have := slices.BinarySearchFunc(want, it, Compare)
			switch k := r.IntN(10); {
			case k < 5:
				if s.Add(it) == have {
					t.Fatalf("seed %d step %d: Add(%v) says the contrary of %v", seed, step, it, have)
				}
				if !have {
					want = slices.Insert(want, i, it)
				}
			case k < 7:
				if s.Remove(it) != have {
					t.Fatalf("seed %d step %d: Remove(%v) is not %v", seed, step, it, have)
				}
				if have {
					want = slices.Delete(want, i, i+1)
				}
			case len(want) > 0:
				first, ok := s.Min()
				if !ok || first != want[0] || !s.Remove(first) {
					t.Fatalf("seed %d step %d: the first is %v, want %v", seed, step, first, want[0])
				}
				want = want[1:]
			}
			from := r.Int64N(spread + int64(step))
			j, _ := slices.BinarySearchFunc(want, Item{Due: from}, Compare)
			if got, ok := s.From(from); ok != (j < len(want)) || ok && got != want[j] {
				t.Fatalf("seed %d step %d: the first from %d on is %v %v, of %v", seed, step, from, got, ok, want[j:min(j+1, len(want))])
			}
			if s.Len() != len(want) {
				t.Fatalf("seed %d step %d: %d items, want %d", seed, step, s.Len(), len(want))
			}
		}
		if got := slices.Concat(s.blocks...); !slices.Equal(got, want) {
			t.Fatalf("seed %d: items differ", seed)
		}
		var loaded Set
		shuffled := append(slices.Clone(want), want...)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		loaded.Load(shuffled)
		if got := slices.Concat(loaded.blocks...); !slices.Equal(got, want) || loaded.Len() != len(want) {
			t.Fatalf("seed %d: loaded items differ", seed)
		}
	}
}
