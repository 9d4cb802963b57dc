package engine

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

func (f spansFold) add(v []byte, o *occurrence, nowMs int64) []byte {
	// Not each time: what is over changes no answer.
	if n := len(v) / spansEntry; n&(n-1) == 0 {
		v = f.prune(v, nowMs)
	}
	for _, s := range o.spans {
		if s.to > nowMs {
			v = appendSpan(v, s, o)
		}
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

func appendSpan(v []byte, s span, o *occurrence) []byte {
	v = appendInt(appendInt(v, s.from), s.to)
	flags := byte(0)
	if o.number {
		flags |= spanNumber
	}
	if o.scalar {
		flags |= spanScalar
	}
	return append(append(appendInt(v, o.micros), o.key[:]...), flags)
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

func (f spansFold) union(v, other []byte, nowMs int64) []byte {
	v = append(f.prune(v, nowMs), f.prune(bytes.Clone(other), nowMs)...)
	if len(v) == 0 {
		return nil
	}
	return v
}

func (spansFold) holds(q *question, v []byte, t int64) bool {
	var sum totals
	n := uint64(0)
	keys := map[valueKey]struct{}{}
	for i := 0; i < len(v); i += spansEntry {
		if t < getInt(v[i:]) || t >= getInt(v[i+8:]) {
			continue
		}
		n++
		if v[i+40]&spanNumber != 0 {
			sum.add(getInt(v[i+16:]))
		}
		if q.distinct && v[i+40]&spanScalar != 0 {
			keys[valueKey(v[i+24:])] = struct{}{}
		}
	}
	switch {
	case q.distinct:
		return q.holdsFor(uint64(len(keys)))
	case q.aggregate != nil:
		return q.judge(sum)
	}
	return q.holdsFor(n)
}

func (spansFold) due(_ *question, v []byte, t int64) int64 {
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

func (spansFold) dead(v []byte, t int64) bool {
	for i := 0; i < len(v); i += spansEntry {
		if getInt(v[i+8:]) > t {
			return false
		}
	}
	return true
}

func (spansFold) valid(v []byte) bool {
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

// inSpan reports whether an instant is in one of the spans of a value.
func inSpan(v []byte, t int64) bool {
	for i := 0; i < len(v); i += spansEntry {
		if getInt(v[i:]) <= t && t < getInt(v[i+8:]) {
			return true
		}
	}
	return false
}
