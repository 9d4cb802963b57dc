// Package fold keeps, of one profile's events, the least that decides conditions on them: how
// many there were, when the newest were, a sum, the least number, different values. It knows
// neither the segments nor how values are stored.
package fold

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/musterhq/muster/segment"
)

// never is an instant that does not come.
const never = int64(math.MaxInt64)

// Occurrence is what one event adds to a state.
type Occurrence struct {
	AtMs int64 // when it happened, in Unix milliseconds
	// Micros is the number behind the state's property, in millionths, when
	// Number is set.
	Micros int64
	Number bool
	// Key names the scalar behind the property, when Scalar is set.
	Key    Key
	Scalar bool
	// Spans are when the event counts, for filters that depend on the instant.
	Spans []Span
}

// Span is From ≤ t < To, in Unix milliseconds.
type Span struct{ From, To int64 }

// Fold keeps, of one profile's matching events, the least that decides its
// questions at every instant from now on. Its value is a short byte string; an
// empty one stands for no events. Values handed to Add and Union may be changed
// in place and returned, as with append.
type Fold interface {
	// Add takes in an event. Nothing before nowMs will be asked any more.
	Add(v []byte, o *Occurrence, nowMs int64) []byte
	// Union is the value of both profiles' events together.
	Union(v, other []byte, nowMs int64) []byte
	// Holds answers a question at t; v is not nil.
	Holds(q *Question, v []byte, t int64) bool
	// Due is an instant after t at which the answer may change; it does not
	// change before. v is not nil.
	Due(q *Question, v []byte, t int64) int64
	// Dead reports whether v decides nothing any more from t on.
	Dead(v []byte, t int64) bool
	// Valid checks a value read from outside.
	Valid(v []byte) bool
}

// Spec says what a state keeps; two leaves that can do with one spec share a
// state.
type Spec struct {
	// Kind is the fold.
	Kind Kind `json:"kind"`
	// Property is the path aggregated, joined by dots; "" for counts.
	Property string `json:"property,omitempty"`
	// WindowMs is how far back the state reaches; 0 is all time.
	WindowMs int64 `json:"window_ms,omitempty"`
	// Keep is how many times or values are enough.
	Keep int64 `json:"keep,omitempty"`
}

// Kind names a fold. Kinds are stored.
type Kind string

const (
	KindCount    Kind = "count"    // how many, all time
	KindTimes    Kind = "times"    // the newest times
	KindTotals   Kind = "totals"   // sum, number, least and greatest, all time
	KindSums     Kind = "sums"     // contributions in the window
	KindMin      Kind = "min"      // those that can still be the least
	KindMax      Kind = "max"      // those that can still be the greatest
	KindDistinct Kind = "distinct" // different values with their newest time
	KindSpans    Kind = "spans"    // contributions with the spans they count in
)

// New returns the fold of a spec, nil for a kind it does not know.
func (s Spec) New() Fold {
	switch s.Kind {
	case KindCount:
		return countFold{}
	case KindTimes:
		return timesFold{windowMs: s.WindowMs, keep: int(min(s.Keep, math.MaxInt32))}
	case KindTotals:
		return totalsFold{}
	case KindSums:
		return Sums{windowMs: s.WindowMs}
	case KindMin:
		return extremesFold{windowMs: s.WindowMs, sign: 1}
	case KindMax:
		return extremesFold{windowMs: s.WindowMs, sign: -1}
	case KindDistinct:
		return distinctFold{windowMs: s.WindowMs, keep: int(min(s.Keep, math.MaxInt32))}
	case KindSpans:
		return spansFold{}
	}
	return nil
}

// Covers reports whether a state of spec s serves what is asked by spec o.
func (s Spec) Covers(o Spec) bool {
	if s.Kind != o.Kind || s.Property != o.Property {
		return false
	}
	if s.WindowMs > maxTime {
		return false
	}
	switch s.Kind {
	case KindTimes, KindDistinct:
		return (s.WindowMs == 0) == (o.WindowMs == 0) && s.WindowMs >= o.WindowMs && s.Keep >= o.Keep
	case KindMin, KindMax:
		return s.WindowMs >= o.WindowMs
	}
	return s.WindowMs == o.WindowMs
}

// Numbers reports whether the number of a property is all that is kept of an event, beside its
// time.
func (s Spec) Numbers() bool {
	switch s.Kind {
	case KindTotals, KindSums, KindMin, KindMax:
		return true
	}
	return false
}

// Path is the path of the property, nil for counts.
func (s Spec) Path() []string {
	if s.Property == "" {
		return nil
	}
	return strings.Split(s.Property, ".")
}

// SpecOf is the least that the leaf of an activity needs.
func SpecOf(a *segment.Activity) Spec {
	s := Spec{WindowMs: a.WindowMs}
	if a.Aggregate != nil {
		s.Property = strings.Join(a.Aggregate.Property, ".")
	}
	switch {
	case Timed(a.Where):
		s.Kind = KindSpans
	case a.Aggregate == nil && a.WindowMs == 0:
		s.Kind = KindCount
	case a.Aggregate == nil:
		s.Kind, s.Keep = KindTimes, enough(a.Count)
	case a.Aggregate.Fn == segment.FnDistinct:
		s.Kind, s.Keep = KindDistinct, enough(&a.Aggregate.Compare)
	case a.WindowMs == 0:
		s.Kind = KindTotals
	case a.Aggregate.Fn == segment.FnMin:
		s.Kind = KindMin
	case a.Aggregate.Fn == segment.FnMax:
		s.Kind = KindMax
	default:
		s.Kind = KindSums
	}
	return s
}

// Timed reports whether a filter depends on the instant it is judged at.
func Timed(where []segment.Predicate) bool {
	for i := range where {
		if where[i].Timed() {
			return true
		}
	}
	return false
}

// enough is a number from which on the comparison of a count does not change
// any more, rounded up so that a threshold can be edited a little without
// another look at history.
func enough(c *segment.Compare) int64 {
	n := int64(1)
	for _, m := range c.Micros {
		whole := m.Float64() / segment.MicrosPerUnit
		if whole >= 1<<40 {
			return 1 << 40
		}
		// The answer changes beside a constant only.
		for k := int64(whole) + 2; k > n && k >= int64(whole)-1; k-- {
			if holdsCount(c, uint64(k-1)) != holdsCount(c, uint64(k)) {
				n = k
			}
		}
	}
	if n == 1 {
		return 1
	}
	for k := int64(2); ; k *= 2 {
		if k >= n {
			return k
		}
	}
}

// expired reports whether an event at ms is out of a window at t.
func expired(ms, windowMs, t int64) bool { return windowMs > 0 && ms <= t-windowMs }

// LeavesAt is the instant at which an event at ms leaves a window.
func LeavesAt(ms, windowMs int64) int64 {
	if windowMs == 0 {
		return never
	}
	return ms + windowMs
}

// maxTime bounds the times taken from outside, so that adding a window to one
// stays a time.
const maxTime = int64(1) << 56

func validTime(ms int64) bool { return -maxTime <= ms && ms <= maxTime }

func getInt(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

func putInt(b []byte, v int64) { binary.LittleEndian.PutUint64(b, uint64(v)) }

func appendInt(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) }

// insertAt makes room for n bytes at i.
func insertAt(v []byte, i, n int) []byte {
	v = slices.Grow(v, n)[:len(v)+n]
	copy(v[i+n:], v[i:len(v)-n])
	return v
}
