package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// answer is who a summary gave for a comparison.
type answer struct {
	summary uint64
	who     *roaring.Bitmap
}

// Activity implements [query.History].
func (h *History) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	if h.entries == nil {
		return h.Backend.Activity(ctx, q)
	}
	b, err := h.activity(ctx, q)
	if err != nil && h.bypass(ctx, err) {
		return h.Backend.Activity(ctx, q)
	}
	return b, err
}

func (h *History) activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	l, ok := newLeaf(&q)
	if !ok {
		return nil, errNotKept
	}
	var err error
	if l.epoch, err = h.tracker.begin(ctx, h.Backend, q.Cut, q.Account); err != nil {
		return nil, err
	}
	s, asked, err := h.summary(ctx, l)
	if err != nil {
		return nil, err
	}
	// An erasure may have begun while history was asked: its answer belongs to no
	// state of the account.
	if asked != same && !h.tracker.current(q.Cut.Partition, q.Account, l.epoch) {
		return nil, errNotKept
	}
	switch asked {
	case same:
		h.stats.hits.Add(1)
	case grown:
		h.stats.extended.Add(1)
	default:
		h.stats.misses.Add(1)
	}
	key := fmt.Sprintf("%s is %t %s", l.summaryKey, q.Negate, q.Leaf.Key())
	if e := h.get(key, l.epoch); e != nil && e.answer.summary == s.id {
		return e.answer.who.Clone(), nil
	}
	who := s.who(l.compare, q.Negate)
	h.put(&entry{key: key, epoch: l.epoch, bytes: int64(who.GetSizeInBytes()), answer: &answer{s.id, who}})
	return who.Clone(), nil
}

// leaf is an activity condition by what of it can be kept.
type leaf struct {
	question // of the matches
	query    *query.ActivityQuery
	fn       segment.Fn
	compare  *segment.Compare
	// summaryKey names the summary.
	summaryKey string
}

// newLeaf is the leaf of a question, if it is one that can be kept.
func newLeaf(q *query.ActivityQuery) (*leaf, bool) {
	a := q.Leaf
	if a.Event == segment.AnyEvent && (a.Aggregate != nil || len(a.Where) > 0 || a.WindowMs != 0) {
		return nil, false // has no canonical text
	}
	l := &leaf{query: q, compare: a.Count}
	l.ask = query.MatchQuery{Cut: q.Cut, Account: q.Account, EventType: a.Event, Where: a.Where}
	l.types = []string{a.Event}
	if slices.ContainsFunc(a.Where, unkept) {
		return nil, false
	}
	one := segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{segment.Micros(segment.MicrosPerUnit)}}
	// What the matches depend on, as a condition.
	rows := segment.Activity{Event: a.Event, Did: true, Where: a.Where}
	if a.Aggregate != nil {
		l.fn, l.compare, l.ask.Value = a.Aggregate.Fn, &a.Aggregate.Compare, a.Aggregate.Property
		kind := segment.FnSum
		switch l.fn {
		case segment.FnSum, segment.FnAvg, segment.FnMin, segment.FnMax:
			l.ask.As = query.AsMicros
		case segment.FnDistinct:
			l.ask.As, kind = query.AsScalar, segment.FnDistinct
		default:
			return nil, false
		}
		rows.Aggregate = &segment.Aggregate{Fn: kind, Property: a.Aggregate.Property, Compare: one}
	} else {
		rows.Count = &one
	}
	if l.compare == nil || !comparable(l.compare) {
		return nil, false
	}
	l.key = fmt.Sprintf("%d/%d activity %s", q.Cut.Partition, q.Account, rows.Key())
	l.summaryKey = fmt.Sprintf("%s %s in %d", l.key, l.fn, a.WindowMs)
	l.afterMs = math.MinInt64
	if a.WindowMs > 0 {
		l.afterMs = q.AtMs - a.WindowMs
	}
	return l, true
}

// unkept reports whether a filter depends on the instant, or is none that
// [segment.Parse] lets through.
func unkept(p segment.Predicate) bool {
	switch p.Op {
	case segment.OpExists, segment.OpNotExists:
		return false
	case segment.OpBetween:
		return len(p.Values) != 2
	}
	return p.Timed() || len(p.Values) == 0
}

