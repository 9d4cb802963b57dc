package clickhouse

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestL2CoverOnlyGrowsAtItsEnd plays random appends of several writers that see
// each other's commits, some of them late as after a freeze. The cover has each
// record below the greatest committed end once, whatever the commits' order;
// and once those that were under way at a look are finished, later appends leave
// it as it was below that look's position, which the sweep relies on.
func TestL2CoverOnlyGrowsAtItsEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range 3_000 {
		var committed []span
		add := func(x span) {
			if i := slices.IndexFunc(committed, func(y span) bool { return y.writer == x.writer }); i >= 0 {
				committed[i].to = max(committed[i].to, x.to)
				return
			}
			committed = append(committed, x)
		}
		type writer struct {
			number uint64
			to     int64
			late   bool // it is frozen with an append under way
		}
		writers, next := make([]writer, 3), uint64(1)
		type lateAppend struct {
			span
			w *writer
		}
		var late []lateAppend
		// thaw commits what was under way. Its writer continues by itself.
		thaw := func(x lateAppend) {
			add(x.span)
			x.w.late = false
		}
		begin := func(w *writer) span {
			c := coverOf(committed)
			if w.number == 0 || len(c) == 0 || c[len(c)-1].writer != w.number || w.to != c.end() {
				w.number = next*2654435761%1000003 + 1
				next++
			}
			w.to = c.end() + 1 + rng.Int64N(9)
			return span{w.number, c.end(), w.to}
		}
		check := func() cover {
			c, end := coverOf(committed), int64(0)
			for _, x := range committed {
				end = max(end, x.to)
			}
			at := int64(0)
			for _, x := range c {
				i := slices.IndexFunc(committed, func(y span) bool { return y.writer == x.writer })
				if x.from != at || x.to <= x.from || x.from < committed[i].from || x.to > committed[i].to {
					t.Fatalf("L2: %v of %v", c, committed)
				}
				at = x.to
			}
			if at != end {
				t.Fatalf("L2: %v ends at %d, %v at %d", c, at, committed, end)
			}
			shuffled := slices.Clone(committed)
			rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if !slices.Equal(coverOf(shuffled), c) {
				t.Fatalf("%v depends on the order", c)
			}
			return c
		}
		for range 12 {
			w := &writers[rng.IntN(len(writers))]
			if !w.late {
				x := begin(w)
				if w.late = rng.IntN(3) == 0; w.late {
					late = append(late, lateAppend{x, w})
				} else {
					add(x)
				}
			}
			if len(late) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(late))
				thaw(late[i])
				late = slices.Delete(late, i, i+1)
			}
			check()
		}
		looked := coverOf(committed).end()
		for _, x := range late {
			if rng.IntN(2) == 0 {
				thaw(x)
			} else { // refused
				x.w.number, x.w.late = 0, false
			}
		}
		finished := below(check(), looked)
		for range 6 {
			add(begin(&writers[rng.IntN(len(writers))]))
			if c := below(check(), looked); !slices.Equal(c, finished) {
				t.Fatalf("L2: the cover below %d was %v and became %v", looked, finished, c)
			}
		}
	}
}

// below is the cover cut off at the offset.
func below(c cover, upTo int64) cover {
	c = slices.Clone(c.below(upTo))
	if n := len(c); n > 0 {
		c[n-1].to = min(c[n-1].to, upTo)
	}
	return c
}
