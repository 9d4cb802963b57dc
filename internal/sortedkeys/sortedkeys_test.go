package sortedkeys

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestMatchesMap: what is read is what a map with sorted keys holds, from every key on
// and below every one, with chunks that are full and one that is not.
func TestMatchesMap(t *testing.T) {
	for seed := range testlevel.Count[uint64](5, 20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var c Changes
		want := map[string]bool{}
		// Keys that differ in what is compared first, behind it, and in length alone.
		draw := func() string {
			return strings.Repeat("head", rng.IntN(5)) + fmt.Sprint(rng.IntN(2000)) + strings.Repeat("\x00", rng.IntN(3))
		}
		n := rng.IntN(4 * chunkKeys)
		for range n {
			k, removed := draw(), rng.IntN(3) == 0
			c.Put([]byte(k), removed)
			want[k] = removed
		}
		if c.Len() != n {
			t.Fatalf("seed %d: %d changes, expected %d", seed, c.Len(), n)
		}
		for i := range 50 {
			var lower, upper []byte
			if i%4 > 0 {
				lower = []byte(draw())
			}
			if i%3 > 0 {
				upper = []byte(draw())
			}
			at := c.From(lower, upper)
			for _, k := range slices.Sorted(maps.Keys(want)) {
				if k < string(lower) || upper != nil && k >= string(upper) {
					continue
				}
				if !at.Valid() || string(at.Key()) != k || at.Removed() != want[k] {
					t.Fatalf("seed %d, from %q below %q: expected %q", seed, lower, upper, k)
				}
				at.Next()
			}
			if at.Valid() {
				t.Fatalf("seed %d, from %q below %q: %q is one too many", seed, lower, upper, at.Key())
			}
		}
	}
}

// TestReaderWaitsForOrder: a reader gets the keys in order also of a full chunk that has not
// been sorted yet.
func TestReaderWaitsForOrder(t *testing.T) {
	var c Changes
	for i := range chunkKeys - 1 {
		c.Put([]byte(fmt.Sprintf("%04d", chunkKeys-i)), false)
	}
	c.full, c.latest = []*chunk{c.latest}, nil // as Put leaves it before the other goroutine has begun
	n := 0
	for at, last := c.From(nil, nil), ""; at.Valid(); at.Next() {
		if string(at.Key()) <= last {
			t.Fatalf("%q comes after %q", at.Key(), last)
		}
		last = string(at.Key())
		n++
	}
	if n != chunkKeys-1 {
		t.Errorf("%d keys, expected %d", n, chunkKeys-1)
	}
}

func BenchmarkPut(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c Changes
	var key [40]byte
	for b.Loop() {
		if c.Len() == 1<<18 {
			c = Changes{}
		}
		binary.BigEndian.PutUint64(key[10:], rng.Uint64())
		c.Put(key[:], false)
	}
}

// BenchmarkMerge goes through the changes between two checkpoints in order: keys of an index, which
// begin alike, in half a hundred chunks.
func BenchmarkMerge(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c Changes
	for range 50 * chunkKeys {
		c.Put([]byte(fmt.Sprintf("N\x00\x00\x00\x00\x00\x00\x00\x070customer%07d@example.com\x00%04d", rng.IntN(1e7), rng.IntN(1e4))), false)
	}
	n := 0
	for b.Loop() {
		n = 0
		for at := c.From(nil, nil); at.Valid(); at.Next() {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
}
