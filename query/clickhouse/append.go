package clickhouse

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"sync"
	"time"

	"github.com/musterhq/muster/query"
)

// maxBlockRows is about how many rows an insert has at most; it makes one part.
const maxBlockRows = 262_144

// partition is the store's notes of a partition.
type partition struct {
	// appending is held by the append under way; before mu.
	appending sync.Mutex
	// writer and to are the number and the end of the last append; writer is 0
	// when it must not be used on. Guarded by appending.
	writer uint64
	to     int64

	mu struct {
		sync.Mutex
		cover   kept
		coverAt time.Time // before it was read
	}
}

func (s *Store) partition(n int) *partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mu.partitions[n]
	if p == nil {
		p = new(partition)
		s.mu.partitions[n] = p
	}
	return p
}

func (p *partition) remember(c kept, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.After(p.mu.coverAt) {
		p.mu.cover, p.mu.coverAt = c, at
	}
}

// Append implements [query.History]. After an error the batch may be stored or
// not: [Store.Position] says which. Either way it may be appended again.
func (s *Store) Append(ctx context.Context, b *query.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	done, err := s.writers.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if s.closed.Load() {
		return fmt.Errorf("history: append: %w", ErrClosed)
	}
	p := s.partition(b.Partition)
	p.appending.Lock()
	defer p.appending.Unlock()
	ctx, end := context.WithTimeout(ctx, s.opts.AppendTimeout)
	defer end()
	for tries := s.conn.Stats().MaxOpenConns; ; tries-- {
		err := s.append(ctx, p, b)
		switch {
		case err == nil:
			return nil
		case tries == 0 || ctx.Err() != nil || !lost(err) && !overtaken(err):
			return fmt.Errorf("history: append to partition %d, records %d to %d: %w", b.Partition, b.From, b.To, err)
		}
		// A pooled connection was lost, or another node has stored these records
		// meanwhile. What was stored is not committed, or is below the position that
		// the next try begins at.
	}
}

func (s *Store) append(ctx context.Context, p *partition, b *query.Batch) error {
	at := time.Now()
	c, nowMs, err := s.readCover(ctx, b.Partition)
	if err != nil {
		return err
	}
	position := c.end()
	switch {
	case b.From > position:
		return fmt.Errorf("%w: partition %d stands at %d, the batch begins at %d", query.ErrGap, b.Partition, position, b.From)
	case b.To <= position:
		p.remember(c, at)
		return nil
	}
	a := addition{batch: b, writer: p.writer, from: position, tables: c.tables}
	// A number is used on when all it has inserted is committed and the cover's
	// last span, as its own writer left it.
	if n := len(c.cover); a.writer == 0 || n == 0 || c.cover[n-1].writer != a.writer || p.to != position {
		if a.writer, err = s.newWriter(); err != nil {
			return err
		}
	}
	p.writer = 0
	if err := s.insert(ctx, &a); err != nil {
		return err
	}
	if err := s.commit(ctx, &a, nowMs+commitFence.Milliseconds()); err != nil {
		return err
	}
	p.writer, p.to = a.writer, b.To
	if n := len(c.cover); n > 0 && c.cover[n-1].writer == a.writer {
		c.cover[n-1].to = b.To
	} else {
		c.cover = append(c.cover, span{a.writer, position, b.To})
	}
	p.remember(c, at)
	return nil
}

// addition is what one append adds.
type addition struct {
	batch  *query.Batch
	writer uint64
	from   int64 // records below are stored already
	tables tables
}

// newWriter draws a number that no other writer has.
func (s *Store) newWriter() (uint64, error) {
	var b [8]byte
	for {
		if _, err := io.ReadFull(s.opts.Rand, b[:]); err != nil {
			return 0, fmt.Errorf("draw a writer's number: %w", err)
		}
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n, nil
		}
	}
}

// insert stores the rows from a.from on.
func (s *Store) insert(ctx context.Context, a *addition) error {
	b := a.batch
	first := sort.Search(b.Rows(), func(i int) bool { return b.Offset[i] >= a.from })
	for first < b.Rows() {
		// Whole records, so that a token names records.
		next := min(first+s.blockRows, b.Rows())
		for next < b.Rows() && b.Offset[next] == b.Offset[next-1] {
			next++
		}
		if err := s.insertEvents(ctx, a, first, next); err != nil {
			return err
		}
		first = next
	}
	aliases := b.Aliases[sort.Search(len(b.Aliases), func(i int) bool { return b.Aliases[i].Offset >= a.from }):]
	if len(aliases) > 0 {
		if err := s.insertAliases(ctx, a, aliases); err != nil {
			return err
		}
	}
	transitions := b.Transitions[sort.Search(len(b.Transitions), func(i int) bool { return b.Transitions[i].Key.Offset >= a.from }):]
	for len(transitions) > 0 {
		n := min(s.blockRows, len(transitions))
		if err := s.insertTransitions(ctx, a, transitions[:n]); err != nil {
			return err
		}
		transitions = transitions[n:]
	}
	return nil
}

// commit reports that all rows are there. The server refuses it once its clock is
// past the fence, so that what is older than that can be relied on, and when
// another writer has committed more meanwhile: a person in what that stored may
// have been erased since. It also refuses it when a table was made again meanwhile, which
// may not have all of the rows.
func (s *Store) commit(ctx context.Context, a *addition, fenceMs int64) error {
	return s.exec(ctx, s.opts.AppendTimeout, fmt.Sprintf(
		`INSERT INTO commits ("partition", writer, first_offset, next_offset, generation) SELECT %[1]d, %[2]d, %[3]d, %[4]d, %[7]s
		WHERE throwIf(toUnixTimestamp64Milli(now64(3)) > %[5]d, 'the append took too long') = 0
		AND throwIf((SELECT max(next_offset) FROM commits WHERE "partition" = %[1]d AND generation = %[7]s) > %[3]d, '%[6]s') = 0
		AND %[8]s`,
		a.batch.Partition, a.writer, a.from, a.batch.To, fenceMs, textOvertaken, quote(a.tables.generation), a.tables.unchanged()))
}
