package engine

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

// seg is a segment: the definition that is live and, while it is built, the
// one that will be.
type seg struct {
	id      string
	live    *program        // nil until the first definition is built
	members *roaring.Bitmap // of the live definition, as of the engine's time
	next    *program        // being built; nil when the newest is live
	// pending are profiles whose transition by a change of definition is not
	// emitted yet.
	pending *roaring.Bitmap
	// pendingMs is when the definition changed, in Unix milliseconds.
	pendingMs int64

	rank   int // after the segments it refers to
	users  []*seg
	marked bool
	timed  []*leaf // on which membership depends, through references too
	blank  bool    // a profile of whom nothing is known is a member
	// first says that a new profile must be judged even if nothing is known of
	// it: the segment, or one it depends on, is blank.
	first bool
	// current says that the newest definition is live, and those of all it
	// refers to.
	current bool
	pub     publishedSeg
}

// program is a definition whose leaves are found.
type program struct {
	root *segment.Node
	// wide: anonymous profiles may be members.
	wide   bool
	tree   node
	leaves []*leaf // each once
	refs   []*seg  // each once
}

// node is a group, a leaf or a reference.
type node struct {
	any    bool
	kids   []node
	leaf   *leaf
	ref    *seg
	negate bool
}

// eval judges a profile as of the engine's time.
func (p *program) eval(anonymous *roaring.Bitmap, o uint32) bool {
	return (p.wide || !anonymous.Contains(o)) && p.tree.eval(o)
}

// all finds every member as of the engine's time. The answer is the caller's.
func (p *program) all(universe, anonymous *roaring.Bitmap) *roaring.Bitmap {
	m := p.tree.all(universe)
	if !p.wide {
		m.AndNot(anonymous)
	}
	return m
}

func (n *node) eval(o uint32) bool {
	switch {
	case n.leaf != nil:
		return n.leaf.bit(o) != n.negate
	case n.ref != nil:
		return n.ref.members.Contains(o) != n.negate
	}
	for i := range n.kids {
		if n.kids[i].eval(o) == n.any {
			return n.any
		}
	}
	return !n.any
}

// blank reports whether a profile of whom nothing is known is a member.
func (n *node) blank() bool {
	switch {
	case n.leaf != nil:
		return n.leaf.base != n.negate
	case n.ref != nil:
		return n.ref.blank != n.negate
	}
	for i := range n.kids {
		if n.kids[i].blank() == n.any {
			return n.any
		}
	}
	return !n.any
}

// all finds every member as of the engine's time. The answer is the caller's.
func (n *node) all(universe *roaring.Bitmap) *roaring.Bitmap {
	var m *roaring.Bitmap
	switch {
	case n.leaf != nil:
		if n.leaf.base == n.negate {
			return roaring.And(universe, n.leaf.diff)
		}
		return roaring.AndNot(universe, n.leaf.diff)
	case n.ref != nil:
		if n.negate {
			return roaring.AndNot(universe, n.ref.members)
		}
		return n.ref.members.Clone()
	}
	for i := range n.kids {
		k := n.kids[i].all(universe)
		switch {
		case m == nil:
			m = k
		case n.any:
			m.Or(k)
		default:
			m.And(k)
		}
	}
	return m
}

// evalAt judges a profile at t.
func (p *program) evalAt(anonymous *roaring.Bitmap, o uint32, t int64, judged map[*seg]bool) bool {
	return (p.wide || !anonymous.Contains(o)) && p.tree.evalAt(anonymous, o, t, judged)
}

func (n *node) evalAt(anonymous *roaring.Bitmap, o uint32, t int64, judged map[*seg]bool) bool {
	switch {
	case n.leaf != nil:
		if !n.leaf.timed() {
			return n.leaf.bit(o) != n.negate
		}
		return n.leaf.holds(n.leaf.state.get(o), t) != n.negate
	case n.ref != nil:
		is, known := judged[n.ref]
		if !known {
			is = n.ref.live.evalAt(anonymous, o, t, judged)
			judged[n.ref] = is
		}
		return is != n.negate
	}
	for i := range n.kids {
		if n.kids[i].evalAt(anonymous, o, t, judged) == n.any {
			return n.any
		}
	}
	return !n.any
}

// memo is where a read notes how segments referred to are judged, so that each
// is once, however many ways lead there; nil when there are none.
func (s *seg) memo() map[*seg]bool {
	if len(s.live.refs) == 0 {
		return nil
	}
	return map[*seg]bool{}
}

// ready reports whether the segment's newest definition can become live. It
// cannot while a segment it refers to still leads back to it by a definition
// that is about to be replaced.
func (s *seg) ready() bool {
	for _, l := range s.next.leaves {
		if !l.ready {
			return false
		}
	}
	for _, r := range s.next.refs {
		if r.live == nil || r.leadsTo(s, map[*seg]bool{}) {
			return false
		}
	}
	return true
}

func (s *seg) leadsTo(to *seg, met map[*seg]bool) bool {
	if s == to {
		return true
	}
	if met[s] {
		return false
	}
	met[s] = true
	return slices.ContainsFunc(s.refsOf(), func(r *seg) bool { return r.leadsTo(to, met) })
}

func (s *seg) refsOf() []*seg {
	if s.live == nil {
		return nil
	}
	return s.live.refs
}

// setRank puts the segment behind those it refers to.
func (s *seg) setRank() int {
	if s.rank == 0 {
		r := 1
		for _, ref := range s.refsOf() {
			r = max(r, ref.setRank()+1)
		}
		s.rank = r
	}
	return s.rank
}

func sortByRank(list []*seg) {
	slices.SortFunc(list, func(a, b *seg) int {
		if a.rank != b.rank {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Compare(a.id, b.id)
	})
}
