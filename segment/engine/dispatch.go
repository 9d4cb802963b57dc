package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
	"github.com/musterhq/muster/segment/engine/internal/sieve"
)

// worthwhile is how many conditions are looked at one by one at most: what finds a few of
// them costs as much. Tests lower it.
var worthwhile = 8

// dispatch finds the states of one type of events that an event may concern, in order of
// their places. It is rebuilt when states come or go.
type dispatch struct {
	always []placed // whose filters say nothing that could be looked up
	texts  []textFilter
	few    []placed // scratch
}

// placed is a state with the number of its place among the groups.
type placed struct {
	st *state
	at int
}

// textFilter is the states whose filters ask for texts behind a path.
type textFilter struct {
	path   *lookup
	states sieve.Texts[placed]
}

// asksText is the first filter that asks for a text, -1 when none does.
func (s *source) asksText() int {
	return slices.IndexFunc(s.where, func(p segment.Predicate) bool { return sieve.Takes(&p) })
}

func newDispatch(groups []*group) *dispatch {
	asking := map[*lookup]int{}
	each := func(fn func(p placed, filter int)) {
		for i, g := range groups {
			for _, st := range g.live {
				fn(placed{st, i*groupSlots + int(st.slot)}, st.source.asksText())
			}
		}
	}
	each(func(p placed, filter int) {
		if filter >= 0 {
			asking[p.st.source.lookups[filter]]++
		}
	})
	d := &dispatch{}
	each(func(p placed, filter int) {
		if filter < 0 || asking[p.st.source.lookups[filter]] <= worthwhile {
			d.always = append(d.always, p)
			return
		}
		path := p.st.source.lookups[filter]
		i := slices.IndexFunc(d.texts, func(x textFilter) bool { return x.path == path })
		if i < 0 {
			i, d.texts = len(d.texts), append(d.texts, textFilter{path: path})
		}
		d.texts[i].states.Add(&p.st.source.where[filter], p)
	})
	return d
}

// concerned lists the states beside those of always that the event may concern.
func (d *dispatch) concerned(properties []byte, event uint64) []placed {
	d.few = d.few[:0]
	for i := range d.texts {
		x := &d.texts[i]
		d.few = append(d.few, x.states.Find(x.path.in(properties, event))...)
	}
	slices.SortFunc(d.few, func(a, b placed) int { return a.at - b.at })
	return d.few
}

// steps finds the leaves of a state whose answer may differ between two values of it.
type steps struct {
	number  sieve.Steps[*leaf] // leaves that compare the state's number
	windows []windows          // leaves that want so many events within a window
	rest    []*leaf            // the others
	found   []*leaf            // scratch
}

// windows has the leaves that want n events, by their windows.
type windows struct {
	n      int
	leaves sieve.Steps[*leaf]
}

// asked are the leaves of a state whose answer may differ between two values of it, or
// which may have something due before they had: those whose constants lie between, which
// never have anything due, and the rest.
func (st *state) asked(old, v []byte, nowMs int64) (passed, rest []*leaf) {
	switch {
	case len(st.leaves) <= worthwhile || st.steps == nil && !st.arrange():
		return nil, st.leaves
	case st.spec.Kind == fold.KindTimes:
		return nil, st.steps.reached(old, v, nowMs)
	case len(old) == 0 || len(v) == 0:
		return nil, st.leaves
	}
	return st.steps.number.Find(fold.Number(st.spec.Kind, old), fold.Number(st.spec.Kind, v)), st.steps.rest
}

// reached are the leaves whose windows reach back as far as the n-th newest event now, and
// did not before the value became v, and the rest. Of no other does an answer change when
// events come, and what is due comes later.
func (s *steps) reached(old, v []byte, nowMs int64) []*leaf {
	s.found = append(s.found[:0], s.rest...)
	for i := range s.windows {
		w := &s.windows[i]
		if was, is := fold.Ago(old, w.n, nowMs), fold.Ago(v, w.n, nowMs); was != is {
			s.found = append(s.found, w.leaves.Find(int128.From(is), int128.From(was))...)
		}
	}
	return s.found
}

// arrange puts the leaves in order, where the state keeps a number or times and all of them
// are ready.
func (st *state) arrange() bool {
	times := st.spec.Kind == fold.KindTimes
	if !times && !st.spec.Kind.HasNumber() || slices.ContainsFunc(st.leaves, func(l *leaf) bool { return !l.ready }) {
		return false
	}
	st.steps = &steps{}
	for _, l := range st.leaves {
		if times {
			st.steps.addWindow(l)
		} else {
			st.steps.addNumber(l)
		}
	}
	return true
}

func (s *steps) addNumber(l *leaf) {
	c := l.Count
	if c == nil && l.Aggregate.Fn == segment.FnSum {
		c = &l.Aggregate.Compare
	}
	if c == nil {
		s.rest = append(s.rest, l)
		return
	}
	for _, at := range c.Micros {
		s.number.Add(at, l)
	}
}

func (s *steps) addWindow(l *leaf) {
	n, ok := l.AtLeast()
	if !ok {
		s.rest = append(s.rest, l)
		return
	}
	i := slices.IndexFunc(s.windows, func(w windows) bool { return w.n == n })
	if i < 0 {
		i, s.windows = len(s.windows), append(s.windows, windows{n: n})
	}
	s.windows[i].leaves.Add(int128.From(l.WindowMs), l)
}
