package engine

import (
	"container/heap"
	"slices"
	"sync/atomic"

	"github.com/musterhq/muster/segment/engine/internal/wheel"
)

// What the engine publishes lets others count members while it goes on
// changing: of each segment the number of members, the changes of it that time
// alone makes next (steps), and the instant before which that is all (bound).
//
// Steps and bound stay true until something happens to a profile they were
// worked out from. Then they are cut short, which costs next to nothing; they
// are worked out anew when the bound comes near. So a record costs as much as
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

// Publication returns the published numbers of a segment, the same value as long as
// the segment is defined; nil when there is no such segment.
func (e *Engine) Publication(id string) *Published {
	s := e.segments[id]
	if s == nil {
		return nil
	}
	if s.pub.to == nil {
		s.pub.to = &Published{exact: &e.pub.exact}
	}
	return s.pub.to
}

// Publish brings what is published up to date and reports whether definitions have
// changed since the last call, or segments have become live. It changes no
// answer of the engine. The caller must keep readers from taking what is half
// written for an answer.
func (e *Engine) Publish() (redefined bool) {
	p := &e.pub
	if redefined = !p.fresh; redefined {
		e.republish()
	}
	if e.Lagging() {
		p.setExact(false)
		return redefined
	}
	for budget := publishedWork; budget > 0 && len(p.bounds) > 0 && p.bounds[0].pub.bound < e.now+publishedNearMs; {
		s := heap.Pop(&p.bounds).(*seg)
		budget -= 1 + e.lookAhead(s)
		p.again = append(p.again, s)
	}
	for _, s := range p.again {
		heap.Push(&p.bounds, s)
	}
	p.again = p.again[:0]
	for _, s := range p.queue {
		s.pub.queued = false
		s.pub.write(e.now)
	}
	p.queue = p.queue[:0]
	p.setExact(true)
	return redefined
}

func (p *publisher) setExact(exact bool) {
	if p.exact.Load() != exact {
		p.exact.Store(exact)
	}
}

// republish follows up a change of definitions.
func (e *Engine) republish() {
	p := &e.pub
	p.fresh = true
	for _, s := range p.listed {
		if e.segments[s.id] != s {
			p.withdraw(s)
			s.pub.write(e.now)
		}
	}
	for _, s := range p.queue {
		s.pub.queued = false
	}
	p.queue = p.queue[:0]
	p.listed = append(p.listed[:0], e.byRank...)
	for _, l := range e.timed {
		l.pub.segs = l.pub.segs[:0]
	}
	p.bounds = p.bounds[:0]
	for _, s := range p.listed {
		e.Publication(s.id)
		p.enqueue(s)
		if !s.settled {
			p.withdraw(s)
			continue
		}
		s.pub.count = int64(s.members.GetCardinality())
		if s.pub.by != s.live || len(s.live.refs) > 0 {
			p.withdraw(s)
			s.pub.by = s.live
			if len(s.timed) == 0 {
				s.pub.bound = never
			}
		}
		for _, l := range s.timed {
			l.pub.segs = append(l.pub.segs, s)
		}
		if len(s.timed) > 0 {
			s.pub.inHeap = len(p.bounds)
			p.bounds = append(p.bounds, s)
		}
	}
	if !e.Lagging() {
		for _, s := range p.bounds {
			if s.pub.bound == 0 {
				e.lookAhead(s)
			}
		}
	}
	heap.Init(&p.bounds)
	for _, l := range e.timed {
		l.pub.tighten()
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

// lookAhead works out steps and bound of a segment from the first entries of the
// wheels of its leaves. The bound is the instant of the first entry that was not
// taken in, so it is worked out anew before nothing but time has passed it. It
// returns how many entries it took in.
func (e *Engine) lookAhead(s *seg) (entries int) {
	p := &e.pub
	p.from.remove(s)
	s.pub.steps, s.pub.moved = s.pub.steps[:0], true
	p.enqueue(s)
	bound := never
	p.pending, p.judged = p.pending[:0], p.judged[:0]
	defer func() {
		s.pub.bound = bound
		for _, l := range s.timed {
			l.pub.bound = max(l.pub.bound, bound)
		}
	}()
	if len(s.timed) > publishedLeaves {
		for _, l := range s.timed {
			t, _ := l.wheel.Head()
			bound = min(bound, t)
		}
		return len(s.timed) / 4
	}
	pend := func(it wheel.Item) (goOn bool) {
		at, twice := slices.BinarySearchFunc(p.pending, it, compareDue)
		switch {
		case twice:
			return true
		case at == publishedSteps:
			bound = min(bound, it.Due)
			return false
		case len(p.pending) == publishedSteps:
			bound = min(bound, p.pending[publishedSteps-1].Due)
			p.pending = p.pending[:publishedSteps-1]
		}
		p.pending = slices.Insert(p.pending, at, it)
		return true
	}
	for _, l := range s.timed {
		bound = min(bound, l.wheel.Opens())
		l.wheel.First(pend)
	}
	memo := s.memo()
	for ; len(p.pending) > 0 && p.pending[0].Due < bound; entries++ {
		it := p.pending[0]
		if entries == publishedSteps {
			bound = it.Due
			break
		}
		p.pending = slices.Delete(p.pending, 0, 1)
		if !e.universe.Contains(it.Ordinal) {
			continue
		}
		p.from.add(s, it)
		clear(memo)
		if delta := p.judge(s, it.Ordinal, s.live.evalAt(e, it.Ordinal, it.Due, memo)); delta != 0 {
			if n := len(s.pub.steps); n > 0 && s.pub.steps[n-1].due == it.Due {
				s.pub.steps[n-1].delta += delta
			} else {
				s.pub.steps = append(s.pub.steps, dueStep{it.Due, delta})
			}
		}
		again := never
		for _, l := range s.timed {
			again = min(again, l.due(l.state.get(it.Ordinal), it.Due))
		}
		if again < bound {
			pend(wheel.Item{Due: again, Ordinal: it.Ordinal})
		}
	}
	return entries
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
