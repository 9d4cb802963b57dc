package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
	"github.com/musterhq/muster/segment/segmenttest"
)

// tape turns bytes into choices; at its end every choice is the first.
type tape struct {
	b []byte
	i int
}

func (x *tape) n(k int) int {
	if x.i >= len(x.b) {
		return 0
	}
	x.i++
	return int(x.b[x.i-1]) % k
}

func (x *tape) done() bool { return x.i >= len(x.b) }

// foldWorld drives a few conditions on one type of events, with windows of
// milliseconds, so that every edge is near: many events of one instant, late
// ones, merges, conditions that come later and share what is kept.
type foldWorld struct {
	t        *testing.T
	tape     *tape
	e        *Engine
	now      int64
	profiles []*segment.NaiveProfile
	root     []uint32
	rows     []row
	nodes    []*segment.Node
	checks   int
}

const foldProfiles = 3

// foldValues are what a property holds: few, so that they meet thresholds.
var foldValues = []string{
	`1`, `2`, `-1`, `0.5`, `3`, `1.0`, `0`, `-0`, `"a"`, `"b"`, `"a\u0000"`, `"a fairly long text of one kind"`, `"a fairly long text of another"`,
	`true`, `false`, `null`, `[1]`, `1e12`, `-999999999999`, `"fourteen bytes"`, `"exactly 15 byte"`, `"exactly 15 bytf"`,
}

func newFoldWorld(t *testing.T, data []byte) *foldWorld {
	w := &foldWorld{t: t, tape: &tape{b: data}, e: New()}
	inlineUpTo(t, []int{maxSection, 24, 120, 7}[w.tape.n(4)])
	w.now = []int64{segmenttest.BaseMs, 0, 1_000_003}[w.tape.n(3)]
	w.e.Advance(w.now, 1)
	for o := range uint32(foldProfiles) {
		w.profiles, w.root = append(w.profiles, &segment.NaiveProfile{}), append(w.root, o)
		w.e.Create(o)
		w.e.Profile(o, &segment.Facts{}, AllFields)
		w.e.Evaluate(o)
	}
	w.define()
	return w
}

// compare draws a comparison with one of the numbers, in millionths.
func (w *foldWorld) compare(micros []int64) segment.Compare {
	draw := func() segment.Int128 { return segment.Micros(micros[w.tape.n(len(micros))]) }
	op := []segment.Op{
		segment.OpGe, segment.OpEq, segment.OpLt, segment.OpNe, segment.OpGt, segment.OpLe, segment.OpBetween, segment.OpIn, segment.OpNotIn,
		segment.OpGe, segment.OpGe, segment.OpLe,
	}[w.tape.n(12)]
	c := segment.Compare{Op: op, Micros: []segment.Int128{draw()}}
	if op == segment.OpBetween || op == segment.OpIn || op == segment.OpNotIn {
		c.Micros = append(c.Micros, draw())
		slices.SortFunc(c.Micros, segment.Int128.Cmp)
	}
	return c
}

// define adds a condition; mostly of the kind of the first.
func (w *foldWorld) define() {
	if len(w.nodes) == 5 {
		return
	}
	const unit = segment.MicrosPerUnit
	a := &segment.Activity{Event: "act", Did: w.tape.n(5) > 0, WindowMs: []int64{7, 0, 3, 16, 0, 40, 200, 1}[w.tape.n(8)]}
	fn := w.tape.n(6)
	if len(w.nodes) > 0 && w.tape.n(4) > 0 {
		first := w.nodes[0].Activity
		fn = 0
		if g := first.Aggregate; g != nil {
			fn = 1 + slices.Index(foldFns, g.Fn)
		}
		a.Where = first.Where
	} else if w.tape.n(3) == 1 {
		p := segment.Predicate{Path: []string{"d"}, Op: segment.OpInLastDays, WindowMs: []int64{5, 1, 30}[w.tape.n(3)]}
		if w.tape.n(2) == 1 {
			p.Op = segment.OpNotInLastDays
		}
		a.Where = []segment.Predicate{p}
	}
	counts := []int64{2 * unit, 1 * unit, 3 * unit, 2 * unit, 0, 5 * unit / 2, 5 * unit, 33 * unit}
	if fn == 0 {
		c := w.compare(counts)
		a.Count = &c
	} else {
		a.Aggregate = &segment.Aggregate{Fn: foldFns[fn-1], Property: []string{"p"}}
		if a.Aggregate.Fn == segment.FnDistinct {
			a.Aggregate.Compare = w.compare(counts)
		} else {
			a.Aggregate.Compare = w.compare([]int64{0, unit, 2 * unit, -unit, unit / 2, 3 * unit, 10 * unit, 40 * unit, 1e18})
		}
	}
	n := &segment.Node{Kind: segment.KindActivity, Activity: a}
	w.e.Define(fmt.Sprintf("s%d", len(w.nodes)), n, 1, func(string) bool { return len(w.rows) > 0 })
	w.nodes = append(w.nodes, n)
	w.build(w.e)
	w.e.Transitions()
}

