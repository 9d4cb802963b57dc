package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
)

// Series implements [query.History].
func (s *Store) Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	if q.FromMs >= q.ToMs {
		return nil, nil
	}
	out, err := bounded(ctx, s, q.Cut, func(d dialect) (string, []any, error) { return query.SeriesSQL(d, q) },
		func(r driver.Rows) (x query.SeriesRow, err error) {
			var events, profiles int64
			err = r.Scan(&x.Type, &x.Value, &x.StartMs, &events, &profiles)
			x.Events, x.Profiles = uint64(events), uint64(profiles)
			return x, err
		})
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
	out, err := bounded(ctx, s, q.Cut, func(d dialect) (string, []any, error) { return query.DeedsSQL(d, q) },
		func(r driver.Rows) (x query.Deed, err error) {
			var events int64
			err = r.Scan(&x.Ordinal, &x.Type, &x.Value, &events, &x.FirstMs, &x.LastMs)
			x.Events = uint64(events)
			return x, err
		})
	if err != nil {
		return nil, fmt.Errorf("history: deeds in account %d: %w", q.Account, err)
	}
	return out, nil
}

// Moves implements [query.History].
func (s *Store) Moves(ctx context.Context, q query.MovesQuery) ([]query.MovesRow, error) {
	out, err := bounded(ctx, s, q.Cut, func(d dialect) (string, []any, error) { return query.MovesSQL(d, q) },
		func(r driver.Rows) (x query.MovesRow, err error) {
			var entered, exits int64
			err = r.Scan(&x.Segment, &x.StartMs, &entered, &exits)
			x.Entered, x.Exits = uint64(entered), uint64(exits)
			return x, err
		})
	if err != nil {
		return nil, fmt.Errorf("history: moves of account %d: %w", q.Account, err)
	}
	return out, nil
}

// bounded runs a statement whose answer is bounded.
func bounded[T any](ctx context.Context, s *Store, cut query.Cut, build func(dialect) (string, []any, error), scan func(driver.Rows) (T, error)) ([]T, error) {
	c, err := s.coverFor(ctx, cut.Partition, cut.UpTo)
	if err != nil {
		return nil, err
	}
	sql, args, err := build(dialect{c})
	if err != nil {
		return nil, err
	}
	var out []T
	err = s.ask(ctx, bound(sql, args), func(r driver.Rows) error {
		x, err := scan(r)
		if err != nil {
			return err
		}
		if out = append(out, x); len(out) > query.MaxSeriesRows {
			return query.ErrSeriesTooLarge
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