// comparable reports whether a comparison is one of numbers.
func comparable(c *segment.Compare) bool {
	switch c.Op {
	case segment.OpEq, segment.OpNe, segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe:
		return len(c.Micros) == 1
	case segment.OpBetween:
		return len(c.Micros) == 2
	case segment.OpIn, segment.OpNotIn:
		return len(c.Micros) > 0
	}
	return false
}

// summary is that of a leaf at the question's cut and instant. asked says what
// history was asked: same for nothing, grown for later records, stale for all.
func (h *History) summary(ctx context.Context, l *leaf) (s *summary, asked standing, err error) {
	q := l.query
	var old *summary // at an earlier cut, at this instant
	e := h.get(l.summaryKey, l.epoch)
	if e != nil && e.tooLarge != nil {
		return nil, stale, errTooLarge
	}
	if e != nil && e.summary.atMs <= q.AtMs && q.AtMs < e.summary.untilMs {
		switch h.tracker.compare(q.Cut, q.Account, l.epoch, e.summary.cut, l.types) {
		case same:
			return e.summary, same, nil
		case grown:
			old = e.summary
		}
	}
	if e != nil && e.summary.cut > q.Cut.UpTo {
		return nil, stale, errNotKept // nor to be replaced by what is older
	}
	if q.Leaf.WindowMs == 0 && l.fn != segment.FnDistinct {
		if e != nil && q.AtMs < e.summary.atMs && h.tracker.compare(q.Cut, q.Account, l.epoch, e.summary.cut, l.types) != stale {
			return nil, stale, errNotKept // some events are later than the instant asked for
		}
		s, asked, err = h.summaryOfAllTime(ctx, l, old)
	} else if b, ok := h.Backend.(quick); ok && l.fn != segment.FnDistinct && b.Quick(ctx, l.ask) {
		var base *summary // at an earlier cut or instant, from which this one is not far
		if e != nil && e.summary.atMs <= q.AtMs && q.AtMs-e.summary.atMs < q.Leaf.WindowMs/slideShare &&
			h.tracker.compare(q.Cut, q.Account, l.epoch, e.summary.cut, l.types) != stale {
			base = e.summary
			before, since := l.ask, l.ask
			before.To, since.From = base.cut, base.cut
			if base.cut == 0 || !b.Quick(ctx, before) || !b.Quick(ctx, since) {
				base = nil
			}
		}
		s, asked, err = h.summaryOfWindow(ctx, l, base)
	} else {
		s, asked, err = h.summaryOfMatches(ctx, l, old)
	}
	if err != nil {
		if errors.Is(err, errTooLarge) && q.Leaf.WindowMs == 0 {
			h.put(&entry{key: l.summaryKey, epoch: l.epoch, tooLarge: &tooLarge{}})
		}
		return nil, stale, err
	}
	h.put(&entry{key: l.summaryKey, epoch: l.epoch, bytes: s.bytes, summary: s})
	return s, asked, nil
}

// summaryOfAllTime asks for the events and keeps none of them.
func (h *History) summaryOfAllTime(ctx context.Context, l *leaf, old *summary) (*summary, standing, error) {
	ask, asked, at := l.ask, stale, int64(math.MinInt64)
	if old != nil {
		ask.From, asked, at = old.cut, grown, old.atMs
	}
	u := newSumming(l.fn, old, h.entryLimit())
	err := h.Backend.Matches(ctx, ask, func(b *query.MatchBlock) error {
		for _, t := range b.TimeMs {
			at = max(at, t)
		}
		if at > l.query.AtMs {
			return errNotKept // some events are later than the instant asked for
		}
		return u.add(b.Ordinal, b.Micros)
	})
	if err != nil {
		return nil, stale, err
	}
	return u.finish(h.ids.Add(1), ask.Cut.UpTo, at, math.MaxInt64), asked, nil
}

// slideShare is the part of a window that one may have moved by for its summary to be
// made of the one before.
const slideShare = 8