// build hands an engine the past it asks for, in pieces of one value.
func (w *foldWorld) build(e *Engine) {
	for range 1000 {
		work, ok := e.Work(nothing)
		if !ok {
			break
		}
		l := NewLoader(work.State)
		for _, r := range w.rows {
			if after := work.State.AfterMs; after == nil || r.event.TimeMs > *after {
				addPast(l, work.State, r.ordinal, &r.event)
			}
		}
		chunk, _ := l.Chunk(1)
		if err := e.Load(chunk, func(o uint32) uint32 { return w.root[o] }); err != nil {
			w.t.Fatal(err)
		}
	}
	for e.Working() {
		e.Continue(1000)
	}
}

// addPast adds an event of history as the work asks for it.
func addPast(l *Loader, w *StateWork, o uint32, ev *segment.NaiveEvent) {
	switch {
	case w.Number != nil:
		raw, _ := rawjson.Lookup(ev.Properties, w.Number)
		micros, is := segment.MicrosOfJSON(raw)
		l.AddNumber(o, ev.TimeMs, micros, is)
	case w.Properties:
		l.Add(o, ev.TimeMs, ev.Properties)
	default:
		l.Add(o, ev.TimeMs, nil)
	}
}

var foldFns = []segment.Fn{segment.FnSum, segment.FnAvg, segment.FnMin, segment.FnMax, segment.FnDistinct}

func (w *foldWorld) event(o uint32, at int64) {
	p := `{"p":` + foldValues[w.tape.n(len(foldValues))]
	switch k := w.tape.n(12); {
	case k < 8:
		p += `,"d":"` + string(segment.AppendTime(nil, w.now+int64(k*k)-20)) + `"`
	case k == 8: // two spans, that may touch
		p += `,"d":["` + string(segment.AppendTime(nil, w.now-1)) + `","` + string(segment.AppendTime(nil, w.now+4)) + `","x",1]`
	case k == 9:
		p += `,"d":["` + string(segment.AppendTime(nil, w.now+30)) + `","` + string(segment.AppendTime(nil, w.now)) + `","` + string(segment.AppendTime(nil, w.now+2)) + `"]`
	}
	ev := segment.NaiveEvent{TimeMs: at, Type: "act", Properties: []byte(p + "}")}
	w.rows = append(w.rows, row{0, o, ev})
	w.profiles[o].Events = append(w.profiles[o].Events, ev)
	w.e.Touch(o)
	w.e.Event(o, at, []byte("act"), ev.Properties)
	w.e.Evaluate(o)
}

func (w *foldWorld) step() {
	o := w.root[w.tape.n(foldProfiles)]
	switch k := w.tape.n(16); {
	case k < 7:
		w.event(o, w.now)
	case k < 9:
		w.event(o, w.now-int64(w.tape.n(20)))
	case k < 12:
		w.now += int64([]int{1, 0, 2, 3, 7, 15, 33, 100}[w.tape.n(8)])
		w.e.Advance(w.now, 1+w.tape.n(3))
	case k == 12:
		if merged := w.root[w.tape.n(foldProfiles)]; merged != o && w.tape.n(3) == 0 {
			w.merge(o, merged)
		}
	case k == 13:
		w.define()
	case k == 14: // many, with time going on or back
		step := int64(w.tape.n(3)) - 1
		n := min(w.tape.n(100), (len(w.tape.b)-w.tape.i)/2)
		for i := range n {
			at := w.now
			if step < 0 {
				at -= int64(i)
			} else if step > 0 && i%2 == 0 {
				w.now++
				w.e.Advance(w.now, 1)
				at++
			}
			w.event(o, at)
		}
	default:
		w.check()
	}
}

