package engine

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// What is read back was written by [Frozen.Write]; these checks keep a damaged
// file from making an engine that goes wrong later.

// check holds the numbers of a catalog against each other.
func (c *catalog) check() error {
	if c.NowMs < 0 {
		return fmt.Errorf("%w: the time is %d", ErrFormat, c.NowMs)
	}
	ids := map[uint32]bool{0: true}
	take := func(id uint32) error {
		if ids[id] || id >= c.NextID {
			return fmt.Errorf("%w: number %d is given twice or not at all", ErrFormat, id)
		}
		ids[id] = true
		return nil
	}
	for _, x := range c.States {
		if err := take(x.ID); err != nil {
			return err
		}
	}
	for _, x := range c.Leaves {
		if err := take(x.ID); err != nil {
			return err
		}
	}
	names := map[string]bool{}
	for _, x := range c.Segments {
		if names[x.ID] || len(x.Live)+len(x.Next) == 0 {
			return fmt.Errorf("%w: segment %q is there twice or has no definition", ErrFormat, x.ID)
		}
		names[x.ID] = true
	}
	return nil
}

// checkLeaf refuses conditions that cannot be leaves.
func checkLeaf(n *segment.Node) error {
	if n.Kind == segment.KindGroup || n.Kind == segment.KindSegment || n.Negated() {
		return fmt.Errorf("%w: %s is no leaf", ErrFormat, n.Canonical())
	}
	return nil
}

// checkState reports whether the state, which may be nil, serves the leaf.
func (l *leaf) checkState(st *state) error {
	ok := false
	switch {
	case l.node.Kind == segment.KindActivity:
		a := l.node.Activity
		ok = st != nil && st.source != nil && st.source.key == sourceKey(a) && st.spec.Covers(fold.SpecOf(a)) && (st.live || !l.ready)
	case timedAttribute(l.node):
		ok = st != nil && st.source == nil && len(st.leaves) == 0
	default:
		ok = st == nil
	}
	if !ok {
		return fmt.Errorf("%w: its state does not serve it", ErrFormat)
	}
	return nil
}

// parseRefs parses the definition of a segment; all it refers to must be there.
func (e *Engine) parseRefs(text []byte) (*segment.Node, error) {
	root, err := segment.Parse(text, segment.Stored())
	if err != nil {
		return nil, err
	}
	for _, id := range root.SegmentIDs() {
		if e.segments[id] == nil {
			return nil, fmt.Errorf("%w: there is no segment %q", ErrFormat, id)
		}
	}
	return root, nil
}

// checkRestored refuses what no engine comes to: something without users, a live
// definition that cannot be judged, segments that lead back to themselves.
func (e *Engine) checkRestored() error {
	for _, l := range e.byID {
		if l.uses == 0 {
			return fmt.Errorf("%w: nobody uses leaf %d", ErrFormat, l.id)
		}
	}
	for _, st := range e.states {
		if len(st.leaves) == 0 {
			return fmt.Errorf("%w: nobody uses state %d", ErrFormat, st.id)
		}
	}
	// Those that are known not to lead back to themselves grow layer by layer.
	sound := map[*seg]bool{}
	for again := true; again; {
		again = false
		for _, s := range e.segments {
			if sound[s] || slices.ContainsFunc(s.refsOf(), func(r *seg) bool { return !sound[r] }) {
				continue
			}
			sound[s], again = true, true
		}
	}
	for id, s := range e.segments {
		switch {
		case !sound[s]:
			return fmt.Errorf("%w: segment %q leads back to itself", ErrFormat, id)
		case s.live == nil:
			continue
		case slices.ContainsFunc(s.live.leaves, func(l *leaf) bool { return !l.ready }):
			return fmt.Errorf("%w: segment %q is live and not built", ErrFormat, id)
		case slices.ContainsFunc(s.live.refs, func(r *seg) bool { return r.live == nil }):
			return fmt.Errorf("%w: segment %q is live and refers to one that is not", ErrFormat, id)
		}
	}
	return nil
}
