// Package wheel keeps when profiles must be judged again, for one condition of the engine.
package wheel

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	// windowBuckets is how many buckets a window is divided into.
	windowBuckets = 128
	// reach is how many buckets ahead there is one for each width. What is
	// due later waits in one of as many wider steps, or as many again, and is
	// looked at again where that begins.
	reach = 2 * windowBuckets

	// usualFirst is how many entries First usually hands out: with more it allocates memory.
	usualFirst = 16

	// never is an instant that does not come.
	never = int64(math.MaxInt64)
)

// Item says that a profile must be judged again at an instant, or earlier.
type Item struct {
	Due     int64 // in Unix milliseconds
	Ordinal uint32
}

// Before reports whether an item is due before another: earlier, or at the same instant
// with a lower ordinal.
func (a Item) Before(b Item) bool {
	return a.Due < b.Due || a.Due == b.Due && a.Ordinal < b.Ordinal
}

// Wheel keeps which profiles of a leaf must be judged again and when. Profiles
// wait in buckets of time, as bitmaps without exact times; the bucket at the
// edge is opened into exact instants, worked out from the leaf's state.
//
// An entry may be out of date: a profile whose instant has moved to later stays
// where it is and moves on when it is met. An instant that moves to earlier is
// entered again. So there is always an entry at or before the true instant.
type Wheel struct {
	width   int64 // of a bucket, in milliseconds
	buckets map[int64]*roaring.Bitmap
	next    int64   // the first bucket; never when there is none
	opened  int64   // buckets below are opened
	edge    []Item  // the last is due first
	extra   dueHeap // entered behind the edge
}

type dueHeap []Item

func (h *dueHeap) push(it Item) {
	s := append(*h, it)
	i := len(s) - 1
	for i > 0 && it.Before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = it
	*h = s
}

func (h *dueHeap) pop() Item {
	s := *h
	top, it := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	for i := 0; i < len(s); {
		k := 2*i + 1
		if k+1 < len(s) && s[k+1].Before(s[k]) {
			k++
		}
		if k >= len(s) || !s[k].Before(it) {
			s[i] = it
			break
		}
		s[i] = s[k]
		i = k
	}
	return top
}

// New returns an empty wheel for a condition that looks back over a window.
func New(windowMs, nowMs int64) Wheel {
	w := Wheel{width: max(windowMs/windowBuckets, 1), buckets: map[int64]*roaring.Bitmap{}, next: never}
	w.opened = w.bucket(nowMs) + 1
	return w
}

func (w *Wheel) bucket(ms int64) int64 {
	return ms / w.width // instants to come are not negative
}

// Add enters a profile at its instant, which is after nowMs.
func (w *Wheel) Add(o uint32, due, nowMs int64) {
	now, b := w.bucket(nowMs), w.bucket(due)
	step := int64(1)
	for far := (b - max(now, w.opened)) / reach; far > 0; far /= reach {
		step *= reach
	}
	b -= b % step // still after max(now, w.opened)
	if b < w.opened || b <= now {
		w.extra.push(Item{due, o})
		return
	}
	m := w.buckets[b]
	if m == nil {
		m = roaring.New()
		w.buckets[b] = m
		w.next = min(w.next, b)
	}
	m.Add(o)
}

// Head is the earliest instant at which something is to be done: an entry of an
// ordinal is due, or a bucket must be opened, which comes first (−1). It is
// math.MaxInt64 when the wheel is empty.
func (w *Wheel) Head() (t, ordinal int64) {
	it := Item{Due: never}
	if n := len(w.edge); n > 0 {
		it = w.edge[n-1]
	}
	if len(w.extra) > 0 && w.extra[0].Before(it) {
		it = w.extra[0]
	}
	if w.next != never && w.next*w.width <= it.Due {
		return w.next * w.width, -1
	}
	return it.Due, int64(it.Ordinal)
}