func (w *foldWorld) merge(winner, merged uint32) {
	w.e.Touch(winner)
	w.e.Touch(merged)
	for i := range w.root {
		if w.root[i] == merged {
			w.root[i] = winner
		}
	}
	w.profiles[winner].Events = append(w.profiles[winner].Events, w.profiles[merged].Events...)
	w.e.Merge(winner, merged)
	w.e.Profile(winner, &segment.Facts{}, AllFields)
	w.e.Evaluate(winner)
}

// inlineUpTo lowers the bound of what is kept in rows for one test.
func inlineUpTo(t *testing.T, n int) {
	t.Cleanup(func() { maxInline = maxSection })
	maxInline = n
}

// oneByOneUpTo lowers how many conditions are looked at one by one for one test.
func oneByOneUpTo(t *testing.T, n int) {
	before := worthwhile
	t.Cleanup(func() { worthwhile = before })
	worthwhile = n
}

func none(string) (*segment.Node, bool) { return nil, false }

// check compares every condition now and at instants to come, and holds the
// folds to their word: a value is valid, and due is not after the next change.
func (w *foldWorld) check() {
	w.checks++
	to := w.now + int64([]int{0, 1, 2, 5, 9, 30}[w.tape.n(6)])
	for i, n := range w.nodes {
		id := fmt.Sprintf("s%d", i)
		for o := range uint32(foldProfiles) {
			if w.root[o] != o {
				continue
			}
			want := n.Naive(w.profiles[o], to, none)
			if got := w.e.Contains(id, o, to); got != want {
				w.t.Fatalf("S1: %s is %v for %d at %d (now %d), want %v\n%s", n.Canonical(), got, o, to, w.now, want, describe(w.profiles[o]))
			}
			if l := w.e.leaves[n.Key()]; !w.e.Lagging() {
				w.keepsWord(l, o)
			}
		}
		if !w.e.Lagging() {
			m := uint64(0)
			for o := range uint32(foldProfiles) {
				if w.root[o] == o && n.Naive(w.profiles[o], to, none) {
					m++
				}
			}
			if got := w.e.Count(id, to); got != m {
				w.t.Fatalf("S1: %s has %d members at %d (now %d), want %d", n.Canonical(), got, to, w.now, m)
			}
		}
	}
}

// keepsWord checks one value of a leaf.
func (w *foldWorld) keepsWord(l *leaf, o uint32) {
	v := l.state.get(o)
	if v == nil {
		return
	}
	f := l.state.fold
	keep := int(l.state.spec.Keep)
	if l.state.spec.Kind == fold.KindTimes && len(v)/8 > max(64, 2*keep) {
		w.t.Fatalf("%s keeps %d times, %d are enough", l.key, len(v)/8, keep)
	}
	if l.state.spec.Kind == fold.KindDistinct && len(v)/24 > 2*keep { // a value with its time takes 24 bytes
		w.t.Fatalf("%s keeps %d values, %d are enough", l.key, len(v)/24, keep)
	}
	if !f.Valid(v) {
		w.t.Fatalf("%s keeps %x, which it does not hold for valid itself", l.key, v)
	}
	due, now := l.due(v, w.now), l.holds(v, w.now)
	if due <= w.now {
		w.t.Fatalf("%s is due at %d, it is %d", l.key, due, w.now)
	}
	for t := w.now; t < min(due, w.now+60); t++ {
		if l.holds(v, t) != now {
			w.t.Fatalf("%s changes at %d, but is due at %d", l.key, t, due)
		}
		if f.Dead(v, t) && l.holds(v, t) != l.base {
			w.t.Fatalf("%s is dead at %d and answers", l.key, t)
		}
	}
}

