package engine

import (
	"slices"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
	"github.com/musterhq/muster/segment/engine/internal/sieve"
)

// worthwhile is how many conditions are looked at one by one at most: what finds a few of
// them costs as much. Tests lower it.
var worthwhile = 8

// dispatch finds the states of one type of events that an event may concern, in order of
// their places. It is made anew when states come or go.
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

// asked are the leaves of a state whose answer may differ between two values of it: those
// whose constants lie between, and the rest.
func (st *state) asked(old, v []byte) (passed, rest []*leaf) {
	if len(st.leaves) <= worthwhile || len(old) == 0 || len(v) == 0 || st.steps == nil && !st.arrange() {
		return nil, st.leaves
	}
	return st.steps.Find(fold.Number(st.spec.Kind, old), fold.Number(st.spec.Kind, v)), st.rest
}

// arrange puts the leaves in order of their constants, where the state keeps a number and
// all of them are ready.
func (st *state) arrange() bool {
	if !st.spec.Kind.HasNumber() || slices.ContainsFunc(st.leaves, func(l *leaf) bool { return !l.ready }) {
		return false
	}
	st.steps, st.rest = &sieve.Steps[*leaf]{}, nil
	for _, l := range st.leaves {
		c := l.Count
		if c == nil && l.Aggregate.Fn == segment.FnSum {
			c = &l.Aggregate.Compare
		}
		if c == nil {
			st.rest = append(st.rest, l)
			continue
		}
		for _, at := range c.Micros {
			st.steps.Add(at, l)
		}
	}
	return true
}
