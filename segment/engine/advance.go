package engine

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
	"github.com/musterhq/muster/segment/engine/internal/wheel"
)

// Advance moves the engine's time forward and works off what falls due, in
// order of instant, then ordinal, up to budget changes of answers. It returns
// whether all is done; what is left continues with the next call. Meanwhile the
// engine lags: profiles to which something happens are brought up to its time
// first ([Engine.Touch]), and reads look at what is left themselves.
//
// Where it stops depends on the answers alone and not on what a wheel holds,
// which a restart rebuilds: looking at a profile whose answer does not change
// costs nothing of the budget.
func (e *Engine) Advance(nowMs int64, budget int) bool {
	e.now = max(e.now, nowMs)
	for {
		flips, _, ok := e.next(e.now, budget)
		if !ok {
			return false
		}
		if flips == 0 {
			break
		}
		budget -= flips
	}
	e.prepare()
	e.sweep()
	e.clean()
	return true
}

// Step is the first part of [Engine.Advance]: what one profile has due at the
// earliest instant, not after untilMs, at which an answer of its changes. It
// moves the engine's time to that instant, or to untilMs when nothing changes
// until then, so that others can act on each change before the next. It returns
// how many answers changed; ok is false when more was due than the budget
// allows: the engine then lags behind untilMs.
//
// Advance must be called in the end, with the same time.
func (e *Engine) Step(untilMs int64, budget int) (flips int, ok bool) {
	flips, at, ok := e.next(untilMs, budget)
	if flips > 0 {
		e.now = max(e.now, at)
		return flips, true
	}
	e.now = max(e.now, untilMs)
	return 0, ok
}

// next works off what one profile has due at the earliest instant until which an
// answer changes.
func (e *Engine) next(untilMs int64, budget int) (flips int, at int64, ok bool) {
	for len(e.timers) > 0 {
		l := e.timers[0]
		t, ordinal := l.wheel.Head()
		if t > untilMs {
			break
		}
		if ordinal < 0 {
			l.wheel.Open(math.MaxInt, e.dueOf(l))
			e.refit(l)
			continue
		}
		// All answers of a profile that change at one instant change at once.
		for {
			if e.flipsAt(l, l.wheel.Peek()) {
				if budget <= 0 && flips == 0 {
					e.done = max(e.done, t-1)
					return 0, t, false
				}
				flips++
				budget--
			}
			e.done = max(e.done, t-1)
			e.expire(l, l.wheel.Pop())
			e.refit(l)
			if len(e.timers) == 0 {
				break
			}
			l = e.timers[0]
			if nt, no := l.wheel.Head(); nt != t || no != ordinal {
				break
			}
		}
		e.evaluate(uint32(ordinal), t)
		if flips > 0 {
			return flips, t, true
		}
	}
	e.done = max(e.done, untilMs)
	if e.done >= e.now {
		clear(e.caught)
	}
	return 0, untilMs, true
}

func (e *Engine) dueOf(l *leaf) func(o uint32) int64 {
	return func(o uint32) int64 { return l.due(l.state.get(o), e.doneOf(o)) }
}

// preparedLooks is how many profiles of the next bucket are looked at ahead of
// time with each call, so that a large bucket does not hold up the one in which
// it is due.
const preparedLooks = 256

// prepare opens the next bucket bit by bit. It changes no answer.
func (e *Engine) prepare() {
	if len(e.timers) == 0 {
		return
	}
	l := e.timers[0]
	if t, ordinal := l.wheel.Head(); ordinal < 0 && t-l.wheel.Width() <= e.now {
		l.wheel.Open(preparedLooks, e.dueOf(l))
		e.refit(l)
	}
}

