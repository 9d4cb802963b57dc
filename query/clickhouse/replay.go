package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

const (
	// maxPieceRows is about how many events of the type a replay reads in one
	// statement.
	maxPieceRows = 500_000
	// replayRows is how many rows a block of a replay has at most.
	replayRows = 8192
	// pieceBuckets is into how many ranges of records a look at the rows' places
	// divides them.
	pieceBuckets = 256
)

// Replay implements [query.History]. It holds one block, and what the driver has
// read ahead: two blocks of the server's, each 8,192 rows or about 1 MB.
//
// It reads in pieces, a range of records in each statement, so that none takes
// so long that the server or the way to it gives it up. Records below the cut do
// not change, so it makes no difference when a piece is read.
func (s *Store) Replay(ctx context.Context, q query.ReplayQuery, fn func(*query.ReplayBlock) error) error {
	// For its errors, before anything is waited for.
	if _, _, err := query.ReplaySQL(dialect{}, q, 0, q.Cut.UpTo); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	done, err := s.replays.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := replay{ctx: ctx, store: s, query: &q, fn: fn}
	if err := r.run(0, q.Cut.UpTo); err != nil && r.err == nil {
		return fmt.Errorf("history: replay %s of account %d: %w", q.EventType, q.Account, err)
	}
	return r.err
}

type replay struct {
	ctx   context.Context
	store *Store
	query *query.ReplayQuery
	fn    func(*query.ReplayBlock) error
	block query.ReplayBlock
	err   error // of fn
}

// run replays the records from ≤ offset < to, in pieces. Buckets of records that
// hold too many rows for one are divided again.
func (r *replay) run(from, to int64) error {
	if from >= to {
		return nil
	}
	width := (to-from-1)/pieceBuckets + 1
	buckets, err := r.buckets(from, to, width)
	if err != nil {
		return err
	}
	// A piece of what lies together: up to a bucket that would make it too large.
	start, rows := int64(-1), 0
	flush := func(end int64) error {
		if start < 0 {
			return nil
		}
		begin := start
		start, rows = -1, 0
		return r.piece(begin, end)
	}
	for _, b := range buckets {
		low := from + int64(b.number)*width
		if rows+b.rows > r.store.pieceRows {
			if err := flush(low); err != nil {
				return err
			}
		}
		if b.rows > r.store.pieceRows && width > 1 {
			if err := r.run(low, min(low+width, to)); err != nil {
				return err
			}
			continue
		}
		if start < 0 {
			start = low
		}
		rows += b.rows
	}
	return flush(to)
}

// bucket is how many events of the type are in the records of one range.
type bucket struct{ number, rows int }

func (r *replay) buckets(from, to, width int64) (out []bucket, err error) {
	c, err := r.store.coverFor(r.ctx, r.query.Cut.Partition, to)
	if err != nil {
		return nil, err
	}
	if c.end() < to {
		return nil, fmt.Errorf("replay below %d: history stands at %d", to, c.end())
	}
	after := ""
	if r.query.AfterMs != nil {
		after = fmt.Sprintf(" AND time_ms > %d", *r.query.AfterMs)
	}
	types := "event_type = " + quote(r.query.EventType)
	if r.query.EventType == segment.AnyEvent {
		types = "true" // one that the service records itself makes a bucket look larger
	}
	err = r.store.query(r.ctx, r.store.opts.QueryTimeout, fmt.Sprintf(
		`SELECT toInt64(intDiv(record_offset - %d, %d)) AS b, toInt64(count()) FROM events WHERE account = %d AND "partition" = %d AND %s%s
			AND record_offset >= %d AND record_offset < %d AND %s GROUP BY b ORDER BY b`,
		from, width, r.query.Account, r.query.Cut.Partition, types, after, from, to, c.condition("")),
		func(rows driver.Rows) error {
			var number, n int64
			if err := rows.Scan(&number, &n); err != nil {
				return err
			}
			out = append(out, bucket{int(number), int(n)})
			return nil
		})
	return out, err
}

// piece replays a range of records in one statement.
func (r *replay) piece(from, to int64) error {
	q := r.query
	c, err := r.store.coverFor(r.ctx, q.Cut.Partition, q.Cut.UpTo)
	if err != nil {
		return err
	}
	sql, args, err := query.ReplaySQL(dialect{c}, *q, from, to)
	if err != nil {
		return err
	}
	var ordinal uint32
	var timeMs, micros int64
	var properties, key []byte
	var matches bool
	dest := []any{&ordinal, &timeMs}
	if q.Properties {
		dest = append(dest, &properties)
	}
	if q.Keys {
		dest = append(dest, &key)
	}
	if q.Number != nil {
		dest = append(dest, &micros)
	}
	if len(q.Where) > 0 {
		dest = append(dest, &matches)
	}
	matches = true
	err = r.store.query(r.ctx, pieceTimeout, bound(sql, args), func(rows driver.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if !matches {
			return nil
		}
		b := &r.block
		b.Ordinal, b.TimeMs = append(b.Ordinal, ordinal), append(b.TimeMs, timeMs)
		if q.Properties {
			b.Properties.Append(properties)
		}
		if q.Keys {
			b.IdempotencyKey.Append(key)
		}
		if q.Number != nil {
			b.Micros = append(b.Micros, micros)
		}
		if len(b.Ordinal) < replayRows && len(b.Properties.Data) < mb {
			return nil
		}
		return r.flush()
	})
	if err != nil {
		return err
	}
	return r.flush()
}

// flush hands the block on.
func (r *replay) flush() error {
	b := &r.block
	if len(b.Ordinal) == 0 {
		return nil
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.err = r.fn(b)
	b.Ordinal, b.TimeMs, b.Micros = b.Ordinal[:0], b.TimeMs[:0], b.Micros[:0]
	b.Properties.Reset()
	b.IdempotencyKey.Reset()
	return r.err
}
