package duckdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// exportPiece is about how many rows of each table an exported batch has. A
// record is never cut.
const exportPiece = 16_384

// Export implements [query.Exporter]. It is one of the store's replays.
func (s *Store) Export(ctx context.Context, cut query.Cut, from int64, fn func(*query.Batch) error) error {
	at, err := s.Position(ctx, cut.Partition)
	if err != nil {
		return err
	}
	if at < cut.UpTo {
		return fmt.Errorf("%w: export below %d, partition %d stands at %d", query.ErrGap, cut.UpTo, cut.Partition, at)
	}
	c, done, err := take(ctx, s.replays)
	if err != nil {
		return err
	}
	defer done()
	ends, err := exportEnds(ctx, c, cut, s.exportPiece)
	if err != nil {
		return fmt.Errorf("history: export: %w", err)
	}
	var r rows
	for _, to := range ends {
		if to <= from {
			continue
		}
		r.reset()
		r.Partition, r.From, r.To = cut.Partition, from, to
		if err := r.read(ctx, c); err != nil {
			return fmt.Errorf("history: export records %d to %d: %w", from, to, err)
		}
		if err := fn(&r.Batch); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// exportEnds cuts the records below the cut into ranges and returns where each
// ends. Rows lie in the order of the log, but for those of events that wait for a
// full row group, which are few.
func exportEnds(ctx context.Context, c *conn, cut query.Cut, rows int) (ends []int64, err error) {
	for _, table := range []string{"events_sealed", "aliases", "transitions"} {
		err := c.query(ctx, fmt.Sprintf(`SELECT DISTINCT record_offset FROM %[1]s
			WHERE rowid IN (SELECT range FROM range($1, (SELECT coalesce(max(rowid), 0) + 1 FROM %[1]s), $1))
			AND "partition" = $2 AND record_offset < $3`, table),
			[]any{int64(rows), uint32(cut.Partition), cut.UpTo}, func(ch chunk) error {
				ends = append(ends, column[int64](ch, 0)...)
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(ends)
	return slices.Compact(append(ends, cut.UpTo)), nil
}

// read reads the rows of the batch's records.
func (r *rows) read(ctx context.Context, c *conn) error {
	args := []any{uint32(r.Partition), r.From, r.To}
	const where = ` WHERE "partition" = $1 AND record_offset >= $2 AND record_offset < $3 ORDER BY record_offset, `
	err := c.query(ctx, selectRows+"events"+where+"record_index", args, func(ch chunk) error {
		r.addChunk(ch)
		return nil
	})
	if err != nil {
		return err
	}
	err = c.query(ctx, "SELECT account, record_offset, record_index, ordinal, winner FROM aliases"+where+"seq", args, func(ch chunk) error {
		account, offset, index := column[uint64](ch, 0), column[int64](ch, 1), column[uint32](ch, 2)
		ordinal, winner := column[uint32](ch, 3), column[uint32](ch, 4)
		for i := range account {
			r.Aliases = append(r.Aliases, query.Alias{Account: account[i], Offset: offset[i], Index: index[i], Ordinal: ordinal[i], Winner: winner[i]})
		}
		return nil
	})
	if err != nil {
		return err
	}
	names := map[string]string{} // few segments, many transitions
	return c.query(ctx, "SELECT account, record_offset, seq, segment, ordinal, entered, cause, at_ms FROM transitions"+where+"seq", args, func(ch chunk) error {
		account, offset, seq, refs := column[uint64](ch, 0), column[int64](ch, 1), column[uint32](ch, 2), ch.refs(3)
		ordinal, entered, cause, at := column[uint32](ch, 4), column[bool](ch, 5), column[uint8](ch, 6), column[int64](ch, 7)
		for i := range account {
			id := refs[i].bytes()
			name, ok := names[string(id)]
			if !ok {
				name = string(id)
				names[name] = name
			}
			r.Transitions = append(r.Transitions, query.Transition{
				Account: account[i], Key: query.TransitionKey{Offset: offset[i], Seq: seq[i]}, Segment: name,
				Ordinal: ordinal[i], Entered: entered[i], Cause: segment.Cause(cause[i]), AtMs: at[i],
			})
		}
		return nil
	})
}

// Counts implements [query.Counter].
func (s *Store) Counts(ctx context.Context, cut query.Cut, remainder, modulus int) (n query.Counts, err error) {
	c, done, err := s.reader(ctx)
	if err != nil {
		return n, err
	}
	defer done()
	for _, x := range []struct {
		table, what string
		to          []*int64
	}{
		{"events", "count(*), CAST(coalesce(sum(strlen(event_type) + strlen(properties) + strlen(idempotency_key)), 0) AS BIGINT)", []*int64{&n.Events, &n.TextBytes}},
		{"aliases", "count(*)", []*int64{&n.Aliases}},
		{"transitions", "count(*)", []*int64{&n.Transitions}},
	} {
		err := c.query(ctx, "SELECT "+x.what+" FROM "+x.table+` WHERE "partition" = $1 AND record_offset < $2 AND account % $3 = $4`,
			[]any{uint32(cut.Partition), cut.UpTo, uint64(modulus), uint64(remainder)}, func(ch chunk) error {
				for i, to := range x.to {
					*to = column[int64](ch, i)[0]
				}
				return nil
			})
		if err != nil {
			return n, fmt.Errorf("history: count: %w", err)
		}
	}
	return n, nil
}

var _ query.Exporter = (*Store)(nil)
