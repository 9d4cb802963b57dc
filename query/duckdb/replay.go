package duckdb

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/columns"
)

const (
	// replayBuffer is how far DuckDB works ahead of fn. With its default of
	// 1 MB all but one of its threads wait for fn most of the time.
	replayBuffer = "64MB"
	// maxPieceRows is how many rows of all types a replay reads in one
	// statement.
	maxPieceRows = 2_000_000
)

// Replay implements [query.History]. It holds no more of the answer than one
// block and what DuckDB has worked ahead, 64 MB. What columns have that previews
// made comes from these.
//
// It reads in pieces, a range of records in each statement. As long as a
// statement is under way, DuckDB does not move the write-ahead log into the
// file, so one statement over everything and a slow fn would make the log grow
// with all that is appended meanwhile. Records below the cut do not change, so
// it makes no difference which snapshot a piece is read from.
func (s *Store) Replay(ctx context.Context, q query.ReplayQuery, fn func(*query.ReplayBlock) error) error {
	// For its errors, before anything is waited for.
	if _, _, err := query.ReplaySQL(dialect{}, q, 0, q.Cut.UpTo); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	c, done, err := take(ctx, s.replays)
	if err != nil {
		return err
	}
	defer done()
	r := replay{ctx: ctx, query: &q, fn: fn}
	if err := r.all(s, c); err != nil && r.err == nil {
		return fmt.Errorf("history: replay %s of account %d: %w", q.EventType, q.Account, err)
	}
	return r.err
}

func (r *replay) all(s *Store, c *conn) error {
	q := r.query.Matching()
	if s.columns == nil || r.query.Properties || r.query.Keys || !columns.Answers(&q) {
		return r.run(s, c, 0, q.Cut.UpTo)
	}
	merged, err := s.aliasesAt(r.ctx, q.Cut, q.Account)
	if err != nil {
		return err
	}
	return s.columns.set.Matches(r.ctx, &q, merged, func(from, to int64) error {
		return r.run(s, c, from, to)
	}, func(b *query.MatchBlock) error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.block.Ordinal, r.block.TimeMs, r.block.Micros = b.Ordinal, b.TimeMs, b.Micros
		r.err = r.fn(&r.block)
		r.block.Ordinal, r.block.TimeMs, r.block.Micros = nil, nil, nil
		return r.err
	})
}

// run asks the tables about the records from ≤ offset < to.
func (r *replay) run(s *Store, c *conn, from, to int64) error {
	ends, err := pieces(r.ctx, c, query.Cut{Partition: r.query.Cut.Partition, UpTo: to}, s.pieceRows)
	if err != nil {
		return err
	}
	for i, to := range ends {
		if to <= from {
			continue
		}
		if i > 0 {
			s.checkpointIfDue()
		}
		sql, args, err := query.ReplaySQL(dialect{}, *r.query, from, to)
		if err != nil {
			return err
		}
		if err := c.query(r.ctx, sql, args, r.chunk); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// pieces cuts the records below the cut into ranges of about so many rows, and
// returns where each ends. Rows of events_sealed stay where they are, so each
// so many there is one whose record begins a range.
func pieces(ctx context.Context, c *conn, cut query.Cut, rows int) (ends []int64, err error) {
	err = c.query(ctx, `SELECT DISTINCT record_offset FROM events_sealed
		WHERE rowid IN (SELECT range FROM range($1, (SELECT count(*) FROM events_sealed), $1))
		AND "partition" = $2 AND record_offset < $3 ORDER BY record_offset`,
		[]any{int64(rows), uint32(cut.Partition), cut.UpTo}, func(ch chunk) error {
			ends = append(ends, column[int64](ch, 0)...)
			return nil
		})
	return append(ends, cut.UpTo), err
}

// replay hands a result of query.ReplaySQL on in one block that is reused.
type replay struct {
	ctx   context.Context
	query *query.ReplayQuery
	fn    func(*query.ReplayBlock) error
	block query.ReplayBlock
	err   error // of fn
}

func (r *replay) chunk(ch chunk) error {
	// A chunk that was worked ahead comes without asking the statement, which
	// alone notices an interruption.
	if err := r.ctx.Err(); err != nil {
		return err
	}
	b := &r.block
	ordinals, times := column[uint32](ch, 0), column[int64](ch, 1)
	var texts [2][]stringRef // of the columns in into, nil for those not asked for
	into, next := [2]*query.Strings{&b.Properties, &b.IdempotencyKey}, 2
	for i, on := range [2]bool{r.query.Properties, r.query.Keys} {
		into[i].Reset()
		if on {
			texts[i] = ch.refs(next)
			next++
		}
	}
	b.Ordinal, b.TimeMs, b.Micros = b.Ordinal[:0], b.TimeMs[:0], b.Micros[:0]
	var micros []int64 // nil when not asked for
	if r.query.Number != nil {
		micros = column[int64](ch, next)
		next++
	}
	if len(r.query.Where) == 0 {
		b.Ordinal, b.TimeMs, b.Micros = append(b.Ordinal, ordinals...), append(b.TimeMs, times...), append(b.Micros, micros...)
		for i, refs := range texts {
			for j := range refs {
				into[i].Append(refs[j].bytes())
			}
		}
	} else {
		matches := column[bool](ch, next)
		for j, m := range matches {
			if !m {
				continue
			}
			b.Ordinal, b.TimeMs = append(b.Ordinal, ordinals[j]), append(b.TimeMs, times[j])
			if micros != nil {
				b.Micros = append(b.Micros, micros[j])
			}
			for i, refs := range texts {
				if refs != nil {
					into[i].Append(refs[j].bytes())
				}
			}
		}
	}
	if len(b.Ordinal) == 0 {
		return nil
	}
	r.err = r.fn(b)
	return r.err
}
