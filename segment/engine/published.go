package engine

import (
	"container/heap"
	"slices"
	"sync/atomic"

	"github.com/musterhq/muster/segment/engine/internal/wheel"
)

// What the engine publishes lets others count members while it continues
// changing: of each segment the number of members, the changes of it that time
// alone makes next (steps), and the instant before which that is all (bound).
//
// Steps and bound stay true until something happens to a profile they were
// worked out from. Then they are cut short, which costs next to nothing; they
// are worked out again when the bound comes near. So a record costs as much as
// the segments whose members it changes, however many there are.

const (
	// publishedSteps is how many entries of wheels a look ahead takes in.
	publishedSteps = 16
	// publishedNearMs is how far ahead of the engine's time a bound should be: a
	// read between two records asks of a later instant. It is longer than a
	// record commonly waits before it is applied.
	publishedNearMs = 50
	// publishedWork bounds the entries that one call of Publish takes in, so that
	// it ends after some twenty microseconds. The bounds of segments that must
	// wait are near, or over, and stay true.
	publishedWork = 64
	// publishedLeaves is up to how many timed leaves of a segment are looked
	// ahead at. With more, the bound is the first instant at which one is due.
	publishedLeaves = 16
)

// Published is the published numbers of a segment. It may be read at any time; what
// is read while [Engine.Publish] runs may be wrong.
type Published struct {
	exact *atomic.Bool // the engine does not lag
	count atomic.Int64
	bound atomic.Int64
	steps [publishedSteps]struct{ due, more atomic.Int64 } // more members than count from due on
}

// Count is the number of members at t, as [Engine.Count] finds it. ok is false
// when the published numbers do not suffice: the segment is not live, or time may
// have changed its members by t.
func (p *Published) Count(t int64) (n uint64, ok bool) {
	if t >= p.bound.Load() || !p.exact.Load() {
		return 0, false
	}
	more := int64(0)
	for i := range p.steps {
		if p.steps[i].due.Load() > t {
			break
		}
		more = p.steps[i].more.Load()
	}
	return uint64(p.count.Load() + more), true
}

// publisher is what the engine keeps to publish.
type publisher struct {
	fresh  bool // definitions are those that were published last
	exact  atomic.Bool
	listed []*seg   // all segments as of the last definitions
	queue  []*seg   // to be written, each once
	bounds boundary // live segments with timed leaves
	from   dependents

	pending []wheel.Item // scratch of lookAhead
	judged  []publishedState
	again   []*seg
}

// publishedSeg is what the publisher keeps of a segment.
type publishedSeg struct {
	to     *Published
	by     *program // the definition that is published; nil if none is
	count  int64
	bound  int64
	steps  []dueStep
	from   []uint32 // profiles that bound and steps were worked out from
	queued bool
	moved  bool // steps have changed since they were written
	inHeap int
}

type dueStep struct{ due, delta int64 }

// publishedLeaf is what the publisher keeps of a timed leaf.
type publishedLeaf struct {
	segs  []*seg // published, that depend on it, also through references
	bound int64  // none of theirs is later
}

type publishedState struct {
	ordinal uint32
	is      bool
}

func (p *publisher) setExact(exact bool) {
	if p.exact.Load() != exact {
		p.exact.Store(exact)
	}
}

// withdraw makes a segment one of which nothing is known.
func (p *publisher) withdraw(s *seg) {
	p.from.remove(s)
	s.pub.by, s.pub.bound, s.pub.steps, s.pub.moved = nil, 0, s.pub.steps[:0], true
}

func (p *publisher) enqueue(s *seg) {
	if !s.pub.queued {
		s.pub.queued = true
		p.queue = append(p.queue, s)
	}
}

// turned notes that a profile has entered or left a segment.
func (p *publisher) turned(s *seg, is bool) {
	if is {
		s.pub.count++
	} else {
		s.pub.count--
	}
	p.enqueue(s)
}

// touched notes that something is about to happen to a profile: what was worked
// out from it does not hold from when it was looked at on.
func (p *publisher) touched(o uint32) {
	for i := p.from.first(o); i >= 0; i = p.from.nodes[i].next {
		p.cut(p.from.nodes[i].s, p.from.nodes[i].due)
	}
}

// scheduled notes that an answer of a leaf may change at an instant.
func (p *publisher) scheduled(l *leaf, due int64) {
	if due >= l.pub.bound {
		return
	}
	for _, s := range l.pub.segs {
		p.cut(s, due)
	}
	l.pub.tighten()
}

func (l *publishedLeaf) tighten() {
	l.bound = 0
	for _, s := range l.segs {
		l.bound = max(l.bound, s.pub.bound)
	}
}

