package engine

import (
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// state is what is kept for the leaves that ask the same of the same events.
type state struct {
	id     uint32
	spec   fold.Spec
	source *source // nil for timed attributes
	fold   fold.Fold
	leaves []*leaf
	steps  *steps // nil until it is asked for after a leaf came or went
	// property is what is aggregated; nil for counts.
	property *lookup

	// Its values are in this slot of the group's rows.
	group *group
	slot  uint8

	// A state that was registered when history had events for it is
	// complete when that was loaded: live. since is the offset of the record
	// that registered it, cursor the first ordinal that was not loaded.
	live   bool
	since  int64
	cursor uint32
	// upTo is how many profiles there were at since, for the progress.
	upTo uint32
}

// get returns the value of an ordinal, nil when there is none. It points into
// the group and is valid until the next change.
func (st *state) get(o uint32) []byte { return st.group.get(o, st.slot) }

// values is how many ordinals have one.
func (st *state) values() int { return st.group.counts[st.slot] }

// mutate lets fn change the value of an ordinal: nil stands for none. fn is
// handed what it may change, grow and return, as with append.
func (st *state) mutate(ed *rowEdit, o uint32, fn func(v []byte) []byte) {
	ed.begin(st.group, o)
	if old, big := ed.take(st.slot); big != nil {
		ed.putBig(st.slot, big, fn(big.b))
	} else {
		ed.put(st.slot, old, fn(ed.room(old)), true)
	}
	ed.finish()
}

// remove removes the value of an ordinal, if there is one.
func (st *state) remove(ed *rowEdit, o uint32) {
	ed.begin(st.group, o)
	if old, big := ed.take(st.slot); big != nil {
		ed.putBig(st.slot, big, nil)
	} else if old != nil {
		ed.put(st.slot, old, nil, true)
	}
	ed.finish()
}

// each calls fn for the values from an ordinal on, in order, until fn returns
// false. Nothing must change meanwhile.
func (st *state) each(from uint32, fn func(o uint32, v []byte) bool) {
	st.group.eachRow(from, func(o uint32, row []byte) bool {
		v, ok := section(row, st.slot)
		if ok && len(v) == 0 {
			v = st.group.big[bigOf(st.slot, o)].b
		}
		return !ok || fn(o, v)
	})
}

// source is the events of one type that pass the filters.
type source struct {
	key    string
	event  string
	where  []segment.Predicate
	timed  bool
	states []*state
	// lookups are those of the filters.
	lookups []*lookup

	asked uint64 // the event that was last held against the filters
	held  bool   // what came of it
}

// kin are the states of one type of events, or of timed attributes: one event,
// or one change of a profile, touches them together.
type kin struct {
	sources []*source
	groups  []*group
	// dispatch is nil until it is asked for after a state came or went.
	dispatch *dispatch
}

// seat gives a state a place for its values.
func (k *kin) seat(st *state) {
	k.dispatch = nil
	for _, g := range k.groups {
		if g.join(st) {
			return
		}
	}
	g := &group{}
	g.join(st)
	k.groups = append(k.groups, g)
}
