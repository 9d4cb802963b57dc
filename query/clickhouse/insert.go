package clickhouse

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/musterhq/muster/query"
)

// columns inserts one block into a table, column by column. token names what is
// in it: an insert with the token of one before it adds nothing.
func (s *Store) columns(ctx context.Context, table, names, token string, columns ...any) error {
	ctx, w := s.watched(ctx, s.opts.AppendTimeout, clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": token}))
	defer w.stop()
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+table+" ("+names+")")
	if err != nil {
		return s.classify(ctx, err)
	}
	defer batch.Close()
	for i, values := range columns {
		if err := batch.Column(i).Append(values); err != nil {
			return fmt.Errorf("column %d of %s: %w", i, table, err)
		}
	}
	w.heard()
	return s.classify(ctx, batch.Send())
}

// texts are strings that point into the column's own bytes.
func texts(src *query.Strings, first, next int) []string {
	out := make([]string, next-first)
	for i := range out {
		s := src.At(first + i)
		out[i] = unsafe.String(unsafe.SliceData(s), len(s))
	}
	return out
}

// same is a column that has one value.
func same[T any](v T, rows int) []T {
	out := make([]T, rows)
	for i := range out {
		out[i] = v
	}
	return out
}

func (s *Store) insertEvents(ctx context.Context, a *addition, first, next int) error {
	b, rows := a.batch, next-first
	properties := texts(&b.Properties, first, next)
	readable := make([]string, rows)
	for i, p := range properties {
		if hasLongDigits(p) {
			readable[i] = readableJSON(p)
		}
	}
	token := fmt.Sprintf("%d-%d-%d-%d", b.Partition, a.writer, b.Offset[first], b.Offset[next-1])
	return s.columns(ctx, "events",
		`account, "partition", record_offset, record_index, writer, ordinal, time_ms, event_type, properties, readable, idempotency_key`, token,
		b.Account[first:next], same(uint32(b.Partition), rows), b.Offset[first:next], b.Index[first:next], same(a.writer, rows),
		b.Ordinal[first:next], b.TimeMs[first:next], texts(&b.EventType, first, next), properties, readable, texts(&b.IdempotencyKey, first, next))
}

func (s *Store) insertAliases(ctx context.Context, a *addition, aliases []query.Alias) error {
	n := len(aliases)
	account, offset, index := make([]uint64, n), make([]int64, n), make([]uint32, n)
	seq, ordinal, winner := make([]uint32, n), make([]uint32, n), make([]uint32, n)
	for i, x := range aliases {
		account[i], offset[i], index[i], ordinal[i], winner[i] = x.Account, x.Offset, x.Index, x.Ordinal, x.Winner
		// seq counts the aliases of a record. Records come whole, so it is the
		// same when they come again.
		if i > 0 && x.Offset == aliases[i-1].Offset {
			seq[i] = seq[i-1] + 1
		}
	}
	token := fmt.Sprintf("%d-%d-%d-%d", a.batch.Partition, a.writer, offset[0], offset[n-1])
	return s.columns(ctx, "aliases", `account, "partition", record_offset, record_index, seq, writer, ordinal, winner`, token,
		account, same(uint32(a.batch.Partition), n), offset, index, seq, same(a.writer, n), ordinal, winner)
}

func (s *Store) insertTransitions(ctx context.Context, a *addition, transitions []query.Transition) error {
	n := len(transitions)
	account, offset, seq, segment := make([]uint64, n), make([]int64, n), make([]uint32, n), make([]string, n)
	ordinal, entered, cause, atMs := make([]uint32, n), make([]bool, n), make([]uint8, n), make([]int64, n)
	for i := range transitions {
		x := &transitions[i]
		account[i], offset[i], seq[i], segment[i] = x.Account, x.Key.Offset, x.Key.Seq, x.Segment
		ordinal[i], entered[i], cause[i], atMs[i] = x.Ordinal, x.Entered, uint8(x.Cause), x.AtMs
	}
	// A record may have more than fit into a block.
	token := fmt.Sprintf("%d-%d-%d.%d-%d.%d", a.batch.Partition, a.writer, offset[0], seq[0], offset[n-1], seq[n-1])
	return s.columns(ctx, "transitions", `account, "partition", record_offset, seq, writer, segment, ordinal, entered, cause, at_ms`, token,
		account, same(uint32(a.batch.Partition), n), offset, seq, same(a.writer, n), segment, ordinal, entered, cause, atMs)
}
