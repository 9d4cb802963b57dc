package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
	"github.com/musterhq/muster/segment/engine/internal/wheel"
)

// leaf finds the leaf of a condition or makes it.
func (e *Engine) leaf(n *segment.Node, since int64, seen func(eventType string) bool) *leaf {
	key := n.Key()
	if l := e.leaves[key]; l != nil {
		return l
	}
	l := newLeaf(e.takeID(), key, positive(n))
	e.leaves[key], e.byID[l.id] = l, l
	switch n.Kind {
	case segment.KindActivity:
		e.findState(l, since, seen)
	default:
		l.seen = roaring.New()
		if timedAttribute(n) {
			spansOnly := fold.Spec{Kind: fold.KindSpans}
			st := &state{id: e.takeID(), spec: spansOnly, fold: spansOnly.New(), live: true, since: since}
			e.states[st.id] = st
			e.spans.seat(st)
			e.attach(l, st, n.Attribute.Predicate.WindowMs)
		}
		l.ready = e.universe.IsEmpty()
	}
	if l.ready {
		l.finish()
	}
	return l
}

// positive is the leaf without its negation.
func positive(n *segment.Node) *segment.Node {
	c := *n
	switch n.Kind {
	case segment.KindActivity:
		a := *n.Activity
		a.Did = true
		c.Activity = &a
	case segment.KindList:
		c.List = &segment.List{ListID: n.List.ListID, Member: true}
	}
	return &c
}

func (l *leaf) finish() {
	l.ready, l.seen = true, nil
}

// findState gives the leaf a state that covers what it asks, or a new one.
func (e *Engine) findState(l *leaf, since int64, seen func(string) bool) {
	a := l.node.Activity
	src := e.source(a)
	want := fold.SpecOf(a)
	for _, st := range src.states {
		if st.spec.Covers(want) {
			e.attach(l, st, a.WindowMs)
			l.ready = st.values() == 0 && st.live
			return
		}
	}
	st := e.newState(e.takeID(), src, want, since)
	e.types[src.event].seat(st)
	st.live = !seen(a.Event)
	if !e.universe.IsEmpty() {
		st.upTo = e.universe.Maximum() + 1
	}
	e.attach(l, st, a.WindowMs)
	// Every value that comes in is judged as it comes.
	l.cursor = ^uint32(0)
	l.ready = st.live
	e.takeOver(st)
}

// ShareWindows has conditions that count the same events in windows of different lengths
// share one state, which reaches as far as the longest: those that there are, and from here
// on those to come. Without it a longer window that comes later has a state of its own.
func (e *Engine) ShareWindows() {
	if e.shares {
		return
	}
	e.shares = true
	moved := false
	for _, st := range e.byState {
		moved = e.states[st.id] == st && e.takeOver(st) || moved
	}
	if moved {
		e.arrange()
	}
}

// takeOver gives a state that is live the leaves of others that it can do for, or another
// its leaves, and reports whether there were some. [Engine.arrange] must follow then.
func (e *Engine) takeOver(st *state) (moved bool) {
	if !e.shares || !st.live || st.source == nil {
		return false
	}
	for _, other := range st.source.states {
		if other != st && other.live && other.spec.Covers(st.spec) {
			return e.takeOver(other)
		}
	}
	for _, other := range slices.Clone(st.source.states) {
		if other == st || !other.live || !st.spec.Covers(other.spec) || st.values() == 0 && other.values() > 0 {
			continue
		}
		for _, l := range other.leaves {
			l.state = st
		}
		st.leaves, st.steps = append(st.leaves, other.leaves...), nil
		e.drop(other)
		moved = true
	}
	slices.SortFunc(st.leaves, func(a, b *leaf) int { return cmp.Compare(a.id, b.id) })
	return moved
}

