package duckdb

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/columns"
)

// Matches calls fn with the events of a [query.MatchQuery], in blocks and in any
// order. A block is never empty and is valid during the call only. An error of
// fn ends it and is returned. fn must not take its time: the connection is one of
// those for questions.
func (s *Store) Matches(ctx context.Context, q query.MatchQuery, fn func(*query.MatchBlock) error) error {
	if s.columns != nil && columns.Answers(&q) {
		return s.matchColumns(ctx, q, fn)
	}
	return s.matchTables(ctx, q, fn)
}

// matchTables is Matches that asks the tables.
func (s *Store) matchTables(ctx context.Context, q query.MatchQuery, fn func(*query.MatchBlock) error) error {
	sql, args, err := query.MatchSQL(dialect{}, q)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	c, done, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	var block query.MatchBlock
	var fnErr error
	err = c.query(ctx, sql, args, func(ch chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if ch.rows == 0 {
			return nil
		}
		block.Ordinal, block.TimeMs = column[uint32](ch, 0), column[int64](ch, 1)
		next := 2
		texts := func(into *query.Strings) {
			into.Reset()
			refs := ch.refs(next)
			for i := range refs {
				into.Append(refs[i].bytes())
			}
			next++
		}
		if q.ByType {
			texts(&block.Type)
		}
		switch q.As {
		case query.AsMicros:
			block.Micros = column[int64](ch, next)
		case query.AsScalar, query.AsText:
			texts(&block.Text)
		}
		fnErr = fn(&block)
		return fnErr
	})
	if err != nil && fnErr == nil {
		return fmt.Errorf("history: matches of account %d: %w", q.Account, err)
	}
	return err
}
