package wheel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHandsOutInOrder: whatever is entered is handed out once it is due, ordered by instant
// and ordinal, also when buckets are opened in pieces, and UpTo has met it before.
func TestHandsOutInOrder(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		window := int64([]int{1, 500, 40_000}[seed%3])
		now := int64(1_000_000)
		w := New(window, now)
		due := map[uint32]int64{} // the true instant of each profile
		for o := range uint32(60) {
			due[o] = now + 1 + rng.Int64N(1+window*[]int64{1, 3, 700}[rng.IntN(3)])
			w.Add(o, due[o], now)
		}
		instantOf := func(o uint32) int64 {
			if at, ok := due[o]; ok {
				return at
			}
			return never
		}
		var last Item
		for n := 0; ; n++ {
			at, ordinal := w.Head()
			if at == never {
				break
			}
			if n > 100_000 {
				t.Fatalf("seed %d: the wheel does not end", seed)
			}
			if ordinal < 0 {
				if w.Opens() != at {
					t.Fatalf("seed %d: a bucket opens at %d, Head says %d", seed, w.Opens(), at)
				}
				w.Open([]int{7, math.MaxInt}[rng.IntN(2)], instantOf)
				continue
			}
			it := w.Peek()
			if it.Due != at || int64(it.Ordinal) != ordinal || due[it.Ordinal] != at || it.Before(last) {
				t.Fatalf("seed %d: %v is first after %v, Head says %d at %d, want %d", seed, it, last, ordinal, at, due[it.Ordinal])
			}
			var met []uint32
			w.UpTo(at, func(o uint32) { met = append(met, o) })
			for o, d := range due {
				if d <= at && !slices.Contains(met, o) {
					t.Fatalf("seed %d: UpTo(%d) leaves out %d, which is due at %d", seed, at, o, d)
				}
			}
			if w.Pop() != it {
				t.Fatalf("seed %d: Pop is not what Peek was", seed)
			}
			last = it
			delete(due, it.Ordinal)
		}
		if len(due) > 0 {
			t.Fatalf("seed %d: %v are not handed out", seed, due)
		}
	}
}

// TestFirstIsInOrder: First hands out what is not in buckets, list and heap each in order.
func TestFirstIsInOrder(t *testing.T) {
	w := New(128_000, 0) // buckets of a second
	for o := range uint32(40) {
		w.Add(o, 1+int64(o*37%40), 0) // behind the edge
	}
	var got []Item
	w.First(func(it Item) bool {
		got = append(got, it)
		return len(got) < 25
	})
	if len(got) != 25 || !slices.IsSortedFunc(got, func(a, b Item) int { return int(a.Due - b.Due) }) || got[0].Due != 1 || got[24].Due != 25 {
		t.Errorf("the first entries are %v", got)
	}
	if w.Opened() != 40 || w.Opens() != never {
		t.Errorf("%d entries are opened, the next bucket is at %d", w.Opened(), w.Opens())
	}
}
