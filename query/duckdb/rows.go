package duckdb

import (
	"runtime"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
)

// rows are events column by column, of several partitions. Only the columns of
// the embedded batch are used.
type rows struct {
	query.Batch
	partition []uint32
}

func (r *rows) reset() {
	r.Batch.Reset()
	r.partition = r.partition[:0]
}

// add copies rows of a batch behind those that are there.
func (r *rows) add(b *query.Batch, from, to int) {
	for range to - from {
		r.partition = append(r.partition, uint32(b.Partition))
	}
	r.Account = append(r.Account, b.Account[from:to]...)
	r.Offset = append(r.Offset, b.Offset[from:to]...)
	r.Index = append(r.Index, b.Index[from:to]...)
	r.Ordinal = append(r.Ordinal, b.Ordinal[from:to]...)
	r.TimeMs = append(r.TimeMs, b.TimeMs[from:to]...)
	for i := from; i < to; i++ {
		r.EventType.Append(b.EventType.At(i))
		r.Properties.Append(b.Properties.At(i))
		r.IdempotencyKey.Append(b.IdempotencyKey.At(i))
	}
}

// selectRows reads what addChunk takes.
const selectRows = `SELECT "partition", account, record_offset, record_index, ordinal, time_ms,
	event_type, properties, idempotency_key FROM `

// addChunk copies a result of selectRows behind the rows that are there.
func (r *rows) addChunk(c chunk) {
	r.partition = append(r.partition, column[uint32](c, 0)...)
	r.Account = append(r.Account, column[uint64](c, 1)...)
	r.Offset = append(r.Offset, column[int64](c, 2)...)
	r.Index = append(r.Index, column[uint32](c, 3)...)
	r.Ordinal = append(r.Ordinal, column[uint32](c, 4)...)
	r.TimeMs = append(r.TimeMs, column[int64](c, 5)...)
	for i, col := range []*query.Strings{&r.EventType, &r.Properties, &r.IdempotencyKey} {
		refs := c.refs(6 + i)
		for j := range refs {
			col.Append(refs[j].bytes())
		}
	}
}

// textBytes is the memory of the strings.
func textBytes(b *query.Batch) int {
	return len(b.EventType.Data) + len(b.Properties.Data) + len(b.IdempotencyKey.Data)
}

// pinText keeps the strings where they are while DuckDB holds references.
func pinText(pin *runtime.Pinner, b *query.Batch) {
	for _, col := range []*query.Strings{&b.EventType, &b.Properties, &b.IdempotencyKey} {
		if len(col.Data) > 0 {
			pin.Pin(&col.Data[0])
		}
	}
}

// newEventsChunk makes a chunk with the columns of the events tables, in their
// order.
func newEventsChunk() bindings.DataChunk {
	return newChunk(
		bindings.TypeUBigInt, bindings.TypeUInteger, bindings.TypeBigInt,
		bindings.TypeUInteger, bindings.TypeUInteger, bindings.TypeBigInt,
		bindings.TypeVarchar, bindings.TypeVarchar, bindings.TypeVarchar)
}

// fillEvents makes the chunk hold rows i to i+n of the batch. It refers to the
// batch's strings, which must be pinned.
func fillEvents(dc bindings.DataChunk, b *query.Batch, partition []uint32, i, n int) {
	bindings.DataChunkReset(dc)
	fill(dc, 0, b.Account[i:i+n])
	fill(dc, 1, partition)
	fill(dc, 2, b.Offset[i:i+n])
	fill(dc, 3, b.Index[i:i+n])
	fill(dc, 4, b.Ordinal[i:i+n])
	fill(dc, 5, b.TimeMs[i:i+n])
	fillText(dc, 6, &b.EventType, i, n)
	fillText(dc, 7, &b.Properties, i, n)
	fillText(dc, 8, &b.IdempotencyKey, i, n)
	bindings.DataChunkSetSize(dc, bindings.IdxT(n))
}
