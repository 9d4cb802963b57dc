package engine

import (
	"container/heap"
	"slices"

	"github.com/musterhq/muster/segment/engine/internal/wheel"
)

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
		if !s.current {
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

// lookAhead works out steps and bound of a segment from the first entries of the
// wheels of its leaves. The bound is the instant of the first entry that was not
// taken in, so it is worked out again before nothing but time has passed it. It
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
	pend := func(it wheel.Item) (more bool) {
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
		if delta := p.judge(s, it.Ordinal, s.live.evalAt(e.anonymous, it.Ordinal, it.Due, memo)); delta != 0 {
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
