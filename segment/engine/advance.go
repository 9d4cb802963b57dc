package engine

import (
	"container/heap"

	"github.com/musterhq/muster/segment"
)

// Advance moves the engine's time forward and works off what falls due, in
// order of instant, then ordinal, up to budget changes of answers, or
// [lookCost] times as many looks at profiles whose answer does not change. It
// returns whether all is done; what is left goes on with the next call. Meanwhile the
// engine lags: profiles to which something happens are brought up to its time
// first ([Engine.Touch]), and reads look at what is left themselves.
func (e *Engine) Advance(nowMs int64, budget int) bool {
	e.now = max(e.now, nowMs)
	looks := budget * lookCost
	for len(e.timers) > 0 {
		l := e.timers[0]
		t, ordinal := l.wheel.head()
		if t > e.now {
			break
		}
		if budget <= 0 || looks <= 0 {
			return false
		}
		e.done = max(e.done, t-1)
		if ordinal < 0 {
			looks -= l.wheel.open(looks, func(o uint32) int64 { return l.due(l.state.table.get(o), e.doneOf(o)) })
			e.refit(l)
			continue
		}
		// All answers of a profile that change at one instant change at once.
		for {
			looks--
			if e.expire(l, l.wheel.pop()) {
				budget--
			}
			e.refit(l)
			if len(e.timers) == 0 {
				break
			}
			l = e.timers[0]
			if nt, no := l.wheel.head(); nt != t || no != ordinal {
				break
			}
		}
		e.settle(uint32(ordinal), t)
	}
	e.done = e.now
	clear(e.caught)
	e.sweep()
	return true
}

// refit puts a leaf in its place after its wheel has changed.
func (e *Engine) refit(l *leaf) {
	t, _ := l.wheel.head()
	switch {
	case l.inHeap < 0:
	case t == never:
		heap.Remove(&e.timers, l.inHeap)
	default:
		heap.Fix(&e.timers, l.inHeap)
	}
}

// doneOf is the instant up to which a profile's answers are worked off.
func (e *Engine) doneOf(o uint32) int64 {
	if len(e.caught) > 0 {
		if t, ok := e.caught[o]; ok {
			return max(t, e.done)
		}
	}
	return e.done
}

// expire judges a profile at an instant, unless it was brought further already.
// It returns whether the answer changed.
func (e *Engine) expire(l *leaf, it dueItem) bool {
	v := l.state.table.get(it.ordinal)
	if v == nil {
		return false
	}
	at := it.due
	if t := e.doneOf(it.ordinal); t >= at {
		at = t
	}
	changed := false
	if holds := l.holds(v, at); at == it.due && holds != l.bit(it.ordinal) {
		changed = true
		e.expired(l, it.ordinal, holds)
	}
	if d := l.due(v, at); d != never {
		l.wheel.add(it.ordinal, d, e.done)
	}
	return changed
}

func (e *Engine) expired(l *leaf, o uint32, holds bool) {
	if !l.ready {
		l.set(o, holds)
		return
	}
	e.flip(l, o, holds, segment.CauseExpiry)
}

// catchUp works off what fell due for one profile.
func (e *Engine) catchUp(o uint32) {
	at := e.doneOf(o)
	for at < e.now {
		next := never
		for _, l := range e.timed {
			next = min(next, l.due(l.state.table.get(o), at))
		}
		if next > e.now {
			break
		}
		at = next
		for _, l := range e.timed {
			if v := l.state.table.get(o); v != nil {
				if holds := l.holds(v, at); holds != l.bit(o) {
					e.expired(l, o, holds)
				}
			}
		}
		e.settle(o, at)
	}
	e.caught[o] = e.now
}

// NextDue is the next instant at which something falls due, or is to be looked
// at; ok is false when there is none.
func (e *Engine) NextDue() (ms int64, ok bool) {
	if len(e.timers) == 0 {
		return 0, false
	}
	t, _ := e.timers[0].wheel.head()
	return t, t != never
}

// Lagging tells whether due changes are left to be worked off.
func (e *Engine) Lagging() bool { return e.done < e.now }

// NowMs is the engine's time.
func (e *Engine) NowMs() int64 { return e.now }

// sweeper drops values that decide nothing any more, a page at a time.
type sweeper struct {
	state uint32
	page  int
}

// sweep goes on dropping dead values. It changes no answer.
func (e *Engine) sweep() {
	if len(e.states) == 0 {
		return
	}
	st := e.states[e.swept.state]
	if st == nil || e.swept.page >= len(st.table.pages) {
		// The next state by number, or the first.
		next, first := ^uint32(0), ^uint32(0)
		for id := range e.states {
			first = min(first, id)
			if id > e.swept.state {
				next = min(next, id)
			}
		}
		if next == ^uint32(0) {
			next = first
		}
		e.swept = sweeper{state: next}
		return
	}
	if st.spec.WindowMs == 0 && st.spec.Kind != foldSpans {
		e.swept.page = len(st.table.pages)
		return
	}
	if st.table.pages[e.swept.page] != nil {
		first := uint32(e.swept.page) * pageSlots
		for o := first; o < first+pageSlots; o++ {
			if v := st.table.get(o); v != nil && st.fold.dead(v, e.now) {
				st.table.remove(o)
			}
		}
	}
	e.swept.page++
}
