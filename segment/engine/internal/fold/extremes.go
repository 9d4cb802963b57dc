package fold

import "github.com/musterhq/muster/internal/int128"

// extremesFold keeps the numbers of a window that can be its least (or, with
// sign −1, its greatest) now or later: those with no lesser one behind them. A
// value is their times and millionths (8 bytes each), the oldest first; the
// numbers then grow (or shrink) too.
type extremesFold struct {
	windowMs int64
	sign     int64
}

const extremesEntry = 16

func (f extremesFold) Add(v []byte, o *Occurrence, nowMs int64) []byte {
	if !o.Number || expired(o.AtMs, f.windowMs, nowMs) {
		return v
	}
	return f.insert(f.prune(v, nowMs), o.AtMs, o.Micros)
}

func (f extremesFold) prune(v []byte, nowMs int64) []byte {
	i := f.first(v, nowMs, f.windowMs)
	return append(v[:0], v[i:]...)
}

// first is where the window begins at t.
func (extremesFold) first(v []byte, t, windowMs int64) int {
	i := 0
	for i < len(v) && expired(getInt(v[i:]), windowMs, t) {
		i += extremesEntry
	}
	return i
}

func (f extremesFold) insert(v []byte, at, micros int64) []byte {
	// Those from end on are later or as late.
	end := len(v)
	for end > 0 && getInt(v[end-extremesEntry:]) >= at {
		end -= extremesEntry
	}
	if end < len(v) && f.sign*getInt(v[end+8:]) <= f.sign*micros {
		return v // a later one is as good
	}
	// The first later one may be of the same time and worse.
	next := end
	for next < len(v) && getInt(v[next:]) == at {
		next += extremesEntry
	}
	start := end
	for start > 0 && f.sign*getInt(v[start-8:]) >= f.sign*micros {
		start -= extremesEntry
	}
	if start == next {
		v = insertAt(v, start, extremesEntry)
	} else {
		v = append(v[:start+extremesEntry], v[next:]...)
	}
	putInt(v[start:], at)
	putInt(v[start+8:], micros)
	return v
}

func (f extremesFold) Union(v, other []byte, nowMs int64) []byte {
	v = f.prune(v, nowMs)
	for i := 0; i < len(other); i += extremesEntry {
		if at := getInt(other[i:]); !expired(at, f.windowMs, nowMs) {
			v = f.insert(v, at, getInt(other[i+8:]))
		}
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

func (f extremesFold) judge(q *Question, v []byte, i int) bool {
	return i < len(v) && q.Aggregate.Compare.Holds(int128.From(getInt(v[i+8:])))
}

func (f extremesFold) Holds(q *Question, v []byte, t int64) bool {
	return f.judge(q, v, f.first(v, t, q.WindowMs))
}

func (f extremesFold) Due(q *Question, v []byte, t int64) int64 {
	i := f.first(v, t, q.WindowMs)
	now := f.judge(q, v, i)
	for ; i < len(v); i += extremesEntry {
		if f.judge(q, v, i+extremesEntry) != now {
			return LeavesAt(getInt(v[i:]), q.WindowMs)
		}
	}
	return never
}

func (f extremesFold) Dead(v []byte, t int64) bool {
	return len(v) == 0 || expired(getInt(v[len(v)-extremesEntry:]), f.windowMs, t)
}

func (f extremesFold) Valid(v []byte) bool {
	if len(v) == 0 || len(v)%extremesEntry != 0 {
		return false
	}
	for i := extremesEntry; i < len(v); i += extremesEntry {
		if getInt(v[i-extremesEntry:]) >= getInt(v[i:]) || f.sign*getInt(v[i-8:]) >= f.sign*getInt(v[i+8:]) {
			return false
		}
	}
	return validTime(getInt(v)) && validTime(getInt(v[len(v)-extremesEntry:]))
}
