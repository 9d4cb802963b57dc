package fold

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/internal/int128"
)

// Sums keeps the numbers of a window with their times, and the sum and the
// number of those not passed over yet, so that the cost of an event does not
// grow with the window.
//
// A value is the sum (16 bytes), how many contributions at the front are
// passed over (4) and are not part of the sum, four bytes that are zero, and
// the contributions: time and millionths (8 each), the oldest first.
type Sums struct{ windowMs int64 }

const (
	sumsHead  = 24
	sumsEntry = 16
	// dueSteps bounds how far due looks for a change of the answer: looking far
	// costs with each event, being met early costs once when a contribution ends.
	dueSteps = 4
)

func (f Sums) Add(v []byte, o *Occurrence, nowMs int64) []byte {
	if !o.Number || expired(o.AtMs, f.windowMs, nowMs) {
		return v
	}
	return f.insert(f.prune(v, nowMs), o.AtMs, o.Micros)
}

// Collect appends what an event contributes to what was collected before. [Sums.Collected]
// makes a value of it: past events come in no order, and putting each contribution in its
// place would cost the square of their number.
func (f Sums) Collect(v []byte, o *Occurrence, nowMs int64) []byte {
	if !o.Number || expired(o.AtMs, f.windowMs, nowMs) {
		return v
	}
	return appendInt(appendInt(v, o.AtMs), o.Micros)
}

// Collected makes the value of what was collected, in the room of dst. It returns entries,
// which is scratch, for the next call.
func (f Sums) Collected(dst, v []byte, entries [][2]int64) (value []byte, scratch [][2]int64) {
	dst, entries = dst[:0], entries[:0]
	for i := 0; i < len(v); i += sumsEntry {
		entries = append(entries, [2]int64{getInt(v[i:]), getInt(v[i+8:])})
	}
	slices.SortFunc(entries, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, e := range entries {
		dst = f.insert(dst, e[0], e[1])
	}
	return dst, entries
}

func (f Sums) insert(v []byte, at, micros int64) []byte {
	if len(v) == 0 {
		v = append(v, make([]byte, sumsHead)...)
	}
	i := len(v)
	for i > sumsHead && getInt(v[i-sumsEntry:]) > at {
		i -= sumsEntry
	}
	v = insertAt(v, i, sumsEntry)
	putInt(v[i:], at)
	putInt(v[i+8:], micros)
	putWide(v, getWide(v).Add(int128.From(micros)))
	return v
}

// prune passes over what is out of the window and drops it when it is half of
// the value.
func (f Sums) prune(v []byte, nowMs int64) []byte {
	if len(v) == 0 {
		return v
	}
	passed := int(binary.LittleEndian.Uint32(v[16:]))
	n := (len(v) - sumsHead) / sumsEntry
	sum := getWide(v)
	for passed < n && expired(getInt(v[sumsHead+passed*sumsEntry:]), f.windowMs, nowMs) {
		sum = sum.Sub(int128.From(getInt(v[sumsHead+passed*sumsEntry+8:])))
		passed++
	}
	putWide(v, sum)
	if passed*2 >= n || n <= 16 {
		v = append(v[:sumsHead], v[sumsHead+passed*sumsEntry:]...)
		passed = 0
	}
	binary.LittleEndian.PutUint32(v[16:], uint32(passed))
	return v
}

func (f Sums) Union(v, other []byte, nowMs int64) []byte {
	v = f.prune(v, nowMs)
	from := sumsHead + int(binary.LittleEndian.Uint32(other[16:]))*sumsEntry
	for i := from; i < len(other); i += sumsEntry {
		if at := getInt(other[i:]); !expired(at, f.windowMs, nowMs) {
			v = f.insert(v, at, getInt(other[i+8:]))
		}
	}
	if len(v) <= sumsHead {
		return nil
	}
	return v
}

// at is the sum and the number in the window at t, and where it begins.
func (f Sums) at(v []byte, t int64) (s totals, i int) {
	i = sumsHead + int(binary.LittleEndian.Uint32(v[16:]))*sumsEntry
	s.sum = getWide(v)
	for i < len(v) && expired(getInt(v[i:]), f.windowMs, t) {
		s.sum = s.sum.Sub(int128.From(getInt(v[i+8:])))
		i += sumsEntry
	}
	s.n = uint64((len(v) - i) / sumsEntry)
	return s, i
}

func (f Sums) Holds(q *Question, v []byte, t int64) bool {
	s, _ := f.at(v, t)
	return q.judge(s)
}

func (f Sums) Due(q *Question, v []byte, t int64) int64 {
	s, i := f.at(v, t)
	now := q.judge(s)
	for step := 0; i < len(v); step++ {
		at := getInt(v[i:])
		for i < len(v) && getInt(v[i:]) == at {
			s.sum = s.sum.Sub(int128.From(getInt(v[i+8:])))
			s.n--
			i += sumsEntry
		}
		if step == dueSteps || q.judge(s) != now {
			return LeavesAt(at, f.windowMs)
		}
	}
	return never
}

func (f Sums) Dead(v []byte, t int64) bool {
	return len(v) <= sumsHead || expired(getInt(v[len(v)-sumsEntry:]), f.windowMs, t)
}

func (f Sums) Valid(v []byte) bool {
	n := len(v) - sumsHead
	if n <= 0 || n%sumsEntry != 0 {
		return false
	}
	passed := int(binary.LittleEndian.Uint32(v[16:]))
	if passed > n/sumsEntry || binary.LittleEndian.Uint32(v[20:]) != 0 {
		return false
	}
	var sum int128.Int128
	for i := sumsHead; i < len(v); i += sumsEntry {
		if i > sumsHead && getInt(v[i-sumsEntry:]) > getInt(v[i:]) {
			return false
		}
		if (i-sumsHead)/sumsEntry >= passed {
			sum = sum.Add(int128.From(getInt(v[i+8:])))
		}
	}
	return sum == getWide(v) && validTime(getInt(v[sumsHead:])) && validTime(getInt(v[len(v)-sumsEntry:]))
}
