package fold

import "bytes"

// spansFold keeps every contribution with the span of time in which it counts.
// It serves conditions whose filters depend on the instant they are judged at,
// which are rare. A value is one entry for each span: from and to, the number
// in millionths (8 bytes each), the scalar's key (16), and a byte that says
// which of the latter two there are.
type spansFold struct{}

const (
	spansEntry = 41
	spanNumber = 1
	spanScalar = 2
)

func (f spansFold) Add(v []byte, o *Occurrence, nowMs int64) []byte {
	// Not each time: what is over changes no answer.
	if n := len(v) / spansEntry; n&(n-1) == 0 {
		v = f.prune(v, nowMs)
	}
	for _, s := range o.Spans {
		if s.To > nowMs {
			v = AppendSpan(v, s, o)
		}
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

// AppendSpan appends an entry: what an occurrence adds while a span lasts.
func AppendSpan(v []byte, s Span, o *Occurrence) []byte {
	v = appendInt(appendInt(v, s.From), s.To)
	flags := byte(0)
	if o.Number {
		flags |= spanNumber
	}
	if o.Scalar {
		flags |= spanScalar
	}
	return append(append(appendInt(v, o.Micros), o.Key[:]...), flags)
}

func (spansFold) prune(v []byte, nowMs int64) []byte {
	out := v[:0]
	for i := 0; i < len(v); i += spansEntry {
		if getInt(v[i+8:]) > nowMs {
			out = append(out, v[i:i+spansEntry]...)
		}
	}
	return out
}

func (f spansFold) Union(v, other []byte, nowMs int64) []byte {
	v = append(f.prune(v, nowMs), f.prune(bytes.Clone(other), nowMs)...)
	if len(v) == 0 {
		return nil
	}
	return v
}

func (spansFold) Holds(q *Question, v []byte, t int64) bool {
	var sum totals
	n := uint64(0)
	keys := map[Key]struct{}{}
	for i := 0; i < len(v); i += spansEntry {
		if t < getInt(v[i:]) || t >= getInt(v[i+8:]) {
			continue
		}
		n++
		if v[i+40]&spanNumber != 0 {
			sum.add(getInt(v[i+16:]))
		}
		if q.distinct && v[i+40]&spanScalar != 0 {
			keys[Key(v[i+24:])] = struct{}{}
		}
	}
	switch {
	case q.distinct:
		return q.holdsFor(uint64(len(keys)))
	case q.Aggregate != nil:
		return q.judge(sum)
	}
	return q.holdsFor(n)
}

func (spansFold) Due(_ *Question, v []byte, t int64) int64 {
	next := never
	for i := 0; i < len(v); i += spansEntry {
		if from := getInt(v[i:]); from > t {
			next = min(next, from)
		} else if to := getInt(v[i+8:]); to > t {
			next = min(next, to)
		}
	}
	return next
}

func (spansFold) Dead(v []byte, t int64) bool {
	for i := 0; i < len(v); i += spansEntry {
		if getInt(v[i+8:]) > t {
			return false
		}
	}
	return true
}

func (spansFold) Valid(v []byte) bool {
	if len(v) == 0 || len(v)%spansEntry != 0 {
		return false
	}
	for i := 0; i < len(v); i += spansEntry {
		from, to := getInt(v[i:]), getInt(v[i+8:])
		if from >= to || !validTime(from) || !validTime(to) && to != never || v[i+40] > spanNumber|spanScalar {
			return false
		}
	}
	return true
}

// InSpan reports whether an instant is in one of the spans of a value.
func InSpan(v []byte, t int64) bool {
	for i := 0; i < len(v); i += spansEntry {
		if getInt(v[i:]) <= t && t < getInt(v[i+8:]) {
			return true
		}
	}
	return false
}
