package query

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrGap reports that a batch begins above the position: rows are missing between.
var ErrGap = errors.New("history batch begins above the position")

// ErrBadBatch reports that a batch contradicts itself.
var ErrBadBatch = errors.New("history batch is malformed")

// Check refuses batches that would store rows that are wrong or unreadable; the
// error is an [ErrBadBatch].
func (b *Batch) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrBadBatch, fmt.Sprintf(format, args...))
	}
	n := b.Rows()
	switch {
	case b.Partition < 0 || int64(b.Partition) > math.MaxUint32:
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
	if i, problem := badTransition(b); problem != "" {
		return bad("transition %d %s", i, problem)
	}
	for _, c := range []struct {
		name string
		*Strings
	}{{"event type", &b.EventType}, {"properties", &b.Properties}, {"idempotency key", &b.IdempotencyKey}} {
		if i := badString(c.Strings, n); i >= 0 {
			return bad("%s of row %d of %d is missing, torn or not UTF-8", c.name, i, n)
		}
	}
	return nil
}

// badTransition returns the first transition that is out of place or unreadable,
// and what is wrong with it.
func badTransition(b *Batch) (i int, problem string) {
	last, name := TransitionKey{Offset: b.From}, ""
	for i := range b.Transitions {
		t := &b.Transitions[i]
		switch k := t.Key; {
		case k.Offset < last.Offset || k.Offset >= b.To:
			return i, fmt.Sprintf("has offset %d, expected %d to %d", k.Offset, last.Offset, b.To-1)
		case k.Seq == 0:
			return i, "has number 0, expected 1 or more"
		case k.Offset == last.Offset && k.Seq <= last.Seq:
			return i, fmt.Sprintf("has number %d after %d of the same record", k.Seq, last.Seq)
		case t.Segment == "":
			return i, "names no segment"
		case t.Segment != name && !utf8.ValidString(t.Segment):
			return i, fmt.Sprintf("names segment %q, which is not UTF-8", t.Segment)
		}
		last, name = t.Key, t.Segment
	}
	return 0, ""
}

// badString returns the first row whose string is not there or not UTF-8, which
// stores rely on without looking; -1 when all are well.
func badString(col *Strings, rows int) int {
	if len(col.Ends) != rows {
		return min(len(col.Ends), rows)
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
