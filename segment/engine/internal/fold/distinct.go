package fold

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/rawjson"
)

// Key names a scalar: equal scalars have equal keys, numbers by value.
type Key [16]byte

// KeyOf is the key of a JSON scalar in canonical text; ok is false for what is
// none. Short strings are their own key, long ones are hashed.
func KeyOf(raw []byte) (k Key, ok bool) {
	switch rawjson.KindOf(raw) {
	case rawjson.True:
		k[15] = 1
	case rawjson.False:
		k[15] = 2
	case rawjson.Number:
		f, ok := rawjson.Float(raw)
		if !ok {
			return k, false
		}
		k[15] = 3
		if f == 0 {
			f = 0 // −0 is 0
		}
		binary.LittleEndian.PutUint64(k[:], math.Float64bits(f))
	case rawjson.String:
		var buf [128]byte
		text, ok := rawjson.Text(raw, buf[:])
		if !ok {
			return k, false
		}
		if len(text) < 15 {
			copy(k[:], text)
			k[14], k[15] = byte(len(text)), 4
		} else {
			h := sha256.Sum256(text)
			copy(k[:], h[:])
			k[15] = 5
		}
	default:
		return k, false
	}
	return k, true
}

// distinctFold keeps the different values of a window with the newest time of
// each, up to as many as decide its leaves. A value is those keys (16 bytes)
// and times (8), in the order in which they were first seen.
type distinctFold struct {
	windowMs int64
	keep     int
}

const (
	distinctEntry = 24
	// manyDistinct is how many values due looks through in order.
	manyDistinct = 256
)

func (f distinctFold) Add(v []byte, o *Occurrence, nowMs int64) []byte {
	if !o.Scalar || expired(o.AtMs, f.windowMs, nowMs) {
		return v
	}
	return f.insert(f.prune(v, nowMs), o.Key[:], o.AtMs)
}

func (f distinctFold) insert(v, key []byte, at int64) []byte {
	if f.windowMs == 0 {
		at = 0 // of no interest
	}
	for i := 0; i < len(v); i += distinctEntry {
		if bytes.Equal(v[i:i+16], key) {
			putInt(v[i+16:], max(getInt(v[i+16:]), at))
			return v
		}
	}
	n := len(v) / distinctEntry
	if f.windowMs == 0 && n >= f.keep {
		return v
	}
	v = appendInt(append(v, key...), at)
	if n++; n > 2*f.keep {
		v = f.newest(v)
	}
	return v
}

// newest keeps those that leave the window last.
func (f distinctFold) newest(v []byte) []byte {
	var room [timesRoom]int64
	times := f.times(room[:0], v, math.MinInt64)
	bound := times[len(times)-f.keep]
	// Several may be as old as the bound: the ones seen first stay.
	spare := f.keep
	for _, t := range times {
		if t > bound {
			spare--
		}
	}
	out := v[:0]
	for i := 0; i < len(v); i += distinctEntry {
		at := getInt(v[i+16:])
		if at == bound {
			if spare == 0 {
				continue
			}
			spare--
		}
		if at >= bound {
			out = append(out, v[i:i+distinctEntry]...)
		}
	}
	return out
}

// timesRoom is how many times fit the stack.
const timesRoom = 64

// times appends the times after ms to out, which is empty, in order.
func (distinctFold) times(out []int64, v []byte, ms int64) []int64 {
	for i := 0; i < len(v); i += distinctEntry {
		if at := getInt(v[i+16:]); at > ms {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

func (f distinctFold) prune(v []byte, nowMs int64) []byte {
	first := 0
	for first < len(v) && !expired(getInt(v[first+16:]), f.windowMs, nowMs) {
		first += distinctEntry
	}
	out := v[:first]
	for i := first; i < len(v); i += distinctEntry {
		if !expired(getInt(v[i+16:]), f.windowMs, nowMs) {
			out = append(out, v[i:i+distinctEntry]...)
		}
	}
	return out
}

func (f distinctFold) Union(v, other []byte, nowMs int64) []byte {
	v = f.prune(v, nowMs)
	for i := 0; i < len(other); i += distinctEntry {
		if at := getInt(other[i+16:]); !expired(at, f.windowMs, nowMs) {
			v = f.insert(v, other[i:i+16], at)
		}
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

func (f distinctFold) Holds(q *Question, v []byte, t int64) bool {
	n := 0
	for i := 0; i < len(v); i += distinctEntry {
		if !expired(getInt(v[i+16:]), q.WindowMs, t) {
			n++
		}
	}
	return q.holdsFor(uint64(n))
}

func (f distinctFold) Due(q *Question, v []byte, t int64) int64 {
	if f.windowMs == 0 {
		return never
	}
	if len(v) > manyDistinct*distinctEntry {
		// Sorting them with each event would cost too much: the next that leaves
		// the window is soon enough.
		next := never
		for i := 0; i < len(v); i += distinctEntry {
			if at := getInt(v[i+16:]); at > t-q.WindowMs {
				next = min(next, at+q.WindowMs)
			}
		}
		return next
	}
	var room [timesRoom]int64
	times := f.times(room[:0], v, t-q.WindowMs)
	now := q.holdsFor(uint64(len(times)))
	for i := 0; i < len(times); {
		at := times[i]
		for i < len(times) && times[i] == at {
			i++
		}
		if q.holdsFor(uint64(len(times)-i)) != now {
			return at + q.WindowMs
		}
	}
	return never
}

func (f distinctFold) Dead(v []byte, t int64) bool {
	for i := 0; i < len(v); i += distinctEntry {
		if !expired(getInt(v[i+16:]), f.windowMs, t) {
			return false
		}
	}
	return true
}

func (distinctFold) Valid(v []byte) bool {
	if len(v) == 0 || len(v)%distinctEntry != 0 {
		return false
	}
	for i := 0; i < len(v); i += distinctEntry {
		if !validTime(getInt(v[i+16:])) {
			return false
		}
	}
	return true
}