// refit puts a leaf in its place after its wheel has changed.
func (e *Engine) refit(l *leaf) {
	t, _ := l.wheel.Head()
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

// flipsAt reports whether an answer that counts changes at an instant: not for a
// profile that was brought further already, nor for a leaf that is being built.
func (e *Engine) flipsAt(l *leaf, it wheel.Item) bool {
	if !l.ready || e.doneOf(it.Ordinal) >= it.Due {
		return false
	}
	v := l.state.get(it.Ordinal)
	return v != nil && l.holds(v, it.Due) != l.bit(it.Ordinal)
}

// expire judges a profile at an instant and enters when it is to be judged
// next.
func (e *Engine) expire(l *leaf, it wheel.Item) {
	v := l.state.get(it.Ordinal)
	if v == nil {
		return
	}
	at := it.Due
	if done := e.doneOf(it.Ordinal); done >= at {
		at = done
	} else if holds := l.holds(v, at); holds != l.bit(it.Ordinal) {
		e.expired(l, it.Ordinal, holds)
	}
	if d := l.due(v, at); d != never {
		l.wheel.Add(it.Ordinal, d, e.done)
	}
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
			next = min(next, l.due(l.state.get(o), at))
		}
		if next > e.now {
			break
		}
		at = next
		for _, l := range e.timed {
			if v := l.state.get(o); v != nil {
				if holds := l.holds(v, at); holds != l.bit(o) {
					e.expired(l, o, holds)
				}
				if d := l.due(v, at); !l.ready && d != never {
					e.schedule(l, o, d) // it may not be entered yet
				}
			}
		}
		e.evaluate(o, at)
	}
	e.caught[o] = e.now
}

// NextDue is the next instant at which something falls due, or is to be looked
// at; ok is false when there is none.
func (e *Engine) NextDue() (ms int64, ok bool) {
	if len(e.timers) == 0 {
		return 0, false
	}
	t, _ := e.timers[0].wheel.Head()
	return t, t != never
}

// Lagging reports whether due changes are left to be worked off.
func (e *Engine) Lagging() bool { return e.done < e.now }

// NowMs is the engine's time.
func (e *Engine) NowMs() int64 { return e.now }

// sweptOrdinals is how many ordinals are swept at a time.
const sweptOrdinals = 64

// sweeper drops values that decide nothing any more, a page of ordinals at a time. Where it
// stands is part of the state, so that every replica drops the same.
type sweeper struct {
	State uint32 `json:"state"`
	Page  uint32 `json:"page"`
}

// sweep continues dropping dead values. It changes no answer.
func (e *Engine) sweep() {
	if len(e.byState) == 0 || e.universe.IsEmpty() {
		return
	}
	st := e.states[e.swept.State]
	if st == nil || e.swept.Page > e.universe.Maximum()/sweptOrdinals {
		// The next state by number, or the first.
		i, _ := slices.BinarySearchFunc(e.byState, e.swept.State+1, func(st *state, id uint32) int { return cmp.Compare(st.id, id) })
		e.swept = sweeper{State: e.byState[i%len(e.byState)].id}
		return
	}
	first := e.swept.Page * sweptOrdinals
	e.swept.Page++
	if st.spec.WindowMs == 0 && st.spec.Kind != fold.KindSpans {
		return
	}
	for o := first; o < first+sweptOrdinals; o++ {
		if v := st.get(o); v != nil && st.fold.Dead(v, e.now) {
			st.remove(&e.edit, o)
		}
	}
}

// cleanedPages is how many pages are looked through at once for values of
// states that are gone.
const cleanedPages = 64

// clean continues dropping what was kept for states that are gone. It is never read
// again, so how far it has come is no part of the state.
func (e *Engine) clean() {
	if len(e.stale) == 0 {
		return
	}
	if g := e.stale[0]; len(g.live) == 0 || g.clean(cleanedPages) {
		e.stale = slices.Delete(e.stale, 0, 1)
	}
}

// timers is a heap of leaves by what is due first: by instant, then by ordinal,
// then by leaf.
type timers []*leaf

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	x, xo := h[i].wheel.Head()
	y, yo := h[j].wheel.Head()
	if x != y {
		return x < y
	}
	if xo != yo {
		return xo < yo
	}
	return h[i].id < h[j].id
}
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].inHeap, h[j].inHeap = i, j
}
func (h *timers) Push(x any) {
	l := x.(*leaf)
	l.inHeap = len(*h)
	*h = append(*h, l)
}
func (h *timers) Pop() any {
	old := *h
	l := old[len(old)-1]
	l.inHeap = -1
	*h = old[:len(old)-1]
	return l
}
