package past

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// TestValuesEqualFolds: however many events are gathered at a time, a profile's value is what
// its events make of it one after the other.
func TestValuesEqualFolds(t *testing.T) {
	defer func(n int) { leastGathered = n }(leastGathered)
	const (
		now    = 1_700_000_000_000
		window = 3 * 86_400_000
	)
	for _, spec := range []fold.Spec{
		{Kind: fold.KindCount},
		{Kind: fold.KindTimes, WindowMs: window, Keep: 1}, {Kind: fold.KindTimes, WindowMs: window, Keep: 64},
		{Kind: fold.KindTotals, Property: "p"}, {Kind: fold.KindSums, Property: "p", WindowMs: window},
		{Kind: fold.KindMin, Property: "p", WindowMs: window}, {Kind: fold.KindMax, Property: "p", WindowMs: window},
		{Kind: fold.KindDistinct, Property: "p", WindowMs: window, Keep: 8}, {Kind: fold.KindSpans, Property: "p"},
	} {
		for _, least := range []int{1, 7, 400, 1 << 18} {
			rng := rand.New(rand.NewPCG(uint64(least), 3))
			leastGathered = least
			values, f := New(spec, now), spec.New()
			sums, summing := f.(fold.Sums)
			want := map[uint32][]byte{}
			for range 5000 {
				o := uint32(rng.IntN(2000))
				if rng.IntN(2) == 0 {
					o = 1<<30 + o%9 // many of few, and far off
				}
				x := fold.Occurrence{AtMs: now - rng.Int64N(5*86_400_000), Micros: rng.Int64N(9) - 4, Number: rng.IntN(4) > 0, Scalar: rng.IntN(4) > 0}
				x.Key[0] = byte(rng.IntN(12))
				for at := x.AtMs; rng.IntN(3) > 0; at += 1000 {
					x.Spans = append(x.Spans, fold.Span{From: at, To: at + 500 + window})
				}
				if summing {
					want[o] = sums.Collect(want[o], &x, now)
				} else {
					want[o] = f.Add(want[o], &x, now)
				}
				values.Add(o, &x)
				clear(x.Spans)
			}
			last, n := uint32(0), 0
			for o, ok := values.Next(); ok; o, ok = values.Next() {
				v := want[o]
				if summing {
					v, _ = sums.Collected(nil, v, nil)
				}
				if got := values.Take(); !bytes.Equal(got, v) || len(got) == 0 {
					t.Fatalf("%+v, %d at a time: profile %d has %x, want %x", spec, least, o, got, v)
				}
				if n > 0 && o <= last {
					t.Fatalf("%+v, %d at a time: profile %d comes after %d", spec, least, o, last)
				}
				delete(want, o)
				last, n = o, n+1
			}
			for o, v := range want {
				if len(v) > 0 {
					t.Fatalf("%+v, %d at a time: profile %d is missing, want %x", spec, least, o, v)
				}
			}
			if n < 500 {
				t.Fatal(fmt.Sprint("only ", n, " values tell nothing"))
			}
		}
	}
}
