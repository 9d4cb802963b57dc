package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
)

// matchRows is how many events a block of matches has at most.
const matchRows = 8192

// Matches calls fn with the events of a [query.MatchQuery], in blocks and in any
// order. A block is never empty and is reused: it is valid during the call only.
// An error of fn ends it and is returned.
func (s *Store) Matches(ctx context.Context, q query.MatchQuery, fn func(*query.MatchBlock) error) error {
	fail := func(err error) error { return fmt.Errorf("history: matches of account %d: %w", q.Account, err) }
	c, err := s.coverFor(ctx, q.Cut.Partition, q.Cut.UpTo)
	if err != nil {
		return fail(err)
	}
	sql, args, err := query.MatchSQL(dialect{c}, q)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	var block query.MatchBlock
	var fnErr error
	flush := func() error {
		if len(block.Ordinal) > 0 {
			fnErr = fn(&block)
		}
		block.Ordinal, block.TimeMs, block.Micros = block.Ordinal[:0], block.TimeMs[:0], block.Micros[:0]
		block.Text.Reset()
		block.Type.Reset()
		return fnErr
	}
	var ordinal uint32
	var timeMs, micros int64
	var typ, text []byte
	dest := []any{&ordinal, &timeMs}
	if q.ByType {
		dest = append(dest, &typ)
	}
	switch q.As {
	case query.AsMicros:
		dest = append(dest, &micros)
	case query.AsScalar, query.AsText:
		dest = append(dest, &text)
	}
	err = s.ask(ctx, bound(sql, args), func(r driver.Rows) error {
		if err := r.Scan(dest...); err != nil {
			return err
		}
		block.Ordinal, block.TimeMs = append(block.Ordinal, ordinal), append(block.TimeMs, timeMs)
		if q.ByType {
			block.Type.Append(typ)
		}
		switch q.As {
		case query.AsMicros:
			block.Micros = append(block.Micros, micros)
		case query.AsScalar, query.AsText:
			block.Text.Append(text)
		}
		if len(block.Ordinal) < matchRows && len(block.Text.Data) < mb {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil && fnErr == nil {
		return fail(err)
	}
	return err
}
