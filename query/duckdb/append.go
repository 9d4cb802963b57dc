package duckdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sort"
	"unicode/utf8"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
)

// ErrGap says that a batch begins above the position: rows are missing between.
var ErrGap = errors.New("history batch begins above the position")

// ErrBadBatch says that a batch contradicts itself.
var ErrBadBatch = errors.New("history batch is malformed")

// chunkRows is the number of rows of a full data chunk.
const chunkRows = 2048

// Position implements [query.History].
func (s *Store) Position(ctx context.Context, partition int) (int64, error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.closed {
		return 0, ErrClosed
	}
	return s.position(ctx, partition)
}

// position is Position under the writer's lock.
func (s *Store) position(ctx context.Context, partition int) (int64, error) {
	if s.writer.positions == nil {
		positions := make(map[int]int64)
		err := s.writer.query(ctx, `SELECT "partition", next_offset FROM progress`, nil, func(ch chunk) error {
			partitions, next := column[uint32](ch, 0), column[int64](ch, 1)
			for i, p := range partitions {
				positions[int(p)] = next[i]
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("history: position: %w", err)
		}
		s.writer.positions = positions
	}
	return s.writer.positions[partition], nil
}

// Append implements [query.History]. It has no effect unless it returns nil,
// except that after an error of the commit itself the batch may be stored: then
// [Store.Position] tells.
func (s *Store) Append(ctx context.Context, b *query.Batch) error {
	if err := check(b); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.closed {
		return ErrClosed
	}
	position, err := s.position(ctx, b.Partition)
	if err != nil {
		return err
	}
	if b.From > position {
		return fmt.Errorf("%w: partition %d stands at %d, the batch begins at %d", ErrGap, b.Partition, position, b.From)
	}
	if b.To <= position {
		return nil
	}
	first := sort.Search(b.Rows(), func(i int) bool { return b.Offset[i] >= position })
	aliases := b.Aliases
	for len(aliases) > 0 && aliases[0].Offset < position {
		aliases = aliases[1:]
	}
	_, known := s.writer.positions[b.Partition]
	// Whatever happens now, the table knows better than the mirror.
	s.writer.positions = nil
	if err := s.store(ctx, b, first, aliases, known); err != nil {
		return fmt.Errorf("history: append to partition %d, records %d to %d: %w", b.Partition, b.From, b.To, err)
	}
	_, err = s.position(context.WithoutCancel(ctx), b.Partition)
	return err
}

// store writes one transaction.
func (s *Store) store(ctx context.Context, b *query.Batch, first int, aliases []query.Alias, known bool) (err error) {
	w := s.writer.conn
	if err := w.exec("BEGIN"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// Fails when the commit has failed and ended the transaction.
			_ = w.exec("ROLLBACK")
		}
	}()
	if first < b.Rows() {
		if err := s.storeRows(ctx, b, first); err != nil {
			return err
		}
	}
	if len(aliases) > 0 {
		if err := s.storeAliases(uint32(b.Partition), aliases); err != nil {
			return err
		}
	}
	progress := `INSERT INTO progress (next_offset, "partition") VALUES (?, ?)`
	if known {
		progress = `UPDATE progress SET next_offset = ? WHERE "partition" = ?`
	}
	if err := w.query(ctx, progress, []any{b.To, uint32(b.Partition)}, nil); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.exec("COMMIT")
}

func newChunk(types ...bindings.Type) bindings.DataChunk {
	logical := make([]bindings.LogicalType, len(types))
	for i, t := range types {
		logical[i] = bindings.CreateLogicalType(t)
		defer bindings.DestroyLogicalType(&logical[i])
	}
	return bindings.CreateDataChunk(logical)
}

func newEventsChunk() bindings.DataChunk {
	return newChunk(
		bindings.TypeUBigInt, bindings.TypeUInteger, bindings.TypeBigInt,
		bindings.TypeUInteger, bindings.TypeUInteger, bindings.TypeBigInt,
		bindings.TypeVarchar, bindings.TypeVarchar, bindings.TypeVarchar)
}

func (s *Store) storeRows(ctx context.Context, b *query.Batch, first int) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	for _, col := range []*query.Strings{&b.EventType, &b.Properties, &b.IdempotencyKey} {
		if len(col.Data) > 0 {
			pin.Pin(&col.Data[0])
		}
	}
	partitions := make([]uint32, min(chunkRows, b.Rows()-first))
	for i := range partitions {
		partitions[i] = uint32(b.Partition)
	}
	return s.writer.appendTo("events", func(app bindings.Appender) error {
		dc := s.writer.chunk
		for i := first; i < b.Rows(); i += chunkRows {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(chunkRows, b.Rows()-i)
			bindings.DataChunkReset(dc)
			fill(dc, 0, b.Account[i:i+n])
			fill(dc, 1, partitions[:n])
			fill(dc, 2, b.Offset[i:i+n])
			fill(dc, 3, b.Index[i:i+n])
			fill(dc, 4, b.Ordinal[i:i+n])
			fill(dc, 5, b.TimeMs[i:i+n])
			fillText(dc, 6, &b.EventType, i, n)
			fillText(dc, 7, &b.Properties, i, n)
			fillText(dc, 8, &b.IdempotencyKey, i, n)
			bindings.DataChunkSetSize(dc, bindings.IdxT(n))
			if bindings.AppendDataChunk(app, dc) != bindings.StateSuccess {
				return errors.New(bindings.AppenderError(app))
			}
		}
		return nil
	})
}

