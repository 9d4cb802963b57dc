package cache

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/bit"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// summary is what the matching events of each profile come to at an instant:
// what a comparison is judged by. It is never changed.
type summary struct {
	id  uint64
	cut int64
	// It holds at the instants atMs ≤ t < untilMs.
	atMs, untilMs int64
	fn            segment.Fn // "" counts
	pages         []*page
	events        uint64
	bytes         int64
}

// summing makes a summary out of another, nil for none, and further events.
type summing struct {
	s summary
	// open has the events that a page counts, for pages that are its own, else nil: where
	// events are only counted, one of them looks at nothing else.
	open  []*[pageSize]uint32
	pairs []uint64 // profiles and scalars, for distinct
	limit int64
}

func newSumming(fn segment.Fn, base *summary, limit int64) *summing {
	if base == nil {
		return &summing{s: summary{fn: fn}, limit: limit}
	}
	s := *base
	s.pages = slices.Clone(base.pages)
	return &summing{s: s, open: make([]*[pageSize]uint32, len(s.pages)), limit: limit}
}

// page is the page of an ordinal, the summing's own.
func (u *summing) page(ordinal uint32) *page {
	i := int(ordinal >> pageBits)
	if more := i + 1 - len(u.open); more > 0 {
		u.s.bytes += int64(8 * more)
		u.s.pages = append(u.s.pages, make([]*page, more)...)
		u.open = append(u.open, make([]*[pageSize]uint32, more)...)
	}
	p := u.s.pages[i]
	switch {
	case u.open[i] != nil:
		return p
	case p == nil:
		p = newPage(u.s.fn)
	default:
		u.s.bytes -= p.bytes()
		p = p.open(u.s.fn)
	}
	u.s.bytes += p.bytes()
	u.s.pages[i], u.open[i] = p, (*[pageSize]uint32)(p.n)
	return p
}

// add takes events into account. values are as in [block].
func (u *summing) add(ordinals []uint32, values []int64) error {
	u.s.events += uint64(len(ordinals))
	if u.s.events > math.MaxUint32 {
		return errTooLarge
	}
	if u.s.fn == "" {
		u.count(ordinals)
		values = nil
	}
	for i, v := range values {
		o := ordinals[i]
		p, at := u.page(o), o&pageMask
		p.n[at]++
		if v == query.NoMicros {
			continue
		}
		switch u.s.fn {
		case segment.FnSum, segment.FnAvg:
			p.sum[at] = p.sum[at].Add(segment.Micros(v))
		case segment.FnMin:
			if p.some[at] == 0 || v < p.ext[at] {
				p.ext[at] = v
			}
		case segment.FnMax:
			if p.some[at] == 0 || v > p.ext[at] {
				p.ext[at] = v
			}
		case segment.FnDistinct:
			u.pairs = append(u.pairs, uint64(o)<<32|uint64(v))
			continue
		}
		p.some[at]++
	}
	if u.s.bytes > u.limit {
		return errTooLarge
	}
	return nil
}

// count takes events into account where they are only counted.
func (u *summing) count(ordinals []uint32) {
	for _, o := range ordinals {
		i := int(o >> pageBits)
		if i >= len(u.open) || u.open[i] == nil {
			u.page(o)
		}
		u.open[i][o&pageMask]++
	}
}

// sub takes events out of account that were in it, for counts, sums and averages.
func (u *summing) sub(ordinals []uint32, values []int64) error {
	u.s.events -= uint64(len(ordinals))
	for i, o := range ordinals {
		p, at := u.page(o), o&pageMask
		p.n[at]--
		if u.s.fn == "" || values[i] == query.NoMicros {
			continue
		}
		p.sum[at] = p.sum[at].Sub(segment.Micros(values[i]))
		p.some[at]--
	}
	return nil
}

