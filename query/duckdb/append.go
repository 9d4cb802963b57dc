package duckdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sort"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
)

const (
	// chunkRows is the number of rows of a full data chunk.
	chunkRows = 2048
	// fullGroup is the number of rows of a full row group: what DuckDB
	// compresses, prunes and writes as a unit.
	fullGroup = 122_880
	// maxTailBytes bounds the strings of the rows that wait for a full row
	// group, and of the batch that joins them.
	maxTailBytes = 64 << 20
)

// stored mirrors what the writer needs to know of the tables.
type stored struct {
	positions map[int]int64
	// tail is the content of table events_recent, in order.
	tail rows
}

// Position implements [query.History]. It waits for appends, copies and erasures no longer
// than ctx allows: a copy of a large file takes minutes.
func (s *Store) Position(ctx context.Context, partition int) (int64, error) {
	if err := s.writer.LockFor(ctx); err != nil {
		return 0, fmt.Errorf("history: position: %w", err)
	}
	defer s.writer.Unlock()
	if err := s.mirror(ctx); err != nil {
		return 0, fmt.Errorf("history: position: %w", err)
	}
	return s.writer.stored.positions[partition], nil
}

// mirror reads the tables again if what is in memory may differ, and opens the file
// again if it must be.
func (s *Store) mirror(ctx context.Context) error {
	err := s.readMirror(ctx)
	if !errors.Is(err, errInvalidated) {
		return err
	}
	if err := s.revive(); err != nil {
		return err
	}
	return s.readMirror(ctx)
}

