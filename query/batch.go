package query

import "github.com/musterhq/muster/segment"

// Batch is the resolved rows of consecutive records of one partition, column
// by column. All columns have the same length. A batch may have no rows: it
// still moves the position.
type Batch struct {
	Partition int
	// From and To are the record offsets the batch covers: From ≤ offset < To.
	From, To int64

	Account        []uint64
	Offset         []int64
	Index          []uint32
	Ordinal        []uint32
	TimeMs         []int64
	EventType      Strings
	Properties     Strings // canonical JSON object, "" for none
	IdempotencyKey Strings // "" for none

	// Aliases are the merges among these records, in order.
	Aliases []Alias
	// Transitions are the entries and exits among these records, in order.
	Transitions []Transition
}

// Alias reports that from record Offset on, events of profile Ordinal count as
// those of Winner. A merge lists one for the merged profile and one for every ordinal
// that had been merged into it before, so one look-up is enough: the
// newest alias of an ordinal below the cut.
type Alias struct {
	Account uint64
	Offset  int64
	Index   uint32
	Ordinal uint32
	Winner  uint32
}

// Transition reports that a profile entered or left a segment.
type Transition struct {
	Account uint64
	Key     TransitionKey
	Segment string // the segment's id
	Ordinal uint32
	Entered bool
	Cause   segment.Cause
	// AtMs is when membership changed, in Unix milliseconds: the instant a
	// window ran out, log time for all other causes.
	AtMs int64
}

// TransitionKey is the position of a transition: the record that made it, and
// its number among those the record made, from 1. The zero value is before all.
type TransitionKey struct {
	Offset int64
	Seq    uint32
}

// Rows is the number of events.
func (b *Batch) Rows() int { return len(b.Offset) }

// Bytes is roughly what the batch takes in memory.
func (b *Batch) Bytes() int {
	return b.Rows()*(8+8+4+4+8+3*4) + len(b.EventType.Data) + len(b.Properties.Data) +
		len(b.IdempotencyKey.Data) + len(b.Aliases)*32 + len(b.Transitions)*64
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.From, b.To = 0, 0
	b.Account, b.Offset, b.Index = b.Account[:0], b.Offset[:0], b.Index[:0]
	b.Ordinal, b.TimeMs, b.Aliases, b.Transitions = b.Ordinal[:0], b.TimeMs[:0], b.Aliases[:0], b.Transitions[:0]
	b.EventType.Reset()
	b.Properties.Reset()
	b.IdempotencyKey.Reset()
}

// Next returns an empty batch with room for as much as b has: what grows while it is filled is
// copied each time, and a row that makes tens of megabytes grow waits for that.
func (b *Batch) Next() *Batch {
	return &Batch{
		Account: make([]uint64, 0, len(b.Account)), Offset: make([]int64, 0, len(b.Offset)), Index: make([]uint32, 0, len(b.Index)),
		Ordinal: make([]uint32, 0, len(b.Ordinal)), TimeMs: make([]int64, 0, len(b.TimeMs)),
		EventType: b.EventType.next(), Properties: b.Properties.next(), IdempotencyKey: b.IdempotencyKey.next(),
		Aliases: make([]Alias, 0, len(b.Aliases)), Transitions: make([]Transition, 0, len(b.Transitions)),
	}
}

// Strings is a column of strings without a pointer per row.
type Strings struct {
	// Ends[i] is where string i ends in Data; it starts where i-1 ends.
	Ends []uint32
	Data []byte
}

// next is [Batch.Next]. The bytes of as many strings differ a little.
func (s *Strings) next() Strings {
	return Strings{make([]uint32, 0, len(s.Ends)), make([]byte, 0, len(s.Data)+len(s.Data)/16)}
}

// Append adds one string.
func (s *Strings) Append(b []byte) {
	s.Data = append(s.Data, b...)
	s.Ends = append(s.Ends, uint32(len(s.Data)))
}

// At returns string i; it points into the column.
func (s *Strings) At(i int) []byte {
	var start uint32
	if i > 0 {
		start = s.Ends[i-1]
	}
	return s.Data[start:s.Ends[i]]
}

// Reset empties the column and keeps its memory.
func (s *Strings) Reset() { s.Ends, s.Data = s.Ends[:0], s.Data[:0] }
