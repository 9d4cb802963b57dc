package duckdb

import (
	"context"
	"fmt"
	"runtime"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// maxTransitions bounds the transitions of one answer.
const maxTransitions = 10_000

// Transitions implements [query.History]. A limit beyond 10,000 counts as
// 10,000.
func (s *Store) Transitions(ctx context.Context, q query.TransitionsQuery) ([]query.Transition, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	sql, args := transitionsSQL(q)
	return s.transitionRows(ctx, q.Account, q.Segment, sql, args)
}

// ProfileTransitions implements [query.History]. A limit beyond 10,000 counts as
// 10,000.
func (s *Store) ProfileTransitions(ctx context.Context, q query.ProfileTransitionsQuery) ([]query.Transition, error) {
	if len(q.Ordinals) == 0 || q.Limit <= 0 {
		return nil, nil
	}
	sql, args := profileTransitionsSQL(q)
	return s.transitionRows(ctx, q.Account, "", sql, args)
}

// transitionColumnList is what transitionRows reads.
const transitionColumnList = "record_offset, seq, segment, ordinal, entered, cause, at_ms"

// transitionRows runs a statement for transitions; name is a segment's id that rows are
// likely to have.
func (s *Store) transitionRows(ctx context.Context, account uint64, name, sql string, args []any) ([]query.Transition, error) {
	c, done, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out []query.Transition
	err = c.query(ctx, sql, args, func(ch chunk) error {
		offsets, seqs, segments := column[int64](ch, 0), column[uint32](ch, 1), ch.refs(2)
		ordinals, entered, causes, at := column[uint32](ch, 3), column[bool](ch, 4), column[uint8](ch, 5), column[int64](ch, 6)
		for i := range offsets {
			if b := segments[i].bytes(); name != string(b) {
				name = string(b)
			}
			out = append(out, query.Transition{
				Account: account, Key: query.TransitionKey{Offset: offsets[i], Seq: seqs[i]}, Segment: name,
				Ordinal: ordinals[i], Entered: entered[i], Cause: segment.Cause(causes[i]), AtMs: at[i],
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: transitions of account %d: %w", account, err)
	}
	return out, nil
}

func profileTransitionsSQL(q query.ProfileTransitionsQuery) (sql string, args []any) {
	bind := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := fmt.Sprintf(`ordinal IN (%s) AND account = %s AND "partition" = %s AND record_offset < %s`,
		listed(bind, q.Ordinals), bind(q.Account), bind(uint32(q.Cut.Partition)), bind(q.Cut.UpTo))
	if b := q.Before; b != nil {
		t, o := bind(b.AtMs), bind(b.Key.Offset)
		where += fmt.Sprintf(" AND at_ms <= %s AND (at_ms < %s OR record_offset < %s OR record_offset = %s AND seq < %s)", t, t, o, o, bind(b.Key.Seq))
	}
	return "SELECT " + transitionColumnList + " FROM transitions WHERE " + where +
		" ORDER BY at_ms DESC, record_offset DESC, seq DESC LIMIT " + bind(int64(min(q.Limit, maxTransitions))), args
}

// transitionsSQL leaves no index to need: rows lie in order of their keys, so
// what is before the key or the cut is skipped by row groups, and so is, once
// there are enough, what comes after the last of them.
func transitionsSQL(q query.TransitionsQuery) (sql string, args []any) {
	bind := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := fmt.Sprintf(`account = %s AND "partition" = %s AND record_offset < %s`,
		bind(q.Account), bind(uint32(q.Cut.Partition)), bind(q.Cut.UpTo))
	if q.After != (query.TransitionKey{}) {
		o := bind(q.After.Offset)
		where += fmt.Sprintf(" AND record_offset >= %s AND (record_offset > %s OR seq > %s)", o, o, bind(q.After.Seq))
	}
	if q.Segment != "" {
		where += " AND segment = " + bind(q.Segment)
	}
	return "SELECT " + transitionColumnList + " FROM transitions WHERE " + where +
		" ORDER BY record_offset, seq LIMIT " + bind(int64(min(q.Limit, maxTransitions))), args
}

// appendTransitions writes them column by column, in the open transaction.
func (c *conn) appendTransitions(ctx context.Context, partition uint32, transitions []query.Transition) error {
	dc := newChunk(
		bindings.TypeUBigInt, bindings.TypeUInteger, bindings.TypeBigInt, bindings.TypeUInteger, bindings.TypeVarchar,
		bindings.TypeUInteger, bindings.TypeBoolean, bindings.TypeUTinyInt, bindings.TypeBigInt)
	defer bindings.DestroyDataChunk(&dc)
	var cols transitionColumns
	return c.appendTo("transitions", func(app bindings.Appender) error {
		for len(transitions) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(chunkRows, len(transitions))
			if err := cols.append(app, dc, partition, transitions[:n]); err != nil {
				return err
			}
			transitions = transitions[n:]
		}
		return nil
	})
}

// transitionColumns turns rows into columns, a chunk at a time.
type transitionColumns struct {
	account []uint64
	part    []uint32
	offset  []int64
	seq     []uint32
	segment query.Strings
	ordinal []uint32
	entered []bool
	cause   []uint8
	atMs    []int64
}

func (t *transitionColumns) append(app bindings.Appender, dc bindings.DataChunk, partition uint32, rows []query.Transition) error {
	t.account, t.part, t.offset, t.seq, t.ordinal = t.account[:0], t.part[:0], t.offset[:0], t.seq[:0], t.ordinal[:0]
	t.entered, t.cause, t.atMs = t.entered[:0], t.cause[:0], t.atMs[:0]
	t.segment.Reset()
	for i := range rows {
		r := &rows[i]
		t.account = append(t.account, r.Account)
		t.part = append(t.part, partition)
		t.offset = append(t.offset, r.Key.Offset)
		t.seq = append(t.seq, r.Key.Seq)
		t.segment.Data = append(t.segment.Data, r.Segment...)
		t.segment.Ends = append(t.segment.Ends, uint32(len(t.segment.Data)))
		t.ordinal = append(t.ordinal, r.Ordinal)
		t.entered = append(t.entered, r.Entered)
		t.cause = append(t.cause, uint8(r.Cause))
		t.atMs = append(t.atMs, r.AtMs)
	}
	// DuckDB copies the chunk, strings included, when it takes it.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&t.segment.Data[0])
	bindings.DataChunkReset(dc)
	fill(dc, 0, t.account)
	fill(dc, 1, t.part)
	fill(dc, 2, t.offset)
	fill(dc, 3, t.seq)
	fillText(dc, 4, &t.segment, 0, len(rows))
	fill(dc, 5, t.ordinal)
	fill(dc, 6, t.entered)
	fill(dc, 7, t.cause)
	fill(dc, 8, t.atMs)
	bindings.DataChunkSetSize(dc, bindings.IdxT(len(rows)))
	if bindings.AppendDataChunk(app, dc) != bindings.StateSuccess {
		return fmt.Errorf("duckdb: append: %s", bindings.AppenderError(app))
	}
	return nil
}
