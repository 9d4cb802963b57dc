package fold

import (
	"math"
	"math/bits"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/segment"
)

// Question is what the leaf of an activity asks of its state's values.
type Question struct {
	WindowMs  int64            // how far back it looks; 0 is all time
	Count     *segment.Compare // counts and distinct
	small     uint64           // the answers for counts below smallCounts, a bit each
	Aggregate *segment.Aggregate
	distinct  bool
}

// QuestionOf returns the question of an activity.
func QuestionOf(a *segment.Activity) Question {
	q := Question{WindowMs: a.WindowMs, Count: a.Count, Aggregate: a.Aggregate}
	if a.Aggregate != nil && a.Aggregate.Fn == segment.FnDistinct {
		q.distinct, q.Count = true, &a.Aggregate.Compare
	}
	for n := uint64(0); q.Count != nil && n < smallCounts; n++ {
		if holdsCount(q.Count, n) {
			q.small |= 1 << n
		}
	}
	return q
}

// AtLeast is the number of events from which on the question holds, for each greater number
// too and for none that is lower. ok is false for other questions, and where it is 0 or large.
func (q *Question) AtLeast() (n int, ok bool) {
	if q.Count == nil || q.distinct || q.Count.Op != segment.OpGe && q.Count.Op != segment.OpGt {
		return 0, false
	}
	n = bits.TrailingZeros64(q.small)
	return n, n > 0 && n < smallCounts
}

// smallCounts is for how many counts the answers are kept: nearly all that are
// asked.
const smallCounts = 64

// holdsFor judges a count.
func (q *Question) holdsFor(n uint64) bool {
	if n < smallCounts {
		return q.small>>n&1 == 1
	}
	return holdsCount(q.Count, n)
}

// judge compares the aggregate.
func (q *Question) judge(t totals) bool {
	g := q.Aggregate
	if g.Fn == segment.FnSum {
		return g.Compare.Holds(t.sum)
	}
	if t.n == 0 {
		return false
	}
	switch g.Fn {
	case segment.FnAvg:
		return g.Compare.HoldsRatio(t.sum, t.n)
	case segment.FnMin:
		return g.Compare.Holds(int128.From(t.min))
	}
	return g.Compare.Holds(int128.From(t.max))
}

func holdsCount(c *segment.Compare, n uint64) bool {
	if n > math.MaxInt64/segment.MicrosPerUnit {
		n = math.MaxInt64 / segment.MicrosPerUnit
	}
	return c.Holds(segment.Micros(int64(n) * segment.MicrosPerUnit))
}
