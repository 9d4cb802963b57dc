package engine

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

// compile finds or makes the leaves of a definition and counts their use.
func (e *Engine) compile(root *segment.Node, since int64, seen func(eventType string) bool) *program {
	p := &program{root: root, wide: root.IncludeAnonymous}
	p.tree = e.compileNode(p, root, since, seen)
	for _, l := range p.leaves {
		l.uses++
	}
	return p
}

func (e *Engine) compileNode(p *program, n *segment.Node, since int64, seen func(string) bool) node {
	switch n.Kind {
	case segment.KindGroup:
		out := node{any: n.Match == segment.MatchAny}
		for _, c := range n.Conditions {
			out.kids = append(out.kids, e.compileNode(p, c, since, seen))
		}
		return out
	case segment.KindSegment:
		s := e.segments[n.Segment.SegmentID]
		if !slices.Contains(p.refs, s) {
			p.refs = append(p.refs, s)
		}
		return node{ref: s, negate: n.Negated()}
	}
	l := e.leaf(n, since, seen)
	if !slices.Contains(p.leaves, l) {
		p.leaves = append(p.leaves, l)
	}
	return node{leaf: l, negate: n.Negated()}
}

// Define makes a definition the newest of a segment, whose references must be
// defined. since is the offset of the record that does so; seen reports whether
// history has events of a type. The definition is live at once or is built.
func (e *Engine) Define(id string, root *segment.Node, since int64, seen func(eventType string) bool) {
	s := e.segments[id]
	if s == nil {
		s = &seg{id: id, pending: roaring.New()}
		e.segments[id] = s
	}
	// What is shared with the definition it replaces must not go meanwhile.
	old := s.next
	s.next = e.compile(root, since, seen)
	if old != nil {
		e.release(old)
	}
	e.arrange()
	e.promote()
}

// Undefine removes a segment that no other refers to. It says nothing of its
// members: they did not leave, the segment did.
func (e *Engine) Undefine(id string) {
	s := e.segments[id]
	if s == nil {
		return
	}
	delete(e.segments, id)
	for _, p := range []*program{s.live, s.next} {
		if p != nil {
			e.release(p)
		}
	}
	e.arrange()
}

// promote makes every definition live that is built, those first to which
// others refer.
func (e *Engine) promote() {
	// While the engine lags, answers are those of an instant that is over. What
	// is ready waits until they are up to date: Continue comes back here.
	for again := !e.Lagging(); again; {
		again = false
		for _, s := range e.byRank {
			if s.next != nil && s.ready() {
				e.promoteOne(s)
				again = true
				break // the order may be another now
			}
		}
	}
}

// promoteOne switches a segment to its newest definition: membership changes
// at once, for the segments that refer to it too. The transitions are pending.
func (e *Engine) promoteOne(s *seg) {
	old := s.live
	s.live, s.next = s.next, nil
	if old != nil {
		e.release(old)
	}
	e.arrange()
	affected := map[*seg]bool{s: true}
	for _, x := range e.byRank {
		for _, r := range x.refsOf() {
			if affected[r] {
				affected[x] = true
			}
		}
		if !affected[x] || x.live == nil {
			continue
		}
		members := x.live.all(e.universe, e.anonymous)
		if x.members == nil {
			x.members = roaring.New()
		}
		x.pending.Xor(roaring.Xor(x.members, members))
		x.pendingMs = e.now
		x.members = members
		e.hasPending = e.hasPending || !x.pending.IsEmpty()
	}
}

// announce emits a profile's pending transition.
func (e *Engine) announce(s *seg, o uint32) {
	if s.pending.IsEmpty() || !s.pending.Contains(o) {
		return
	}
	s.pending.Remove(o)
	e.emitPending(s, o)
}

func (e *Engine) emitPending(s *seg, o uint32) {
	e.out = append(e.out, Transition{s.id, o, s.members.Contains(o), segment.CauseDefinition, s.pendingMs})
}

// announceSome emits pending transitions, the segments in order of their ids.
func (e *Engine) announceSome(budget int) {
	if !e.hasPending {
		return
	}
	for _, id := range e.sortedIDs() {
		s := e.segments[id]
		if s.pending.IsEmpty() {
			continue
		}
		if budget <= 0 {
			return
		}
		first, o := s.pending.Minimum(), uint32(0)
		it := s.pending.Iterator()
		for ; it.HasNext() && budget > 0; budget-- {
			o = it.Next()
			e.emitPending(s, o)
		}
		more := it.HasNext()
		if s.pending.RemoveRange(uint64(first), uint64(o)+1); more {
			return
		}
	}
	e.hasPending = false
}

// arrange makes the lists again that follow from the definitions.
func (e *Engine) arrange() {
	e.looks, e.pub.fresh = 0, false
	e.every = e.types[segment.AnyEvent]
	e.profile, e.timed, e.byState, e.byRank, e.first = nil, nil, nil, nil, nil
	for _, l := range e.byID {
		l.segs = l.segs[:0]
		if l.node.Kind != segment.KindActivity {
			e.profile = append(e.profile, l)
			e.looks |= l.fields
		}
		if l.timed() {
			e.timed = append(e.timed, l)
		}
	}
	byLeaf := func(a, b *leaf) int { return cmp.Compare(a.id, b.id) }
	slices.SortFunc(e.profile, byLeaf)
	slices.SortFunc(e.timed, byLeaf)
	for _, st := range e.states {
		e.byState = append(e.byState, st)
	}
	slices.SortFunc(e.byState, func(a, b *state) int { return cmp.Compare(a.id, b.id) })

	for _, s := range e.segments {
		s.rank, s.users = 0, s.users[:0]
	}
	ids := e.sortedIDs()
	for _, id := range ids {
		e.segments[id].setRank()
		e.byRank = append(e.byRank, e.segments[id])
	}
	sortByRank(e.byRank)
	e.building = false
	for _, s := range e.byRank {
		e.building = e.building || s.next != nil
		s.current, s.first = s.live != nil && s.next == nil, false
		if s.live == nil {
			continue
		}
		for _, l := range s.live.leaves {
			l.segs = append(l.segs, s)
		}
		s.timed = nil
		for _, l := range s.live.leaves {
			if l.timed() {
				s.timed = append(s.timed, l)
			}
		}
		for _, r := range s.live.refs {
			r.users = append(r.users, s)
			s.current = s.current && r.current
			s.first = s.first || r.first
			for _, l := range r.timed {
				if !slices.Contains(s.timed, l) {
					s.timed = append(s.timed, l)
				}
			}
		}
		s.blank = s.live.tree.blank()
		if s.first = s.first || s.blank; s.first {
			e.first = append(e.first, s)
		}
	}
}

func (e *Engine) sortedIDs() []string {
	ids := make([]string, 0, len(e.segments))
	for id := range e.segments {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
