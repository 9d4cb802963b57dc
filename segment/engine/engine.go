package engine

import (
	"bytes"
	"container/heap"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// Transition says that a profile entered or left a segment.
type Transition struct {
	Segment string
	Ordinal uint32
	Entered bool
	Cause   segment.Cause
	AtMs    int64
}

// Engine is the segments of one account. One goroutine changes it; the methods
// that only read (see read.go) may run in several while none changes it.
type Engine struct {
	now  int64 // the engine's time: everything is judged as of it
	done int64 // everything due up to here is worked off; now unless it lags
	// caught holds the profiles that were brought up to a later instant than
	// done because something happened to them while the engine lags.
	caught map[uint32]int64

	universe *roaring.Bitmap // profiles that are not merged into another
	// anonymous are those of the universe of which nothing says who they are. They are
	// members of segments alone that include them.
	anonymous *roaring.Bitmap
	inputs
	states   map[uint32]*state
	leaves   map[string]*leaf
	byID     map[uint32]*leaf
	segments map[string]*seg
	nextID   uint32
	timers   timers

	derived

	building   bool // some segment has a definition that is not live
	hasPending bool // some transitions are pending

	out []Transition // since the last [Engine.Transitions]
	atHand
	swept sweeper
	pub   publisher
	stale []*group // with values of states that are gone
}

// inputs are what the leaves and states read, found by what happens.
type inputs struct {
	types   map[string]*kin // by type of events
	every   *kin            // of events of all types but the service's own; nil for none
	spans   *kin            // of timed attributes
	sources map[string]*source
	lookups map[string]*lookup // by path
	shares  bool               // see [Engine.ShareWindows]
}

// derived is rebuilt whenever definitions change.
type derived struct {
	profile []*leaf  // leaves on attributes, consents and lists, by number
	looks   Fields   // what these look at
	timed   []*leaf  // leaves whose answer changes by time alone, by number
	byState []*state // by number
	byRank  []*seg   // those after which others follow first
	first   []*seg   // those that are judged for every new profile
}

// atHand is of the profile at hand: the segments that are to be judged, and why.
type atHand struct {
	marked  []*seg
	causes  causes
	scratch fold.Occurrence
	edit    rowEdit
	events  uint64 // since the start, to number them
}

// causes are the kinds of change that flipped an answer of the profile at hand.
type causes uint8

func (c *causes) add(x segment.Cause) { *c |= 1 << x }

// pick names one cause where there are several.
func (c causes) pick() segment.Cause {
	for _, x := range [...]segment.Cause{segment.CauseMerge, segment.CauseEvent, segment.CauseProfile, segment.CauseExpiry} {
		if c>>x&1 == 1 {
			return x
		}
	}
	return segment.CauseDefinition
}

// New returns an engine without segments.
func New() *Engine {
	return &Engine{
		caught:    map[uint32]int64{},
		universe:  roaring.New(),
		anonymous: roaring.New(),
		inputs: inputs{
			types:   map[string]*kin{},
			spans:   &kin{},
			sources: map[string]*source{},
			lookups: map[string]*lookup{},
		},
		states:   map[uint32]*state{},
		leaves:   map[string]*leaf{},
		byID:     map[uint32]*leaf{},
		segments: map[string]*seg{},
		nextID:   1,
	}
}

// Transitions returns the entries and exits since the last call, in order. They
// are valid until the engine is changed again.
func (e *Engine) Transitions() []Transition {
	out := e.out
	e.out = e.out[:0]
	return out
}

// Touch must be called for each profile of a change before any other call about it.
// It brings the profile up to the engine's time.
func (e *Engine) Touch(o uint32) {
	e.pub.touched(o)
	if e.done < e.now {
		e.catchUp(o)
	}
}

// Create adds a new profile. [Engine.Profile] and [Engine.Evaluate] follow.
func (e *Engine) Create(o uint32) {
	e.universe.Add(o)
	for _, s := range e.first {
		e.mark(s)
	}
	e.causes.add(segment.CauseProfile)
}

// SetAnonymous reports whether nothing says who a profile is, which is false of a new one.
// [Engine.Evaluate] follows.
func (e *Engine) SetAnonymous(o uint32, is bool) {
	if e.anonymous.Contains(o) == is {
		return
	}
	put(e.anonymous, o, is)
	e.causes.add(segment.CauseProfile)
	for _, s := range e.byRank {
		if s.live != nil && !s.live.wide {
			e.mark(s)
		}
	}
}

// Profile takes in that some fields of a profile have changed, and what all of them
// are now.
func (e *Engine) Profile(o uint32, f *segment.Facts, changed Fields) {
	for _, l := range e.profile {
		if l.fields&changed == 0 {
			continue
		}
		if l.state != nil {
			e.respan(l, o, f)
			continue
		}
		holds := f.Holds(l.node, e.now)
		if !l.ready {
			l.seen.Add(o)
			l.set(o, holds)
		} else if holds != l.bit(o) {
			e.flip(l, o, holds, segment.CauseProfile)
		}
	}
}

// respan replaces the spans of a timed attribute.
func (e *Engine) respan(l *leaf, o uint32, f *segment.Facts) {
	if !l.ready {
		l.seen.Add(o)
	}
	v := spansOf(l.node, f, e.now)
	e.change(l.state, o, segment.CauseProfile, func([]byte) []byte { return v })
}

// spansOf is the value of a timed attribute: when its answer is not that for a
// profile of whom nothing is known.
func spansOf(n *segment.Node, f *segment.Facts, nowMs int64) []byte {
	a := n.Attribute
	var list []fold.Span
	if a.Predicate.Timed() {
		a.EachTime(&f.Fields, func(ms int64) { list = append(list, fold.Span{From: ms, To: ms + a.Predicate.WindowMs}) })
		list = fold.Join(list)
	} else {
		list = turnsOf(n, f)
	}
	var v []byte
	for _, s := range list {
		if s.To > nowMs {
			v = fold.AppendSpan(v, s, &fold.Occurrence{})
		}
	}
	return v
}

// turnsOf is spansOf for a field that changes with time: it is judged once
// between any two instants at which it may.
func turnsOf(n *segment.Node, f *segment.Facts) []fold.Span {
	turns := []int64{0} // no condition asks about times before 1970
	n.Attribute.EachTurn(f, func(ms int64) {
		if ms > 0 {
			turns = append(turns, ms)
		}
	})
	slices.Sort(turns)
	base := blankHolds(n)
	var list []fold.Span
	for i, from := range turns {
		to := never
		if i+1 < len(turns) {
			to = turns[i+1]
		}
		if from < to && f.Holds(n, from) != base {
			list = append(list, fold.Span{From: from, To: to})
		}
	}
	return fold.Join(list)
}

// Event takes in that a profile did something. The time is not after the engine's. One of
// a type that the service records itself is taken for the service's own: see [Engine.Sent].
func (e *Engine) Event(o uint32, atMs int64, eventType, properties []byte) {
	e.event(o, atMs, eventType, properties, false)
}

// Sent takes in, as Event does, an event that was sent to the service, whatever its
// type.
func (e *Engine) Sent(o uint32, atMs int64, eventType, properties []byte) {
	e.event(o, atMs, eventType, properties, true)
}

func (e *Engine) event(o uint32, atMs int64, eventType, properties []byte, sent bool) {
	k, every := e.types[string(eventType)], e.every
	if every != nil && !sent && segment.OwnEvent(eventType) {
		every = nil
	}
	if k == nil && every == nil {
		return
	}
	e.events++
	if k != nil {
		e.count(k, o, atMs, properties)
	}
	if every != nil {
		e.count(every, o, atMs, properties)
	}
}

// count folds the event at hand into the values of the states that count it.
func (e *Engine) count(k *kin, o uint32, atMs int64, properties []byte) {
	if k.dispatch == nil {
		k.dispatch = newDispatch(k.groups)
	}
	some, few := k.dispatch.always, k.dispatch.concerned(properties, e.events)
	var g *group
	var st *state
	add := func(v []byte) []byte { return st.fold.Add(v, &e.scratch, e.now) }
	for len(some)+len(few) > 0 {
		if len(few) == 0 || len(some) > 0 && some[0].at < few[0].at {
			st, some = some[0].st, some[1:]
		} else {
			st, few = few[0].st, few[1:]
		}
		if !st.source.counts(properties, e.events) {
			continue
		}
		if st.group != g {
			if g != nil {
				e.edit.finish()
			}
			g = st.group
			e.edit.begin(g, o)
		}
		st.read(&e.scratch, atMs, properties, e.events)
		e.rewrite(st, o, segment.CauseEvent, add)
	}
	if g != nil {
		e.edit.finish()
	}
}

// Merge merges a profile into another. [Engine.Profile] and [Engine.Evaluate] of the
// winner follow before any other call about it: what comes with a merge has a cause
// of its own.
func (e *Engine) Merge(winner, merged uint32) {
	e.causes.add(segment.CauseMerge)
	for _, s := range e.byRank {
		// Also where it is no member any more: nothing is said of it later, when the
		// winner may have been erased with all that was said of both.
		e.announce(s, merged)
		if s.live != nil && s.members.Contains(merged) {
			e.turn(s, merged, false, segment.CauseMerge, e.now)
		}
	}
	for _, st := range e.byState {
		if other := st.get(merged); other != nil {
			if st.source != nil { // timed attributes come again
				other = append([]byte(nil), other...)
				e.change(st, winner, segment.CauseMerge, func(v []byte) []byte { return st.fold.Union(v, other, e.now) })
			}
			st.remove(&e.edit, merged)
		}
	}
	for _, l := range e.byID {
		l.diff.Remove(merged)
	}
	e.universe.Remove(merged)
	e.anonymous.Remove(merged)
}

// change lets fn change a profile's value of a state, and follows it up.
func (e *Engine) change(st *state, o uint32, cause segment.Cause, fn func(v []byte) []byte) {
	e.edit.begin(st.group, o)
	e.rewrite(st, o, cause, fn)
	e.edit.finish()
}

// rewrite does so for the row being edited. fn is handed what it may change,
// grow and return, as with append.
func (e *Engine) rewrite(st *state, o uint32, cause segment.Cause, fn func(v []byte) []byte) {
	old, big := e.edit.take(st.slot)
	if big != nil {
		e.rewriteBig(st, o, big, cause, fn)
		return
	}
	v := fn(e.edit.room(old))
	if len(v) == 0 {
		v = nil
	}
	changed := !bytes.Equal(old, v)
	if changed {
		passed, rest := st.asked(old, v, e.now)
		for _, l := range passed { // no instant is due for a count or a sum
			e.changed(l, o, cause, l.holds(v, e.now), l.holds(old, e.now), never, never)
		}
		for _, l := range rest {
			due, wasDue := l.due(v, e.now), never
			if l.ready && due != never {
				wasDue = l.due(old, e.now)
			}
			e.changed(l, o, cause, l.holds(v, e.now), l.ready && l.holds(old, e.now), due, wasDue)
		}
	}
	e.edit.put(st.slot, old, v, changed)
}

// rewriteBig is rewrite for a value that is too long to be copied.
func (e *Engine) rewriteBig(st *state, o uint32, big *bigValue, cause segment.Cause, fn func(v []byte) []byte) {
	for _, l := range st.leaves {
		l.wasHeld, l.wasDue = l.holds(big.b, e.now), l.due(big.b, e.now)
	}
	v := fn(big.b)
	if len(v) == 0 {
		v = nil
	}
	for _, l := range st.leaves {
		e.changed(l, o, cause, l.holds(v, e.now), l.wasHeld, l.due(v, e.now), l.wasDue)
	}
	e.edit.putBig(st.slot, big, v)
}

// changed follows up the change of a value for one leaf.
func (e *Engine) changed(l *leaf, o uint32, cause segment.Cause, holds, wasHeld bool, due, wasDue int64) {
	switch {
	case !l.ready:
		l.set(o, holds)
		wasDue = never // it may not be entered yet
	case holds != wasHeld:
		e.flip(l, o, holds, cause)
	}
	if due < wasDue {
		e.schedule(l, o, due)
	}
}

// flip changes an answer and marks the segments that depend on it.
func (e *Engine) flip(l *leaf, o uint32, holds bool, cause segment.Cause) {
	l.set(o, holds)
	e.causes.add(cause)
	for _, s := range l.segs {
		e.mark(s)
	}
}

func (e *Engine) schedule(l *leaf, o uint32, due int64) {
	e.pub.scheduled(l, due)
	before, _ := l.wheel.Head()
	l.wheel.Add(o, due, e.done)
	if l.inHeap < 0 {
		heap.Push(&e.timers, l)
	} else if now, _ := l.wheel.Head(); now <= before {
		heap.Fix(&e.timers, l.inHeap)
	}
}

// Evaluate evaluates the marked segments for a profile that has changed.
func (e *Engine) Evaluate(o uint32) {
	e.evaluate(o, e.now)
}

func (e *Engine) evaluate(o uint32, atMs int64) {
	if len(e.marked) == 0 {
		e.causes = 0
		return
	}
	cause := e.causes.pick()
	sortByRank(e.marked)
	for i := 0; i < len(e.marked); i++ {
		s := e.marked[i]
		s.marked = false
		is := s.live.eval(e.anonymous, o)
		if is == s.members.Contains(o) {
			continue
		}
		e.turn(s, o, is, cause, atMs)
		if n := len(e.marked); len(s.users) > 0 {
			for _, u := range s.users {
				e.mark(u)
			}
			if len(e.marked) > n {
				sortByRank(e.marked[i+1:])
			}
		}
	}
	e.marked = e.marked[:0]
	e.causes = 0
}

func (e *Engine) mark(s *seg) {
	if !s.marked && s.live != nil {
		s.marked = true
		e.marked = append(e.marked, s)
	}
}

// turn changes membership and emits the transition. One that is pending after a new
// definition comes first.
func (e *Engine) turn(s *seg, o uint32, is bool, cause segment.Cause, atMs int64) {
	e.announce(s, o)
	e.pub.turned(s, is)
	if is {
		s.members.Add(o)
	} else {
		s.members.Remove(o)
	}
	e.out = append(e.out, Transition{s.id, o, is, cause, atMs})
}