// Open takes the first bucket apart, or its first profiles up to limit, and
// returns how many. due returns the instant of a profile. A bucket that is taken
// apart in pieces stays the first until nothing is left of it.
func (w *Wheel) Open(limit int, due func(o uint32) int64) int {
	b := w.next
	m := w.buckets[b]
	end := (b + 1) * w.width
	n := 0
	if m.GetCardinality() > uint64(limit) {
		// The list of the edge is sorted at once, the heap takes pieces.
		it := m.Iterator()
		first, last := m.Minimum(), uint32(0)
		for ; n < limit; n++ {
			last = it.Next()
			switch d := due(last); {
			case d == never:
			case d < end:
				w.extra.push(Item{d, last})
			default:
				w.Add(last, d, end-1)
			}
		}
		m.RemoveRange(uint64(first), uint64(last)+1)
		return n
	}
	delete(w.buckets, b)
	w.opened = b + 1
	w.next = never
	for k := range w.buckets {
		w.next = min(w.next, k)
	}
	for it := m.Iterator(); it.HasNext(); n++ {
		o := it.Next()
		switch d := due(o); {
		case d == never:
		case d < end:
			w.edge = append(w.edge, Item{d, o})
		default:
			w.Add(o, d, end-1)
		}
	}
	slices.SortFunc(w.edge, func(x, y Item) int {
		if x == y {
			return 0
		}
		if y.Before(x) {
			return -1
		}
		return 1
	})
	return n
}

// Peek is the first entry; there must be one.
func (w *Wheel) Peek() Item {
	if n := len(w.edge); n > 0 && (len(w.extra) == 0 || w.edge[n-1].Before(w.extra[0])) {
		return w.edge[n-1]
	}
	return w.extra[0]
}

// Pop takes the first entry; there must be one.
func (w *Wheel) Pop() Item {
	n := len(w.edge)
	if n > 0 && (len(w.extra) == 0 || w.edge[n-1].Before(w.extra[0])) {
		it := w.edge[n-1]
		w.edge = w.edge[:n-1]
		return it
	}
	return w.extra.pop()
}

// UpTo calls fn for every profile that may be due by t. Some may be met twice,
// some may not be due. It changes nothing.
func (w *Wheel) UpTo(t int64, fn func(o uint32)) {
	for i := len(w.edge) - 1; i >= 0 && w.edge[i].Due <= t; i-- {
		fn(w.edge[i].Ordinal)
	}
	w.extra.upTo(0, t, fn)
	if w.next == never || w.next*w.width > t {
		return
	}
	for b, m := range w.buckets {
		if b*w.width <= t {
			for it := m.Iterator(); it.HasNext(); {
				fn(it.Next())
			}
		}
	}
}

func (h dueHeap) upTo(i int, t int64, fn func(o uint32)) {
	if i < len(h) && h[i].Due <= t {
		fn(h[i].Ordinal)
		h.upTo(2*i+1, t, fn)
		h.upTo(2*i+2, t, fn)
	}
}

// First calls fn for entries that are not in buckets, in order of when they are
// due, until it returns false.
func (w *Wheel) First(fn func(Item) bool) {
	for i := len(w.edge) - 1; i >= 0; i-- {
		if !fn(w.edge[i]) {
			break
		}
	}
	if len(w.extra) == 0 {
		return
	}
	// The frontier are the places of the heap whose parents were handed out.
	var room [2 * usualFirst]int32
	for frontier := append(room[:0], 0); len(frontier) > 0; {
		least := 0
		for i := range frontier {
			if w.extra[frontier[i]].Before(w.extra[frontier[least]]) {
				least = i
			}
		}
		at := frontier[least]
		if !fn(w.extra[at]) {
			return
		}
		frontier = slices.Delete(frontier, least, least+1)
		for k := 2*at + 1; k <= 2*at+2 && int(k) < len(w.extra); k++ {
			frontier = append(frontier, k)
		}
	}
}

// Opens is the instant at which the first bucket begins: entries in buckets are not due
// before. It is math.MaxInt64 when there is none.
func (w *Wheel) Opens() int64 {
	if w.next == never {
		return never
	}
	return w.next * w.width
}

// Width is how many milliseconds a bucket spans.
func (w *Wheel) Width() int64 { return w.width }

// Opened is how many entries are not in buckets.
func (w *Wheel) Opened() int { return len(w.edge) + len(w.extra) }

// Bytes is how much memory the wheel takes, roughly.
func (w *Wheel) Bytes() int64 {
	n := int64(cap(w.edge)+cap(w.extra)) * 16
	for _, m := range w.buckets {
		n += int64(m.GetSizeInBytes())
	}
	return n
}
