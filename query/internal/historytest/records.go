package historytest

import (
	"fmt"
	"strconv"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// RecordRows is how many rows record o has; everything about a record follows
// from its offset, so that a reader knows what has to be there.
func RecordRows(o int64) int { return int(o*o%23) % 7 }

// RecordText is the properties of row i of record o.
func RecordText(o int64, i int) string {
	return fmt.Sprintf(`{"offset":%d,"index":%d,"filler":"%0*d"}`, o, i, int(o%40), o)
}

// HasAlias reports whether record o merges profiles.
func HasAlias(o int64) bool { return o%11 == 3 }

// RecordTransitions is how many transitions record o makes.
func RecordTransitions(o int64) int { return int(o*o%19) % 4 }

// RecordTransition is the one numbered seq. Names are of sizes that stores
// keep differently.
func RecordTransition(partition int, o int64, seq int) query.Transition {
	return query.Transition{
		Account: uint64(7 + partition), Key: query.TransitionKey{Offset: o, Seq: uint32(seq)},
		Segment: fmt.Sprintf("s%0*d", int(o%30), o%4), Ordinal: uint32(o % 1000), Entered: (o+int64(seq))%2 == 0,
		Cause: segment.Cause(1 + o%5), AtMs: 1_700_000_000_000 + o - int64(seq),
	}
}

// FillRecords makes b the batch of records from to to.
func FillRecords(b *query.Batch, partition int, from, to int64) {
	b.Reset()
	b.Partition, b.From, b.To = partition, from, to
	for o := from; o < to; o++ {
		for i := range RecordRows(o) {
			b.Account = append(b.Account, uint64(7+partition))
			b.Offset = append(b.Offset, o)
			b.Index = append(b.Index, uint32(i))
			b.Ordinal = append(b.Ordinal, uint32(o%1000))
			b.TimeMs = append(b.TimeMs, 1_700_000_000_000+o)
			b.EventType.Append([]byte("tested"))
			b.Properties.Append([]byte(RecordText(o, i)))
			b.IdempotencyKey.Append(strconv.AppendInt(nil, o, 10))
		}
		if HasAlias(o) {
			b.Aliases = append(b.Aliases, query.Alias{Account: uint64(7 + partition), Offset: o, Ordinal: uint32(o % 1000), Winner: uint32((o + 1) % 1000)})
		}
		for i := range RecordTransitions(o) {
			b.Transitions = append(b.Transitions, RecordTransition(partition, o, i+1))
		}
	}
}
