package engine

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/musterhq/muster/segment"
)

// never is an instant that does not come.
const never = int64(math.MaxInt64)

// occurrence is what one event adds to a state.
type occurrence struct {
	atMs int64
	// micros is the number behind the state's property, in millionths, when
	// number is set.
	micros int64
	number bool
	// key names the scalar behind the property, when scalar is set.
	key    valueKey
	scalar bool
	// spans are when the event counts, for filters that depend on the instant.
	spans []span
}

// span is from ≤ t < to.
type span struct{ from, to int64 }

// A fold keeps, of one profile's matching events, the least that decides its
// leaves at every instant from now on. Its value is a short byte string; an
// empty one stands for no events. Values handed to add and union may be changed
// in place and returned, as with append.
type fold interface {
	// add takes in an event. Nothing before nowMs will be asked any more.
	add(v []byte, o *occurrence, nowMs int64) []byte
	// union is the value of both profiles' events together.
	union(v, other []byte, nowMs int64) []byte
	// holds answers a question at t; v is not nil.
	holds(q *question, v []byte, t int64) bool
	// due is an instant after t at which the answer may change; it does not
	// change before. v is not nil.
	due(q *question, v []byte, t int64) int64
	// dead tells that v decides nothing any more from t on.
	dead(v []byte, t int64) bool
	// valid checks a value read from outside.
	valid(v []byte) bool
}

// spec says what a state keeps; two leaves that can do with one spec share a
// state.
type spec struct {
	// Kind is the fold.
	Kind foldKind `json:"kind"`
	// Property is the path aggregated, joined by dots; "" for counts.
	Property string `json:"property,omitempty"`
	// WindowMs is how far back the state reaches; 0 is all time.
	WindowMs int64 `json:"window_ms,omitempty"`
	// Keep is how many times or values are enough.
	Keep int64 `json:"keep,omitempty"`
}

type foldKind string

const (
	foldCount    foldKind = "count"    // how many, all time
	foldTimes    foldKind = "times"    // the newest times
	foldTotals   foldKind = "totals"   // sum, number, least and greatest, all time
	foldSums     foldKind = "sums"     // contributions in the window
	foldMin      foldKind = "min"      // those that can still be the least
	foldMax      foldKind = "max"      // those that can still be the greatest
	foldDistinct foldKind = "distinct" // different values with their newest time
	foldSpans    foldKind = "spans"    // contributions with the spans they count in
)

// newFold returns nil for a kind it does not know.
func (s spec) newFold() fold {
	switch s.Kind {
	case foldCount:
		return countFold{}
	case foldTimes:
		return timesFold{windowMs: s.WindowMs, keep: int(min(s.Keep, math.MaxInt32))}
	case foldTotals:
		return totalsFold{}
	case foldSums:
		return sumsFold{windowMs: s.WindowMs}
	case foldMin:
		return extremesFold{windowMs: s.WindowMs, sign: 1}
	case foldMax:
		return extremesFold{windowMs: s.WindowMs, sign: -1}
	case foldDistinct:
		return distinctFold{windowMs: s.WindowMs, keep: int(min(s.Keep, math.MaxInt32))}
	case foldSpans:
		return spansFold{}
	}
	return nil
}

// covers reports whether a state of spec s serves what is asked by spec o.
func (s spec) covers(o spec) bool {
	if s.Kind != o.Kind || s.Property != o.Property {
		return false
	}
	if s.WindowMs > maxTime {
		return false
	}
	switch s.Kind {
	case foldTimes, foldDistinct:
		return (s.WindowMs == 0) == (o.WindowMs == 0) && s.WindowMs >= o.WindowMs && s.Keep >= o.Keep
	case foldMin, foldMax:
		return s.WindowMs >= o.WindowMs
	}
	return s.WindowMs == o.WindowMs
}

// specOf is the least a leaf needs.
func specOf(a *segment.Activity) spec {
	s := spec{WindowMs: a.WindowMs}
	if a.Aggregate != nil {
		s.Property = joinPath(a.Aggregate.Property)
	}
	switch {
	case timed(a.Where):
		s.Kind = foldSpans
	case a.Aggregate == nil && a.WindowMs == 0:
		s.Kind = foldCount
	case a.Aggregate == nil:
		s.Kind, s.Keep = foldTimes, enough(a.Count)
	case a.Aggregate.Fn == segment.FnDistinct:
		s.Kind, s.Keep = foldDistinct, enough(&a.Aggregate.Compare)
	case a.WindowMs == 0:
		s.Kind = foldTotals
	case a.Aggregate.Fn == segment.FnMin:
		s.Kind = foldMin
	case a.Aggregate.Fn == segment.FnMax:
		s.Kind = foldMax
	default:
		s.Kind = foldSums
	}
	return s
}

func joinPath(path []string) string { return strings.Join(path, ".") }

func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// timed reports whether a filter depends on the instant it is judged at.
func timed(where []segment.Predicate) bool {
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

func leaves(ms, windowMs int64) int64 {
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