func (s *Store) readMirror(ctx context.Context) error {
	w := &s.writer
	if w.closed {
		return ErrClosed
	}
	if w.stored != nil {
		return nil
	}
	m := &stored{positions: make(map[int]int64)}
	err := w.query(ctx, `SELECT "partition", next_offset FROM progress`, nil, func(ch chunk) error {
		partitions, next := column[uint32](ch, 0), column[int64](ch, 1)
		for i, p := range partitions {
			m.positions[int(p)] = next[i]
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = w.query(ctx, selectRows+"events_recent ORDER BY rowid", nil, func(ch chunk) error {
		m.tail.addChunk(ch)
		return nil
	})
	if err != nil {
		return err
	}
	w.stored = m
	s.columns.reread(m.positions)
	return nil
}

// Append implements [query.History]. After an error the batch is not stored,
// unless the commit itself failed, when it may be: [Store.Position] says which.
func (s *Store) Append(ctx context.Context, b *query.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.writer.Lock()
	defer s.writer.Unlock()
	w := &s.writer
	if err := s.mirror(ctx); err != nil {
		return fmt.Errorf("history: append: %w", err)
	}
	position, known := w.stored.positions[b.Partition]
	if b.From > position {
		return fmt.Errorf("%w: partition %d stands at %d, the batch begins at %d", query.ErrGap, b.Partition, position, b.From)
	}
	if b.To <= position {
		return nil
	}
	add := addition{batch: b, known: known,
		first: sort.Search(b.Rows(), func(i int) bool { return b.Offset[i] >= position })}
	add.aliases = b.Aliases[sort.Search(len(b.Aliases), func(i int) bool { return b.Aliases[i].Offset >= position }):]
	add.transitions = b.Transitions[sort.Search(len(b.Transitions), func(i int) bool { return b.Transitions[i].Key.Offset >= position }):]
	add.plan(&w.stored.tail, s.groupRows, s.tailBytes)

	if err := s.store(ctx, &add); err != nil {
		w.stored = nil // whatever has happened, the tables know
		return fmt.Errorf("history: append to partition %d, records %d to %d: %w", b.Partition, b.From, b.To, err)
	}
	w.stored.positions[b.Partition] = b.To
	if add.sealed > 0 || add.all {
		w.stored.tail.reset()
	}
	s.columns.storedRows(b.Partition, b.Offset[add.first:], add.aliases)
	w.stored.tail.add(b, add.first+add.sealed, b.Rows())
	return nil
}

// addition is what one transaction adds. Rows go to events_sealed in whole row
// groups, the waiting ones of events_recent first; what is left over waits in
// events_recent.
type addition struct {
	batch  *query.Batch
	first  int  // row of the batch that is not stored yet
	sealed int  // rows from first on that go to events_sealed, after the tail's
	all    bool // the tail goes to events_sealed, and all rows
	known  bool // the partition has a row in progress

	aliases     []query.Alias
	transitions []query.Transition
}

func (a *addition) plan(tail *rows, groupRows, tailBytes int) {
	waiting, fresh := tail.Rows(), a.batch.Rows()-a.first
	if textBytes(&tail.Batch)+textBytes(a.batch) > tailBytes && waiting+fresh < groupRows {
		a.all, a.sealed = true, fresh
		return
	}
	if whole := (waiting + fresh) / groupRows * groupRows; whole > 0 {
		a.sealed = whole - waiting
	}
}

// store writes one transaction.
func (s *Store) store(ctx context.Context, a *addition) (err error) {
	w := &s.writer
	if err := w.exec("BEGIN"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// Fails when the commit has failed and ended the transaction.
			_ = w.exec("ROLLBACK")
		}
	}()
	b, tail := a.batch, &w.stored.tail
	var pin runtime.Pinner
	defer pin.Unpin()
	pinText(&pin, b)
	pinText(&pin, &tail.Batch)
	if a.sealed > 0 || a.all {
		err := w.appendTo("events_sealed", func(app bindings.Appender) error {
			if err := s.appendRows(ctx, app, &tail.Batch, tail.partition, 0, tail.Rows()); err != nil {
				return err
			}
			return s.appendRows(ctx, app, b, nil, a.first, a.first+a.sealed)
		})
		if err != nil {
			return err
		}
		if err := w.exec("DELETE FROM events_recent"); err != nil {
			return err
		}
	}
	if rest := a.first + a.sealed; rest < b.Rows() {
		err := w.appendTo("events_recent", func(app bindings.Appender) error {
			return s.appendRows(ctx, app, b, nil, rest, b.Rows())
		})
		if err != nil {
			return err
		}
	}
	if len(a.aliases) > 0 {
		if err := w.appendAliases(uint32(b.Partition), a.aliases); err != nil {
			return err
		}
	}
	if len(a.transitions) > 0 {
		if err := w.appendTransitions(ctx, uint32(b.Partition), a.transitions); err != nil {
			return err
		}
	}
	progress := `INSERT INTO progress (next_offset, "partition") VALUES (?, ?)`
	if a.known {
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

// appendRows appends rows from to to, whose strings are pinned. partition has
// one entry per row of the batch; nil means all are of the batch's partition.
func (s *Store) appendRows(ctx context.Context, app bindings.Appender, b *query.Batch, partition []uint32, from, to int) error {
	var same []uint32
	if partition == nil {
		same = make([]uint32, min(chunkRows, to-from))
		for i := range same {
			same[i] = uint32(b.Partition)
		}
	}
	for i := from; i < to; i += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(chunkRows, to-i)
		p := same
		if partition != nil {
			p = partition[i:]
		}
		fillEvents(s.writer.chunk, b, p[:n], i, n)
		if bindings.AppendDataChunk(app, s.writer.chunk) != bindings.StateSuccess {
			return fmt.Errorf("append: %w", failure(bindings.AppenderError(app)))
		}
	}
	return nil
}

func (c *conn) appendAliases(partition uint32, aliases []query.Alias) error {
	dc := newChunk(
		bindings.TypeUBigInt, bindings.TypeUInteger, bindings.TypeBigInt,
		bindings.TypeUInteger, bindings.TypeUInteger, bindings.TypeUInteger, bindings.TypeUInteger)
	defer bindings.DestroyDataChunk(&dc)
	return c.appendTo("aliases", func(app bindings.Appender) error {
		// seq counts the aliases of a record. Records come whole, so it is the
		// same when they come again.
		seq, record := uint32(0), int64(-1)
		for len(aliases) > 0 {
			n := min(chunkRows, len(aliases))
			bindings.DataChunkReset(dc)
			for i, a := range aliases[:n] {
				if a.Offset != record {
					seq, record = 0, a.Offset
				}
				put(dc, 0, i, a.Account)
				put(dc, 1, i, partition)
				put(dc, 2, i, a.Offset)
				put(dc, 3, i, a.Index)
				put(dc, 4, i, seq)
				put(dc, 5, i, a.Ordinal)
				put(dc, 6, i, a.Winner)
				seq++
			}
			bindings.DataChunkSetSize(dc, bindings.IdxT(n))
			if bindings.AppendDataChunk(app, dc) != bindings.StateSuccess {
				return fmt.Errorf("append: %w", failure(bindings.AppenderError(app)))
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
		err := fmt.Errorf("appender of %s: %w", table, failure(bindings.AppenderError(app)))
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
		return fmt.Errorf("append to %s: %w", table, failure(bindings.AppenderError(app)))
	}
	return nil
}