// cut shortens what is published of a segment.
func (p *publisher) cut(s *seg, bound int64) {
	x := &s.pub
	if bound >= x.bound {
		return
	}
	x.bound = bound
	for n := len(x.steps); n > 0 && x.steps[n-1].due >= bound; n-- {
		x.steps, x.moved = x.steps[:n-1], true
	}
	if len(p.bounds) > x.inHeap && p.bounds[x.inHeap] == s {
		heap.Fix(&p.bounds, x.inHeap)
	}
	p.enqueue(s)
}

// write publishes a segment.
func (x *publishedSeg) write(nowMs int64) {
	for len(x.steps) > 0 && x.steps[0].due <= nowMs { // part of the count by now
		x.steps = slices.Delete(x.steps, 0, 1)
		x.moved = true
	}
	to := x.to
	if to.count.Load() != x.count {
		to.count.Store(x.count)
	}
	if to.bound.Load() != x.bound {
		to.bound.Store(x.bound)
	}
	if !x.moved {
		return
	}
	x.moved = false
	more := int64(0)
	for i := range to.steps {
		due := never
		if i < len(x.steps) {
			due = x.steps[i].due
			more += x.steps[i].delta
			to.steps[i].more.Store(more)
		}
		if to.steps[i].due.Load() == never && due == never {
			break
		}
		to.steps[i].due.Store(due)
	}
}

func compareDue(a, b wheel.Item) int {
	switch {
	case a == b:
		return 0
	case a.Before(b):
		return -1
	}
	return 1
}

// judge notes whether a profile is a member from an instant on and returns by
// how much that changes the number of members.
func (p *publisher) judge(s *seg, o uint32, is bool) (delta int64) {
	at := slices.IndexFunc(p.judged, func(x publishedState) bool { return x.ordinal == o })
	if at < 0 {
		at = len(p.judged)
		p.judged = append(p.judged, publishedState{o, s.members.Contains(o)})
	}
	was := p.judged[at].is
	p.judged[at].is = is
	switch {
	case is && !was:
		return 1
	case was && !is:
		return -1
	}
	return 0
}

// dependents are the profiles that something was worked out from, as lists by
// profile.
type dependents struct {
	heads map[uint32]int32
	nodes []dependent
	free  []int32
}

// dependent says that what is published of a segment depends on a profile from
// an instant on.
type dependent struct {
	s       *seg
	ordinal uint32
	next    int32 // place of the next of the profile's; −1 ends
	due     int64
}

// first is the place of the profile's first, or −1.
func (d *dependents) first(o uint32) int32 {
	if len(d.heads) > 0 {
		if i, ok := d.heads[o]; ok {
			return i
		}
	}
	return -1
}

// add notes a dependence. Of several on one profile the first is noted, which is
// the earliest.
func (d *dependents) add(s *seg, it wheel.Item) {
	if slices.Contains(s.pub.from, it.Ordinal) {
		return
	}
	if d.heads == nil {
		d.heads = map[uint32]int32{}
	}
	at := int32(len(d.nodes))
	if n := len(d.free); n > 0 {
		at, d.free = d.free[n-1], d.free[:n-1]
	} else {
		d.nodes = append(d.nodes, dependent{})
	}
	d.nodes[at] = dependent{s, it.Ordinal, d.first(it.Ordinal), it.Due}
	d.heads[it.Ordinal] = at
	s.pub.from = append(s.pub.from, it.Ordinal)
}

// remove removes what a segment depends on.
func (d *dependents) remove(s *seg) {
	for _, o := range s.pub.from {
		before := int32(-1)
		for i := d.first(o); i >= 0; before, i = i, d.nodes[i].next {
			n := &d.nodes[i]
			if n.s != s {
				continue
			}
			switch {
			case before >= 0:
				d.nodes[before].next = n.next
			case n.next >= 0:
				d.heads[o] = n.next
			default:
				delete(d.heads, o)
			}
			n.s = nil
			d.free = append(d.free, i)
			break
		}
	}
	s.pub.from = s.pub.from[:0]
}

// boundary is a heap of segments by bound.
type boundary []*seg

func (h boundary) Len() int           { return len(h) }
func (h boundary) Less(i, j int) bool { return h[i].pub.bound < h[j].pub.bound }
func (h boundary) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pub.inHeap, h[j].pub.inHeap = i, j
}
func (h *boundary) Push(x any) {
	s := x.(*seg)
	s.pub.inHeap = len(*h)
	*h = append(*h, s)
}
func (h *boundary) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}
