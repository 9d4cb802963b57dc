package fold

import "sort"

// timesFold keeps the newest times of a window, up to as many as decide its
// leaves. A value is those times, the oldest first.
type timesFold struct {
	windowMs int64
	keep     int
}

func (f timesFold) Add(v []byte, o *Occurrence, nowMs int64) []byte {
	if expired(o.AtMs, f.windowMs, nowMs) {
		return v
	}
	return f.insert(f.prune(v, nowMs), o.AtMs)
}

func (f timesFold) Union(v, other []byte, nowMs int64) []byte {
	v = f.prune(v, nowMs)
	for i := 0; i < len(other); i += 8 {
		if at := getInt(other[i:]); !expired(at, f.windowMs, nowMs) {
			v = f.insert(v, at)
		}
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

// insert puts a time in its place and drops the oldest beyond keep.
func (f timesFold) insert(v []byte, at int64) []byte {
	if f.keep == 1 {
		if len(v) == 0 {
			return appendInt(v, at)
		}
		putInt(v, max(getInt(v), at))
		return v
	}
	i := len(v)
	for i > 0 && getInt(v[i-8:]) > at {
		i -= 8
		if i == 0 && len(v) >= 8*f.keep {
			return v // older than all that are kept
		}
	}
	v = insertAt(v, i, 8)
	putInt(v[i:], at)
	if n := len(v) / 8; n > f.keep {
		// Long lists are cut in strides, so that a cut moves little per event.
		if n >= 2*f.keep || n <= 64 {
			v = append(v[:0], v[8*(n-f.keep):]...)
		}
	}
	return v
}

// prune drops the times that are out of the window.
func (f timesFold) prune(v []byte, nowMs int64) []byte {
	i := f.after(v, nowMs-f.windowMs)
	if i == 0 {
		return v
	}
	return append(v[:0], v[8*i:]...)
}

// after is the number of the first time greater than ms.
func (timesFold) after(v []byte, ms int64) int {
	if len(v) == 0 || getInt(v) > ms {
		return 0
	}
	return sort.Search(len(v)/8, func(i int) bool { return getInt(v[8*i:]) > ms })
}

func (f timesFold) Holds(q *Question, v []byte, t int64) bool {
	return q.holdsFor(uint64(len(v)/8 - f.after(v, t-q.WindowMs)))
}

func (f timesFold) Due(q *Question, v []byte, t int64) int64 {
	n := len(v) / 8
	i := f.after(v, t-q.WindowMs)
	now := q.holdsFor(uint64(n - i))
	for i < n {
		at := getInt(v[8*i:])
		for i < n && getInt(v[8*i:]) == at {
			i++
		}
		if q.holdsFor(uint64(n-i)) != now {
			return at + q.WindowMs
		}
	}
	return never
}

// Ago is how long before nowMs the n-th newest event was of a value of [KindTimes], in
// milliseconds; math.MaxInt64 where there are fewer.
func Ago(v []byte, n int, nowMs int64) int64 {
	if len(v) < 8*n {
		return never
	}
	return nowMs - getInt(v[len(v)-8*n:])
}

func (f timesFold) Dead(v []byte, t int64) bool {
	return len(v) == 0 || expired(getInt(v[len(v)-8:]), f.windowMs, t)
}

func (f timesFold) Valid(v []byte) bool {
	if len(v) == 0 || len(v)%8 != 0 || f.keep == 1 && len(v) != 8 {
		return false
	}
	for i := 8; i < len(v); i += 8 {
		if getInt(v[i-8:]) > getInt(v[i:]) {
			return false
		}
	}
	return validTime(getInt(v)) && validTime(getInt(v[len(v)-8:]))
}