// reload builds the same from history, in small pieces, and compares.
func (w *foldWorld) reload() {
	e := New()
	e.Advance(w.now, 1)
	for o := range uint32(foldProfiles) {
		if w.root[o] == o {
			e.Create(o)
			e.Profile(o, &segment.Facts{}, AllFields)
			e.Evaluate(o)
		}
	}
	for i, n := range w.nodes {
		e.Define(fmt.Sprintf("s%d", i), n, 1, func(string) bool { return true })
	}
	w.build(e)
	for i, n := range w.nodes {
		id := fmt.Sprintf("s%d", i)
		for _, t := range []int64{w.now, w.now + 1, w.now + 6} {
			if got, want := e.Members(id, t), w.e.Members(id, t); !e.Live(id) || !got.Equals(want) {
				w.t.Fatalf("S1: %s from history has %v at %d (now %d), want %v", n.Canonical(), got, t, w.now, want)
			}
		}
	}
}

func (w *foldWorld) run() {
	for !w.tape.done() {
		w.step()
	}
	w.check()
	for !w.e.Advance(w.now, 1000) {
	}
	w.check()
	w.reload()
}

// TestS1FoldsEqualNaive compares every fold with the naive evaluator where
// windows are a few milliseconds wide.
func TestS1FoldsEqualNaive(t *testing.T) {
	n := testlevel.Count(300, 2500)
	checks := 0
	for seed := range uint64(n) {
		w := newFoldWorld(t, compose(rand.New(rand.NewPCG(seed, 5))))
		w.run()
		checks += w.checks
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if checks < 2*n {
		t.Fatalf("%d checks of %d sequences", checks, n)
	}
}

// compose writes a tape on which the steps that tell most are frequent.
func compose(rng *rand.Rand) []byte {
	var tape []byte
	some := func(n int) {
		for range n {
			tape = append(tape, byte(rng.IntN(256)))
		}
	}
	some(14) // the first condition
	busy := byte(rng.IntN(foldProfiles))
	for range 10 + rng.IntN(40) {
		o := busy
		if rng.IntN(4) == 0 {
			o = byte(rng.IntN(foldProfiles))
		}
		tape = append(tape, o)
		switch k := rng.IntN(20); {
		case k < 5:
			tape = append(tape, 0)
			some(2)
		case k < 10:
			tape = append(tape, 7, byte(rng.IntN(20)))
			some(2)
		case k < 14:
			tape = append(tape, 9)
			some(2)
		case k == 14 && rng.IntN(3) == 0:
			tape = append(tape, 12, byte(rng.IntN(foldProfiles)), 0)
		case k == 15 && rng.IntN(2) == 0:
			tape = append(tape, 13)
			some(9)
		case k == 16 && rng.IntN(3) == 0:
			n := rng.IntN(100)
			tape = append(tape, 14, byte(rng.IntN(3)), byte(n))
			some(2 * n)
		default:
			tape = append(tape, 15)
			some(1)
		}
	}
	return tape
}

// FuzzFolds (S1) does the same with sequences of the fuzzer's choice.
func FuzzFolds(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1000 {
			return
		}
		newFoldWorld(t, data).run()
	})
}

// TestS1SumOfManyInstants (S1): a sum whose answer changes only after very many
// contributions have left changes at its instant.
func TestS1SumOfManyInstants(t *testing.T) {
	const start, n = 19_800 * int64(dayMs), 20 // more than the fold looks ahead at once
	e := crowd(t, start, 1, `{"kind":"activity","event":"act","window":{"last_days":1},"aggregate":{"fn":"sum","property":"p","op":">","value":0}}`)
	for i := range int64(n) {
		e.Advance(start+i*1000, 10)
		act(e, 0, start+i*1000, "act", `{"p":1}`)
	}
	e.Transitions()
	left := start + (n-1)*1000 + dayMs
	for ms := left - (n+10)*1000; ms < left; ms += 777 {
		e.Advance(ms, 10)
	}
	e.Advance(left-1, 10)
	if said := e.Transitions(); len(said) > 0 || e.Count("s0", left-1) != 1 || e.Count("s0", left) != 0 {
		t.Fatalf("a millisecond before: %v, %d members", said, e.Count("s0", left-1))
	}
	e.Advance(left+5, 10)
	if said := e.Transitions(); len(said) != 1 || said[0].AtMs != left {
		t.Fatalf("left by %v, want an exit at %d", said, left)
	}
}