func (u *summing) finish(id uint64, cut, atMs, untilMs int64) *summary {
	slices.Sort(u.pairs)
	for i, pair := range u.pairs {
		if i == 0 || pair != u.pairs[i-1] {
			o := uint32(pair >> 32)
			u.page(o).some[o&pageMask]++
		}
	}
	s := u.s
	pack(s.pages, s.fn, func(i int) bool { return u.open[i] != nil })
	s.bytes = int64(8 * len(s.pages))
	for _, p := range s.pages {
		if p != nil {
			s.bytes += p.bytes()
		}
	}
	s.id, s.cut, s.atMs, s.untilMs = id, cut, atMs, untilMs
	return &s
}

// who are the profiles with matching events for which the comparison holds, or
// with negate does not.
func (s *summary) who(c *segment.Compare, negate bool) *roaring.Bitmap {
	words := make([]uint64, len(s.pages)*pageSize/64)
	counts := countTable{compare: c}
	within := newRange(c)
	for i, p := range s.pages {
		if p == nil {
			continue
		}
		for k, events := range p.n {
			if events == 0 {
				continue
			}
			at := k
			if p.slots != nil {
				at = int(p.slots[k])
			}
			holds := false
			switch s.fn {
			case "":
				holds = counts.holds(events)
			case segment.FnDistinct:
				holds = counts.holds(p.some[k])
			case segment.FnSum:
				if v, ok := p.sum[k].Int64(); ok && within.known {
					holds = within.holds(v)
				} else {
					holds = c.Holds(p.sum[k])
				}
			case segment.FnAvg:
				holds = p.some[k] > 0 && c.HoldsRatio(p.sum[k], uint64(p.some[k]))
			case segment.FnMin, segment.FnMax:
				if within.known {
					holds = p.some[k] > 0 && within.holds(p.ext[k])
				} else {
					holds = p.some[k] > 0 && c.Holds(segment.Micros(p.ext[k]))
				}
			}
			words[i*(pageSize/64)+at/64] |= uint64(bit.Of(holds != negate)) << (at % 64)
		}
	}
	if len(words) == 0 {
		return roaring.New()
	}
	return roaring.FromDense(words, true)
}

// valueRange is a comparison as the range of millionths for which it holds, or with not
// does not hold; known is false for one that is none.
type valueRange struct {
	least, most int64
	not, known  bool
}

func newRange(c *segment.Compare) valueRange {
	at := func(i int) int64 {
		v, ok := c.Micros[i].Int64()
		if !ok || v == math.MinInt64 || v == math.MaxInt64 {
			return math.MinInt64
		}
		return v
	}
	r := valueRange{least: math.MinInt64, most: math.MaxInt64}
	first := at(0)
	if first == math.MinInt64 {
		return r
	}
	switch c.Op {
	case segment.OpEq:
		r.least, r.most = first, first
	case segment.OpNe:
		r.least, r.most, r.not = first, first, true
	case segment.OpGt:
		r.least = first + 1
	case segment.OpGe:
		r.least = first
	case segment.OpLt:
		r.most = first - 1
	case segment.OpLe:
		r.most = first
	case segment.OpBetween:
		r.least, r.most = first, at(1)
		if r.most == math.MinInt64 {
			return r
		}
	default:
		return r
	}
	r.known = true
	return r
}

func (r *valueRange) holds(v int64) bool { return (v >= r.least && v <= r.most) != r.not }

// countTable judges small numbers once.
type countTable struct {
	compare *segment.Compare
	known   [64]int8 // 1 holds, −1 does not
}

func (t *countTable) holds(n uint32) bool {
	if n >= uint32(len(t.known)) {
		return t.judge(n)
	}
	if t.known[n] == 0 {
		t.known[n] = 2*int8(bit.Of(t.judge(n))) - 1
	}
	return t.known[n] > 0
}

func (t *countTable) judge(n uint32) bool {
	return t.compare.Holds(segment.Micros(int64(n) * segment.MicrosPerUnit))
}
