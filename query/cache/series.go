package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// openRange is how far before the present a series must end to be kept by its
// range. One that ends later is kept open, so that it can continue.
const openRange = time.Hour

// Series implements [query.History].
func (h *History) Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	if h.entries == nil || q.FromMs >= q.ToMs {
		return h.Backend.Series(ctx, q)
	}
	rows, err := h.series(ctx, q)
	if err != nil && !errors.Is(err, query.ErrSeriesTooLarge) && h.bypass(ctx, err) {
		return h.Backend.Series(ctx, q)
	}
	return rows, err
}

func (h *History) series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	if slices.ContainsFunc(q.Where, unkept) {
		return nil, errNotKept
	}
	switch q.Granularity {
	case query.Whole, query.Hour, query.Day, query.Week, query.Month:
	default:
		return nil, errNotKept
	}
	types := slices.Clone(q.Types)
	slices.Sort(types)
	ask := question{types: types, afterMs: q.FromMs - 1,
		ask: query.MatchQuery{Cut: q.Cut, Account: q.Account, ByType: true, Types: types, Where: q.Where, Value: q.By}}
	if len(q.By) > 0 {
		ask.ask.As = query.AsText
	}
	open := q.ToMs > h.opts.Now().Add(-openRange).UnixMilli()
	one := segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{segment.Micros(segment.MicrosPerUnit)}}
	where := segment.Activity{Event: "e", Did: true, Where: q.Where, Count: &one}
	ask.key = fmt.Sprintf("%d/%d series %q by %q %s", q.Cut.Partition, q.Account, types, q.By, where.Key())
	if !open {
		until := q.ToMs - 1
		ask.ask.UntilMs = &until
		ask.key = fmt.Sprintf("%s to %d", ask.key, q.ToMs)
	}
	var err error
	if ask.epoch, err = h.tracker.begin(ctx, h.Backend, q.Cut, q.Account); err != nil {
		return nil, err
	}
	m, _, from, err := h.matches(ctx, &ask)
	if err != nil {
		return nil, err
	}
	switch {
	case from >= 0 && m.cut == from:
		h.stats.hits.Add(1)
	case !h.tracker.current(q.Cut.Partition, q.Account, ask.epoch):
		return nil, errNotKept // see activity
	case from >= 0:
		h.stats.extended.Add(1)
	default:
		h.stats.misses.Add(1)
	}
	return m.series(q)
}

// series counts the events of a range of time.
func (m *matches) series(q query.SeriesQuery) (out []query.SeriesRow, err error) {
	kinds := m.kinds.all()
	order := make([]int, len(kinds))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(strings.Compare(kinds[i].typ, kinds[j].typ), strings.Compare(kinds[i].text, kinds[j].text))
	})
	// seen holds, by ordinal, the last row that counted the profile.
	var seen []uint32
	if m.n > 0 {
		seen = make([]uint32, int(m.greatest)+1)
	}
	type part struct{ at, end int }
	parts := make([]part, len(m.blocks))
	for _, kind := range order {
		for i, b := range m.blocks {
			parts[i].at, parts[i].end = b.span(kind, q.FromMs-1, q.ToMs-1)
		}
		for {
			first := int64(math.MaxInt64)
			for i, b := range m.blocks {
				if parts[i].at < parts[i].end {
					first = min(first, b.timeMs[parts[i].at])
				}
			}
			if first == math.MaxInt64 {
				break
			}
			row := query.SeriesRow{Type: kinds[kind].typ, Value: kinds[kind].text, StartMs: q.Granularity.Start(first)}
			end := q.ToMs
			if q.Granularity != query.Whole {
				end = min(end, q.Granularity.Next(row.StartMs))
			}
			number := uint32(len(out) + 1)
			for i, b := range m.blocks {
				at := parts[i].at
				for ; at < parts[i].end && b.timeMs[at] < end; at++ {
					if o := b.ordinal[at]; seen[o] != number {
						seen[o] = number
						row.Profiles++
					}
				}
				row.Events += uint64(at - parts[i].at)
				parts[i].at = at
			}
			if out = append(out, row); len(out) > query.MaxSeriesRows {
				return nil, query.ErrSeriesTooLarge
			}
		}
	}
	return out, nil
}