func (s *Store) storeAliases(partition uint32, aliases []query.Alias) error {
	dc := newChunk(
		bindings.TypeUBigInt, bindings.TypeUInteger, bindings.TypeBigInt,
		bindings.TypeUInteger, bindings.TypeUInteger, bindings.TypeUInteger)
	defer bindings.DestroyDataChunk(&dc)
	return s.writer.appendTo("aliases", func(app bindings.Appender) error {
		for len(aliases) > 0 {
			n := min(chunkRows, len(aliases))
			bindings.DataChunkReset(dc)
			for i, a := range aliases[:n] {
				put(dc, 0, i, a.Account)
				put(dc, 1, i, partition)
				put(dc, 2, i, a.Offset)
				put(dc, 3, i, a.Index)
				put(dc, 4, i, a.Ordinal)
				put(dc, 5, i, a.Winner)
			}
			bindings.DataChunkSetSize(dc, bindings.IdxT(n))
			if bindings.AppendDataChunk(app, dc) != bindings.StateSuccess {
				return errors.New(bindings.AppenderError(app))
			}
			aliases = aliases[n:]
		}
		return nil
	})
}

// appendTo runs fn with an appender of the table, in the open transaction.
func (c *conn) appendTo(table string, fn func(bindings.Appender) error) error {
	var app bindings.Appender
	if bindings.AppenderCreate(c.c, "", table, &app) != bindings.StateSuccess {
		err := fmt.Errorf("duckdb: appender of %s: %s", table, bindings.AppenderError(app))
		bindings.AppenderDestroy(&app)
		return err
	}
	defer bindings.AppenderDestroy(&app)
	if err := fn(app); err != nil {
		// Else destroying it would flush what it has.
		bindings.AppenderClear(app)
		return err
	}
	if bindings.AppenderFlush(app) != bindings.StateSuccess {
		return fmt.Errorf("duckdb: append to %s: %s", table, bindings.AppenderError(app))
	}
	return nil
}

// check refuses batches that would store rows that are wrong or unreadable.
func check(b *query.Batch) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrBadBatch, fmt.Sprintf(format, args...))
	}
	n := b.Rows()
	switch {
	case b.Partition < 0 || int64(b.Partition) > int64(^uint32(0)):
		return bad("partition is %d", b.Partition)
	case b.From < 0 || b.To < b.From:
		return bad("records %d to %d", b.From, b.To)
	case len(b.Account) != n || len(b.Index) != n || len(b.Ordinal) != n || len(b.TimeMs) != n:
		return bad("columns differ in length")
	}
	last := b.From
	for i, o := range b.Offset {
		if o < last || o >= b.To {
			return bad("row %d has offset %d, expected %d to %d", i, o, last, b.To-1)
		}
		last = o
	}
	last = b.From
	for i, a := range b.Aliases {
		if a.Offset < last || a.Offset >= b.To {
			return bad("alias %d has offset %d, expected %d to %d", i, a.Offset, last, b.To-1)
		}
		last = a.Offset
	}
	for name, col := range map[string]*query.Strings{
		"event type": &b.EventType, "properties": &b.Properties, "idempotency key": &b.IdempotencyKey,
	} {
		if i := badString(col, n); i >= 0 {
			return bad("%s of row %d of %d is missing, torn or not UTF-8", name, i, n)
		}
	}
	return nil
}

// badString returns the first row whose string is not there or not UTF-8, which
// DuckDB relies on without looking; -1 when all are well.
func badString(col *query.Strings, rows int) int {
	if len(col.Ends) != rows {
		return len(col.Ends)
	}
	start, wellFormed := uint32(0), utf8.Valid(col.Data)
	for i, end := range col.Ends {
		if end < start || int(end) > len(col.Data) {
			return i
		}
		// Data is valid as a whole, so each string is, if none begins inside a
		// character.
		if start < end && (!utf8.RuneStart(col.Data[start]) || !wellFormed && !utf8.Valid(col.Data[start:end])) {
			return i
		}
		start = end
	}
	return -1
}
