package columns

import (
	"math"
	"math/bits"

	"github.com/musterhq/muster/query"
)

// What follows picks events of a block without a branch for each: which ones pass is as
// good as random, and a processor that guesses wrong at every other event waits longer
// than it works.

// window is the times least ≤ t ≤ least + span.
type window struct {
	least int64
	span  uint64
}

// windowOf are the times that a question asks for; ok is false where there are none.
func windowOf(q *query.MatchQuery) (w window, ok bool) {
	least, greatest := int64(math.MinInt64), int64(math.MaxInt64)
	if q.AfterMs != nil {
		if *q.AfterMs == math.MaxInt64 {
			return window{}, false
		}
		least = *q.AfterMs + 1
	}
	if q.UntilMs != nil {
		greatest = *q.UntilMs
	}
	return window{least, uint64(greatest) - uint64(least)}, least <= greatest
}

// pick writes the places of the times that are in the window into at, which has room for
// all, and returns those.
func (w window) pick(at []int32, timeMs []int64) []int32 {
	k := 0
	for i, t := range timeMs {
		at[k] = int32(i)
		_, outside := bits.Sub64(w.span, uint64(t)-uint64(w.least), 0)
		k += 1 - int(outside)
	}
	return at[:k]
}

// keepRecords keeps the places whose offset is from on and below to.
func keepRecords(at []int32, offset []int64, from, to int64) []int32 {
	if from >= to {
		return nil
	}
	k := 0
	for _, j := range at {
		at[k] = j
		_, inside := bits.Sub64(uint64(offset[j])-uint64(from), uint64(to)-uint64(from), 0)
		k += int(inside)
	}
	return at[:k]
}

// keep keeps the places whose number passes.
func keep(at []int32, number []uint32, pass []uint8) []int32 {
	k := 0
	for _, j := range at {
		at[k] = j
		k += int(pass[number[j]])
	}
	return at[:k]
}
