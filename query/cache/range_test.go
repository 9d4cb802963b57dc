package cache

import (
	"math"
	"testing"

	"github.com/musterhq/muster/segment"
)

func TestRangeEqualsComparison(t *testing.T) {
	values := []int64{math.MinInt64, math.MinInt64 + 1, -2_000_000, -1, 0, 1, 5, 2_000_000, math.MaxInt64 - 1, math.MaxInt64}
	known := 0
	for _, op := range []segment.Op{segment.OpEq, segment.OpNe, segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe, segment.OpBetween, segment.OpIn} {
		for _, a := range values {
			for _, b := range values {
				c := segment.Compare{Op: op, Micros: []segment.Int128{segment.Micros(a), segment.Micros(b)}}
				if op != segment.OpBetween && op != segment.OpIn {
					c.Micros = c.Micros[:1]
				}
				r := newRange(&c)
				if !r.known {
					continue
				}
				known++
				for _, v := range values {
					if r.holds(v) != c.Holds(segment.Micros(v)) {
						t.Errorf("%s %d %d holds for %d: %t", op, a, b, v, r.holds(v))
					}
				}
			}
		}
	}
	if known < 300 {
		t.Errorf("%d comparisons are ranges", known)
	}
}