// summaryOfWindow asks for the events and keeps none of them. With an earlier summary
// it asks for those that left the window and those that came.
func (h *History) summaryOfWindow(ctx context.Context, l *leaf, old *summary) (*summary, standing, error) {
	at, window := l.query.AtMs, l.query.Leaf.WindowMs
	if l.fn == segment.FnMin || l.fn == segment.FnMax {
		old = nil // what left cannot be taken out
	}
	// The first instant at which an event leaves or one of later comes; of a summary that
	// is made of another it is not known.
	until := int64(math.MaxInt64)
	u := newSumming(l.fn, old, h.entryLimit())
	ask := func(from, to, after, upTo int64, apply func(ordinals []uint32, values []int64) error) error {
		q := l.ask
		q.From, q.To, q.AfterMs, q.UntilMs = from, to, &after, &upTo
		return h.Backend.Matches(ctx, q, func(b *query.MatchBlock) error {
			for _, t := range b.TimeMs {
				until = min(until, t+window)
			}
			return apply(b.Ordinal, b.Micros)
		})
	}
	if old == nil {
		q := l.ask
		q.AfterMs = &l.afterMs
		var ordinals []uint32
		var values []int64
		err := h.Backend.Matches(ctx, q, func(b *query.MatchBlock) error {
			later := false
			for _, t := range b.TimeMs {
				if t > at {
					until, later = min(until, t), true
				} else {
					until = min(until, t+window)
				}
			}
			if !later {
				return u.add(b.Ordinal, b.Micros)
			}
			ordinals, values = ordinals[:0], values[:0]
			for i, t := range b.TimeMs {
				if t > at {
					continue
				}
				ordinals = append(ordinals, b.Ordinal[i])
				if len(b.Micros) > 0 {
					values = append(values, b.Micros[i])
				}
			}
			return u.add(ordinals, values)
		})
		if err != nil {
			return nil, stale, err
		}
		return u.finish(h.ids.Add(1), l.ask.Cut.UpTo, at, until), stale, nil
	}
	if err := ask(0, old.cut, old.atMs-window, min(l.afterMs, old.atMs), u.sub); err != nil {
		return nil, stale, err
	}
	if at > old.atMs {
		if err := ask(0, old.cut, max(old.atMs, l.afterMs), at, u.add); err != nil {
			return nil, stale, err
		}
	}
	if old.cut < l.ask.Cut.UpTo {
		if err := ask(old.cut, 0, l.afterMs, at, u.add); err != nil {
			return nil, stale, err
		}
	}
	return u.finish(h.ids.Add(1), l.ask.Cut.UpTo, at, at+1), grown, nil
}

// summaryOfMatches keeps the events as well.
func (h *History) summaryOfMatches(ctx context.Context, l *leaf, old *summary) (*summary, standing, error) {
	m, delta, from, err := h.matches(ctx, &l.question)
	if err != nil {
		return nil, stale, err
	}
	asked := grown
	switch {
	case from < 0:
		asked = stale
	case m.cut == from:
		asked = same
	}
	at, window := l.query.AtMs, l.query.Leaf.WindowMs
	u, until := newSumming(l.fn, nil, h.entryLimit()), int64(math.MaxInt64)
	blocks := m.blocks
	if old != nil && asked == grown && old.cut == from && l.fn != segment.FnDistinct {
		u, until, blocks = newSumming(l.fn, old, h.entryLimit()), old.untilMs, nil
		if delta != nil {
			blocks = []*block{delta}
		}
	}
	for _, b := range blocks {
		lo, hi := b.span(0, l.afterMs, at)
		values := b.value
		if values != nil {
			values = values[lo:hi]
		}
		if err := u.add(b.ordinal[lo:hi], values); err != nil {
			return nil, stale, err
		}
		if window > 0 && lo < hi {
			until = min(until, b.timeMs[lo]+window)
		}
		if hi < len(b.timeMs) {
			until = min(until, b.timeMs[hi])
		}
	}
	return u.finish(h.ids.Add(1), l.ask.Cut.UpTo, at, until), asked, nil
}
