package segment

import (
	"bytes"
	"slices"

	"github.com/musterhq/muster/internal/rawjson"
)

// positive takes the negation off an operator: a negative operator holds
// exactly where its positive does not.
func (op Op) positive() (positive Op, negated bool) {
	switch op {
	case OpNe:
		return OpEq, true
	case OpNotIn:
		return OpIn, true
	case OpNotContains:
		return OpContains, true
	case OpNotExists:
		return OpExists, true
	case OpNotInLastDays:
		return OpInLastDays, true
	}
	return op, false
}

// Match reports whether the predicate holds at atMs for the value behind its
// path in obj, a JSON object in canonical text (empty means no object).
func (p *Predicate) Match(obj []byte, atMs int64) bool {
	raw, _ := rawjson.Lookup(obj, p.Path)
	return p.MatchValue(raw, atMs)
}

// MatchValue reports whether the predicate holds at atMs for a JSON value in
// canonical text; an empty one is missing, and so is null.
func (p *Predicate) MatchValue(raw []byte, atMs int64) bool {
	op, negated := p.Op.positive()
	return p.matchAny(op, raw, atMs) != negated
}

func (p *Predicate) matchAny(op Op, raw []byte, atMs int64) bool {
	switch rawjson.KindOf(raw) {
	case rawjson.Invalid, rawjson.Null:
		return false
	case rawjson.Object:
		return op == OpExists
	case rawjson.Array:
		if op == OpExists {
			return true
		}
		found := false
		rawjson.EachElement(raw, func(element []byte) bool {
			found = p.matchScalar(op, element, atMs)
			return !found
		})
		return found
	}
	return p.matchScalar(op, raw, atMs)
}

// matchScalar is false for everything that is no string, number or boolean.
func (p *Predicate) matchScalar(op Op, raw []byte, atMs int64) bool {
	if op == OpExists {
		return true
	}
	switch kind := rawjson.KindOf(raw); kind {
	case rawjson.String:
		var buf [128]byte
		text, ok := rawjson.Text(raw, buf[:])
		return ok && p.matchText(op, text, atMs)
	case rawjson.Number:
		f, ok := rawjson.Float(raw)
		return ok && p.matchNumber(op, f)
	case rawjson.True, rawjson.False:
		return p.matchBool(op, kind == rawjson.True)
	}
	return false
}

func (p *Predicate) matchText(op Op, text []byte, atMs int64) bool {
	switch op {
	case OpExists:
		return true
	case OpEq, OpIn:
		for i := range p.Values {
			if p.Values[i].Kind == ValueString && p.Values[i].Str == string(text) {
				return true
			}
		}
		return false
	case OpBefore, OpAfter, OpInLastDays:
		ms, ok := ParseTime(text)
		return ok && p.matchTime(op, ms, atMs)
	}
	if p.Values[0].Kind != ValueString {
		return false
	}
	constant := p.Values[0].Str
	switch op {
	case OpGt:
		return string(text) > constant
	case OpGe:
		return string(text) >= constant
	case OpLt:
		return string(text) < constant
	case OpLe:
		return string(text) <= constant
	case OpBetween:
		return string(text) >= constant && string(text) <= p.Values[1].Str
	case OpContains:
		return bytes.Contains(text, []byte(constant))
	case OpStartsWith:
		return len(text) >= len(constant) && string(text[:len(constant)]) == constant
	case OpEndsWith:
		return len(text) >= len(constant) && string(text[len(text)-len(constant):]) == constant
	}
	return false
}

func (p *Predicate) matchTime(op Op, ms, atMs int64) bool {
	switch op {
	case OpBefore:
		return ms < p.TimeMs
	case OpAfter:
		return ms > p.TimeMs
	}
	return ms > atMs-p.WindowMs && ms <= atMs
}

// matchInstant judges a field that is a time.
func (p *Predicate) matchInstant(op Op, ms, atMs int64) bool {
	switch op {
	case OpBefore, OpAfter, OpInLastDays:
		return p.matchTime(op, ms, atMs)
	}
	// Constants have the fixed-width form too, whose order is time's.
	var buf [32]byte
	return p.matchText(op, AppendTime(buf[:0], ms), atMs)
}

func (p *Predicate) matchBool(op Op, b bool) bool {
	return (op == OpEq || op == OpIn) && slices.Contains(p.Values, Value{Kind: ValueBool, Bool: b})
}

func (p *Predicate) matchNumber(op Op, f float64) bool {
	switch op {
	case OpEq, OpIn:
		for i := range p.Values {
			if p.Values[i].Kind == ValueNumber && p.Values[i].Num == f {
				return true
			}
		}
		return false
	case OpGt, OpGe, OpLt, OpLe, OpBetween:
	default:
		return false
	}
	if p.Values[0].Kind != ValueNumber {
		return false
	}
	constant := p.Values[0].Num
	switch op {
	case OpGt:
		return f > constant
	case OpGe:
		return f >= constant
	case OpLt:
		return f < constant
	case OpLe:
		return f <= constant
	}
	return f >= constant && f <= p.Values[1].Num
}

// Timed reports whether the predicate depends on the instant it is judged at.
func (p *Predicate) Timed() bool { return p.Op == OpInLastDays || p.Op == OpNotInLastDays }

// EachTime calls fn for the times that a timed predicate looks at, in Unix
// milliseconds, of a JSON value in canonical text: the predicate's positive
// holds at t when t − WindowMs < ms ≤ t for one of them.
func (p *Predicate) EachTime(raw []byte, fn func(ms int64)) {
	one := func(element []byte) bool {
		if rawjson.KindOf(element) == rawjson.String {
			var buf [128]byte
			if text, ok := rawjson.Text(element, buf[:]); ok {
				if ms, ok := ParseTime(text); ok {
					fn(ms)
				}
			}
		}
		return true
	}
	if rawjson.KindOf(raw) == rawjson.Array {
		rawjson.EachElement(raw, one)
		return
	}
	one(raw)
}
