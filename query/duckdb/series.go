package duckdb

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/query"
)

// Series implements [query.History].
func (s *Store) Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	if q.FromMs >= q.ToMs {
		return nil, nil
	}
	sql, args, err := query.SeriesSQL(dialect{}, q)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var out []query.SeriesRow
	err = s.rowsOf(ctx, sql, args, func(ch chunk) {
		types, values, starts := ch.text(0), ch.text(1), column[int64](ch, 2)
		events, profiles := column[int64](ch, 3), column[int64](ch, 4)
		for i := range types {
			out = append(out, query.SeriesRow{Type: types[i], Value: values[i], StartMs: starts[i], Events: uint64(events[i]), Profiles: uint64(profiles[i])})
		}
	}, func() int { return len(out) })
	if err != nil {
		return nil, fmt.Errorf("history: series of account %d: %w", q.Account, err)
	}
	return out, nil
}

// Deeds implements [query.History].
func (s *Store) Deeds(ctx context.Context, q query.DeedsQuery) ([]query.Deed, error) {
	if len(q.Ordinals) == 0 {
		return nil, nil
	}
	sql, args, err := query.DeedsSQL(dialect{}, q)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var out []query.Deed
	err = s.rowsOf(ctx, sql, args, func(ch chunk) {
		ordinals, types, values := column[uint32](ch, 0), ch.text(1), ch.text(2)
		events, first, last := column[int64](ch, 3), column[int64](ch, 4), column[int64](ch, 5)
		for i := range ordinals {
			out = append(out, query.Deed{Ordinal: ordinals[i], Type: types[i], Value: values[i], Events: uint64(events[i]), FirstMs: first[i], LastMs: last[i]})
		}
	}, func() int { return len(out) })
	if err != nil {
		return nil, fmt.Errorf("history: deeds in account %d: %w", q.Account, err)
	}
	return out, nil
}

// rowsOf runs a statement whose answer is bounded.
func (s *Store) rowsOf(ctx context.Context, sql string, args []any, add func(chunk), rows func() int) error {
	c, done, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	return c.query(ctx, sql, args, func(ch chunk) error {
		add(ch)
		if rows() > query.MaxSeriesRows {
			return query.ErrSeriesTooLarge
		}
		return nil
	})
}

// Moves implements [query.History].
func (s *Store) Moves(ctx context.Context, q query.MovesQuery) ([]query.MovesRow, error) {
	fail := func(err error) ([]query.MovesRow, error) {
		return nil, fmt.Errorf("history: moves of account %d: %w", q.Account, err)
	}
	sql, args, err := query.MovesSQL(dialect{}, q)
	if err != nil {
		return fail(err)
	}
	var out []query.MovesRow
	err = s.rowsOf(ctx, sql, args, func(ch chunk) {
		segments, starts, entered, exits := ch.text(0), column[int64](ch, 1), column[int64](ch, 2), column[int64](ch, 3)
		for i := range segments {
			out = append(out, query.MovesRow{Segment: segments[i], StartMs: starts[i], Entered: uint64(entered[i]), Exits: uint64(exits[i])})
		}
	}, func() int { return len(out) })
	if err != nil {
		return fail(err)
	}
	return out, nil
}
