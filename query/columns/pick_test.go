package columns

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
)

// atEdges draws a number that is often at or beside an edge.
func atEdges(rnd *rand.Rand) int64 {
	edges := []int64{math.MinInt64, -1, 0, 10, math.MaxInt64}
	return edges[rnd.IntN(len(edges))] + int64(rnd.IntN(5)) - 2 // may wrap around: the other edge
}

func TestPickEqualsComparisons(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	maybe := func() *int64 {
		if rnd.IntN(4) == 0 {
			return nil
		}
		x := atEdges(rnd)
		return &x
	}
	kept := 0
	for range 20_000 {
		q := query.MatchQuery{AfterMs: maybe(), UntilMs: maybe()}
		times, offsets, numbers := make([]int64, 8), make([]int64, 8), make([]uint32, 8)
		for i := range times {
			times[i], offsets[i], numbers[i] = atEdges(rnd), atEdges(rnd), rnd.Uint32N(3)
		}
		from, to, pass := atEdges(rnd), atEdges(rnd), []uint8{0, 1, uint8(rnd.IntN(2))}
		var want []int32
		for i, at := range times {
			if (q.AfterMs == nil || at > *q.AfterMs) && (q.UntilMs == nil || at <= *q.UntilMs) &&
				offsets[i] >= from && offsets[i] < to && pass[numbers[i]] == 1 {
				want = append(want, int32(i))
			}
		}
		var got []int32
		if within, ok := windowOf(&q); ok {
			got = keep(keepRecords(within.pick(make([]int32, len(times)), times), offsets, from, to), numbers, pass)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %v until %v of %v, records %d to %d of %v, numbers %v of %v: kept %v, want %v",
				q.AfterMs, q.UntilMs, times, from, to, offsets, numbers, pass, got, want)
		}
		kept += len(want)
	}
	if kept < 1000 {
		t.Errorf("%d events passed in all: the test compares next to nothing", kept)
	}
}
