package engine

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	// wheelBuckets is how many buckets a window is divided into.
	wheelBuckets = 128
	// wheelReach is how many buckets ahead there is one for each width. What is
	// due later waits in one of as many wider steps, or as many again, and is
	// looked at again where that begins.
	wheelReach = 2 * wheelBuckets
)

// dueItem says that a profile must be judged again at an instant, or earlier.
type dueItem struct {
	due     int64
	ordinal uint32
}

func (a dueItem) before(b dueItem) bool {
	return a.due < b.due || a.due == b.due && a.ordinal < b.ordinal
}

// wheel keeps which profiles of a leaf must be judged again and when. Profiles
// wait in buckets of time, as bitmaps without exact times; the bucket at the
// edge is opened into exact instants, worked out from the leaf's state.
//
// An entry may be out of date: a profile whose instant has moved to later stays
// where it is and moves on when it is met. An instant that moves to earlier is
// entered again. So there is always an entry at or before the true instant.
type wheel struct {
	width   int64 // of a bucket, in milliseconds
	buckets map[int64]*roaring.Bitmap
	next    int64     // the first bucket; never when there is none
	opened  int64     // buckets below are opened
	edge    []dueItem // the last is due first
	extra   dueHeap   // entered behind the edge
}

type dueHeap []dueItem

func (h *dueHeap) push(it dueItem) {
	s := append(*h, it)
	i := len(s) - 1
	for i > 0 && it.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = it
	*h = s
}

func (h *dueHeap) pop() dueItem {
	s := *h
	top, it := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	for i := 0; i < len(s); {
		k := 2*i + 1
		if k+1 < len(s) && s[k+1].before(s[k]) {
			k++
		}
		if k >= len(s) || !s[k].before(it) {
			s[i] = it
			break
		}
		s[i] = s[k]
		i = k
	}
	return top
}

func newWheel(windowMs, nowMs int64) wheel {
	w := wheel{width: max(windowMs/wheelBuckets, 1), buckets: map[int64]*roaring.Bitmap{}, next: never}
	w.opened = w.bucket(nowMs) + 1
	return w
}

func (w *wheel) bucket(ms int64) int64 {
	return ms / w.width // instants to come are not negative
}

// add enters a profile at its instant, which is after nowMs.
func (w *wheel) add(o uint32, due, nowMs int64) {
	now, b := w.bucket(nowMs), w.bucket(due)
	step := int64(1)
	for far := (b - max(now, w.opened)) / wheelReach; far > 0; far /= wheelReach {
		step *= wheelReach
	}
	b -= b % step // still after max(now, w.opened)
	if b < w.opened || b <= now {
		w.extra.push(dueItem{due, o})
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

// head is the earliest instant at which something is to be done: an entry of an
// ordinal is due, or a bucket must be opened, which comes first (−1).
func (w *wheel) head() (t, ordinal int64) {
	it := dueItem{due: never}
	if n := len(w.edge); n > 0 {
		it = w.edge[n-1]
	}
	if len(w.extra) > 0 && w.extra[0].before(it) {
		it = w.extra[0]
	}
	if w.next != never && w.next*w.width <= it.due {
		return w.next * w.width, -1
	}
	return it.due, int64(it.ordinal)
}

// open takes the first bucket apart, or its first profiles up to limit, and
// returns how many. due returns the instant of a profile. A bucket that is taken
// apart in pieces stays the first until nothing is left of it.
func (w *wheel) open(limit int, due func(o uint32) int64) int {
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
				w.extra.push(dueItem{d, last})
			default:
				w.add(last, d, end-1)
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
			w.edge = append(w.edge, dueItem{d, o})
		default:
			w.add(o, d, end-1)
		}
	}
	slices.SortFunc(w.edge, func(x, y dueItem) int {
		if x == y {
			return 0
		}
		if y.before(x) {
			return -1
		}
		return 1
	})
	return n
}

// peek is the first entry; there must be one.
func (w *wheel) peek() dueItem {
	if n := len(w.edge); n > 0 && (len(w.extra) == 0 || w.edge[n-1].before(w.extra[0])) {
		return w.edge[n-1]
	}
	return w.extra[0]
}

// pop takes the first entry; there must be one.
func (w *wheel) pop() dueItem {
	n := len(w.edge)
	if n > 0 && (len(w.extra) == 0 || w.edge[n-1].before(w.extra[0])) {
		it := w.edge[n-1]
		w.edge = w.edge[:n-1]
		return it
	}
	return w.extra.pop()
}

// upTo calls fn for every profile that may be due by t. Some may be met twice,
// some may not be due. It changes nothing.
func (w *wheel) upTo(t int64, fn func(o uint32)) {
	for i := len(w.edge) - 1; i >= 0 && w.edge[i].due <= t; i-- {
		fn(w.edge[i].ordinal)
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
	if i < len(h) && h[i].due <= t {
		fn(h[i].ordinal)
		h.upTo(2*i+1, t, fn)
		h.upTo(2*i+2, t, fn)
	}
}

// timers is a heap of leaves by what is due first: by instant, then by ordinal,
// then by leaf.
type timers []*leaf

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	x, xo := h[i].wheel.head()
	y, yo := h[j].wheel.head()
	if x != y {
		return x < y
	}
	if xo != yo {
		return xo < yo
	}
	return h[i].id < h[j].id
}
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].inHeap, h[j].inHeap = i, j
}
func (h *timers) Push(x any) {
	l := x.(*leaf)
	l.inHeap = len(*h)
	*h = append(*h, l)
}
func (h *timers) Pop() any {
	old := *h
	l := old[len(old)-1]
	l.inHeap = -1
	*h = old[:len(old)-1]
	return l
}