// newState makes a state that has no place for its values yet.
func (e *Engine) newState(id uint32, src *source, s fold.Spec, since int64) *state {
	st := &state{id: id, spec: s, source: src, fold: s.New(), since: since}
	if path := s.Path(); path != nil {
		st.property = e.lookup(path)
	}
	e.states[id] = st
	src.states = append(src.states, st)
	return st
}

func (e *Engine) attach(l *leaf, st *state, windowMs int64) {
	l.state = st
	st.leaves, st.steps = append(st.leaves, l), nil
	l.wheel = wheel.New(windowMs, e.now)
	if windowMs == 0 { // only the filters depend on the instant
		l.wheel = wheel.New(86_400_000, e.now)
	}
}

// source finds the source of an activity or makes it.
func (e *Engine) source(a *segment.Activity) *source {
	key := sourceKey(a)
	if s := e.sources[key]; s != nil {
		return s
	}
	s := &source{key: key, event: a.Event, where: a.Where, timed: fold.Timed(a.Where)}
	for i := range s.where {
		s.lookups = append(s.lookups, e.lookup(s.where[i].Path))
	}
	e.sources[key] = s
	k := e.types[a.Event]
	if k == nil {
		k = &kin{}
		e.types[a.Event] = k
	}
	k.sources = append(k.sources, s)
	return s
}

func (e *Engine) takeID() uint32 {
	id := e.nextID
	e.nextID++
	return id
}

// release gives back the leaves of a definition and frees what no definition uses.
func (e *Engine) release(p *program) {
	for _, l := range p.leaves {
		if l.uses--; l.uses > 0 {
			continue
		}
		delete(e.leaves, l.key)
		delete(e.byID, l.id)
		if l.inHeap >= 0 {
			l.wheel = wheel.New(l.WindowMs, e.now)
			e.refit(l)
		}
		if l.state != nil {
			e.detach(l)
		}
	}
}

func (e *Engine) detach(l *leaf) {
	st := l.state
	without := func(list []*leaf) []*leaf { return slices.DeleteFunc(list, func(x *leaf) bool { return x == l }) }
	st.steps = nil
	if st.leaves = without(st.leaves); len(st.leaves) == 0 {
		e.drop(st)
	}
}

// drop removes a state that has no leaves any more.
func (e *Engine) drop(st *state) {
	delete(e.states, st.id)
	src := st.source
	if src == nil {
		e.unseat(e.spans, st)
		return
	}
	k := e.types[src.event]
	e.unseat(k, st)
	if src.states = slices.DeleteFunc(src.states, func(x *state) bool { return x == st }); len(src.states) > 0 {
		return
	}
	delete(e.sources, src.key)
	e.tidyLookups()
	k.sources = slices.DeleteFunc(k.sources, func(x *source) bool { return x == src })
	if len(k.sources) == 0 {
		delete(e.types, src.event)
	}
}

// unseat takes a state from its rows. A group that has none left goes at once;
// in others the values are dropped bit by bit ([Engine.clean]).
func (e *Engine) unseat(k *kin, st *state) {
	k.dispatch = nil
	g := st.group
	had := g.retired != 0
	g.retire(st.slot)
	if len(g.live) == 0 {
		k.groups = slices.DeleteFunc(k.groups, func(x *group) bool { return x == g })
	} else if g.retired != 0 && !had {
		e.stale = append(e.stale, g)
	}
}

// tidyLookups drops the paths that no condition uses.
func (e *Engine) tidyLookups() {
	clear(e.lookups)
	keep := func(l *lookup) { e.lookups[strings.Join(l.path, ".")] = l }
	for _, st := range e.states {
		if st.property != nil {
			keep(st.property)
		}
	}
	for _, s := range e.sources {
		for _, l := range s.lookups {
			keep(l)
		}
	}
}

// lookup is the one of a path; all who ask for the path share it.
func (e *Engine) lookup(path []string) *lookup {
	key := strings.Join(path, ".")
	l := e.lookups[key]
	if l == nil {
		l = &lookup{path: path}
		e.lookups[key] = l
	}
	return l
}
