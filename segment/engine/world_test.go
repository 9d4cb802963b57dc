package engine

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/segmenttest"
)

// world drives an engine and, beside it, the plainest model of the same: all
// that is known of each profile, and all events, judged naively.
type world struct {
	t    *testing.T
	seed uint64
	gen  *segmenttest.Gen
	rng  *rand.Rand
	e    *Engine
	twin *Engine // the same, restarted at other times

	now      int64
	offset   int64
	profiles []*segment.NaiveProfile
	root     []uint32
	rows     []row
	merges   []merge
	defs     map[string]*segment.Node
	said     map[string]*roaring.Bitmap // what transitions say
	chunks   [][]byte                   // made and not loaded yet
	files    [][]byte
	cases    int
	members  int
	erases   bool // now and then a profile is erased instead of merged
	erased   int

	// What the instants of transitions are checked by.
	changed  map[uint32]int64    // when something last happened to a profile
	last     map[expiredAt]int64 // when a profile last entered or left a segment
	expired  map[expiredAt]int64 // the last exit or entry by time alone
	live     map[string]*program
	liveMs   int64 // when a definition last went live
	expiries int

	sharesAt int64 // the step from which on windows share states; -1 for none

	identified int // anonymous profiles that came to be identified
}

type expiredAt struct {
	segment string
	ordinal uint32
}

type row struct {
	offset  int64
	ordinal uint32
	event   segment.NaiveEvent
}

type merge struct {
	offset         int64
	winner, merged uint32
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, seed: seed, gen: segmenttest.New(seed), rng: rand.New(rand.NewPCG(seed, 77)), e: New(),
		now: segmenttest.BaseMs - 3*86_400_000, defs: map[string]*segment.Node{}, said: map[string]*roaring.Bitmap{},
		changed: map[uint32]int64{}, last: map[expiredAt]int64{}, expired: map[expiredAt]int64{}, live: map[string]*program{},
	}
	w.both(func(e *Engine) { e.Advance(w.now, 1<<30) })
	w.sharesAt = []int64{-1, 0, 1 + int64(seed/3%150)}[seed%3]
	w.share(w.e, w.twin)
	inlineUpTo(t, []int{maxSection, 20, 60}[seed%3])
	oneByOneUpTo(t, []int{8, 0, 2}[seed/3%3])
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d, offset %d, now %d: %s", w.seed, w.offset, w.now, fmt.Sprintf(format, args...))
}

// share has the windows of engines share states, if they do by now.
func (w *world) share(engines ...*Engine) {
	for _, e := range engines {
		if e != nil && w.sharesAt >= 0 && w.offset >= w.sharesAt {
			e.ShareWindows()
		}
	}
}

func facts(p *segment.NaiveProfile) *segment.Facts { return p.Facts() }

// some draws a profile that is not merged into another.
func (w *world) some() uint32 {
	for {
		if o := uint32(w.rng.IntN(len(w.profiles))); w.root[o] == o {
			return o
		}
	}
}

// step does one random thing.
func (w *world) step() {
	w.offset++
	w.share(w.e, w.twin)
	budget := 1 + w.rng.IntN(4)
	if w.rng.IntN(3) == 0 {
		budget = 1 << 30
	}
	w.both(func(e *Engine) { e.Advance(w.now, budget) })
	w.hear(true)
	switch n := w.rng.IntN(100); {
	case n < 8 || len(w.profiles) == 0:
		w.create()
	case n < 34:
		w.event()
	case n < 40:
		w.wave()
	case n < 48:
		w.change()
	case n < 51:
		if w.erases && w.rng.IntN(2) == 0 {
			w.erase()
		} else {
			w.merge()
		}
	case n < 55:
		w.define()
	case n < 56:
		w.undefine()
	case n < 72:
		w.pass()
	case n < 80:
		w.makeChunk()
	case n < 90:
		w.loadChunk()
	case n < 97:
		n := 1 + w.rng.IntN(3)
		w.both(func(e *Engine) { e.Continue(n) })
	default:
		w.restart()
	}
	w.hear(false)
}

// touch says that something is about to happen to a profile.
func (w *world) touch(o uint32) {
	w.both(func(e *Engine) { e.Touch(o) })
	w.hear(true)
	w.changed[o] = w.now
}

func (w *world) create() {
	if len(w.profiles) >= 40 {
		return
	}
	p := w.gen.Profile()
	p.Events = nil
	o := uint32(len(w.profiles))
	w.profiles, w.root = append(w.profiles, p), append(w.root, o)
	w.touch(o)
	w.both(func(e *Engine) { e.Create(o) })
	w.profile(o, p)
	if w.rng.IntN(2) == 0 {
		w.happen(o)
	}
	w.both(func(e *Engine) { e.Evaluate(o) })
}

func (w *world) event() {
	o := w.some()
	w.touch(o)
	w.happen(o)
	w.both(func(e *Engine) { e.Evaluate(o) })
}

// wave lets many profiles do the same at one instant: it will run out for all
// of them at once.
func (w *world) wave() {
	ev := segment.NaiveEvent{TimeMs: w.now, Type: "item_purchased", Properties: []byte(`{"value":1}`)}
	for o := range uint32(len(w.profiles)) {
		if w.root[o] != o || w.rng.IntN(3) == 0 {
			continue
		}
		w.touch(o)
		w.tell(o, ev)
		w.both(func(e *Engine) { e.Evaluate(o) })
	}
}

// happen lets a profile do something, mostly now.
func (w *world) happen(o uint32) {
	ev := w.gen.Events(1)[0]
	if ev.TimeMs > w.now || w.rng.IntN(3) > 0 {
		ev.TimeMs = w.now
	}
	if w.rng.IntN(8) == 0 && len(w.rows) > 0 { // as late as another
		ev.TimeMs = w.rows[w.rng.IntN(len(w.rows))].event.TimeMs
	}
	w.tell(o, ev)
}

func (w *world) tell(o uint32, ev segment.NaiveEvent) {
	w.rows = append(w.rows, row{w.offset, o, ev})
	w.profiles[o].Events = append(w.profiles[o].Events, ev)
	w.both(func(e *Engine) {
		if ev.Sent {
			e.Sent(o, ev.TimeMs, []byte(ev.Type), ev.Properties)
		} else {
			e.Event(o, ev.TimeMs, []byte(ev.Type), ev.Properties)
		}
	})
}

func (w *world) change() {
	o := w.some()
	p := w.gen.Profile()
	p.Events, p.CreatedAtMs = w.profiles[o].Events, w.profiles[o].CreatedAtMs
	w.touch(o) // what is due until now is judged by what the profile was
	w.profiles[o] = p
	identified := w.e.anonymous.Contains(o) && !p.Anonymous
	before := len(w.e.out)
	w.profile(o, p)
	w.both(func(e *Engine) { e.Evaluate(o) })
	for _, x := range w.e.out[before:] {
		if identified && x.Cause != segment.CauseProfile && x.Cause != segment.CauseDefinition { // pending ones come first
			w.fatalf("I6: who was identified has a transition %+v", x)
		}
	}
	if identified {
		w.identified++
	}
}

// profile tells of all fields of a profile.
func (w *world) profile(o uint32, p *segment.NaiveProfile) {
	w.both(func(e *Engine) { e.SetAnonymous(o, p.Anonymous) })
	w.both(func(e *Engine) { e.Profile(o, facts(p), AllFields) })
}

func (w *world) merge() {
	winner, merged := w.some(), w.some()
	if winner == merged {
		return
	}
	w.touch(winner)
	w.touch(merged)
	p := w.gen.Profile()
	p.Events = append(slices.Clone(w.profiles[winner].Events), w.profiles[merged].Events...)
	w.profiles[winner] = p
	w.merges = append(w.merges, merge{w.offset, winner, merged})
	for i := range w.root {
		if w.root[i] == merged {
			w.root[i] = winner
		}
	}
	w.both(func(e *Engine) { e.Merge(winner, merged) })
	w.profile(winner, p)
	w.both(func(e *Engine) { e.Evaluate(winner) })
	for id, d := range w.defs {
		if w.e.Live(id) && !w.e.Working() && w.e.segments[id].members.Contains(winner) != d.Naive(p, w.now, w.lookup) {
			w.fatalf("S1: a merge alone makes profile %d a member of %s, or not, as it should not", winner, id)
		}
	}
	if w.rng.IntN(2) == 0 {
		return
	}
	// What comes with the merge has a cause of its own.
	before := len(w.e.out)
	w.happen(winner)
	w.both(func(e *Engine) { e.Evaluate(winner) })
	for _, x := range w.e.out[before:] {
		if x.Ordinal != winner || x.Cause != segment.CauseEvent && x.Cause != segment.CauseDefinition { // pending ones come first
			w.fatalf("S2: what somebody did after a merge says %+v", x)
		}
	}
}

// nobody is the root of an erased profile.
const nobody = ^uint32(0)

// erase erases a profile. History may still have its events, or not any more.
func (w *world) erase() {
	o, left := w.some(), 0
	for i := range w.root {
		if w.root[i] == uint32(i) {
			left++
		}
	}
	if left < 4 {
		return
	}
	w.touch(o)
	w.both(func(e *Engine) { e.Erase(o) })
	mine := map[uint32]bool{}
	for i := range w.root {
		if w.root[i] == o {
			w.root[i], mine[uint32(i)] = nobody, true
		}
	}
	if w.rng.IntN(2) == 0 {
		w.rows = slices.DeleteFunc(w.rows, func(r row) bool { return mine[r.ordinal] })
	}
	w.erased++
	for id, s := range w.e.segments {
		if s.pending.Contains(o) {
			w.fatalf("S2: a transition of %s is still pending for an erased profile", id)
		}
	}
	for _, st := range w.e.byState {
		if st.get(o) != nil {
			w.fatalf("state %d still knows an erased profile", st.id)
		}
	}
}

func (w *world) lookup(id string) (*segment.Node, bool) {
	n, ok := w.defs[id]
	return n, ok
}

func (w *world) define() {
	id := []string{"seg_a", "seg_b", "seg_c", "seg_d"}[w.rng.IntN(4)]
	root := w.definition()
	if old := w.defs[id]; old != nil && w.rng.IntN(2) == 0 {
		root = nudge(w.rng, old) // another threshold
	}
	if segment.CheckRefs(id, root, w.lookup) != nil {
		return
	}
	w.defs[id] = root
	seen := map[string]bool{segment.AnyEvent: len(w.rows) > 0}
	for _, r := range w.rows {
		seen[r.event.Type] = true
	}
	w.both(func(e *Engine) { e.Define(id, root, w.offset, func(typ string) bool { return seen[typ] }) })
	if w.said[id] == nil {
		w.said[id] = roaring.New()
	}
}

// definition draws one; more often than the generator alone does, one that
// refers to others, one on a time of the profile's, and one of several
// conditions on one type, which run out together.
func (w *world) definition() *segment.Node {
	days := []string{"1", "7", "0.5", "30", "0.00000002", "0.01"}[w.rng.IntN(6)]
	not := []string{"", "not_"}[w.rng.IntN(2)]
	parse := func(text string) *segment.Node {
		n, err := segment.Parse([]byte(text), segment.Limits{})
		if err != nil {
			w.fatalf("%v", err)
		}
		return n
	}
	switch k := w.rng.IntN(10); {
	case k < 2:
		switch w.rng.IntN(4) {
		case 0:
			return parse(fmt.Sprintf(`{"kind":"attribute","field":"engagement_score","op":%q,"value":%d}`,
				[]string{">", "<=", "=", "!="}[w.rng.IntN(4)], []int{0, 1, 5, 7, 12, 15, 25}[w.rng.IntN(7)]))
		case 1:
			return parse(fmt.Sprintf(`{"kind":"attribute","field":"status","op":"%sin","value":[%q,%q]}`, not,
				[]string{"Engaged", "Subscribed", "At risk"}[w.rng.IntN(3)], []string{"Pending", "Engaged"}[w.rng.IntN(2)]))
		}
		field := []string{"created_at", "attributes.when", "attributes.any", "first_seen_at", "last_event_at"}[w.rng.IntN(5)]
		return parse(fmt.Sprintf(`{"kind":"attribute","field":%q,"op":"%sin_last_days","value":%s}`, field, not, days))
	case k < 4:
		n := &segment.Node{Kind: segment.KindGroup, Match: []segment.Match{segment.MatchAll, segment.MatchAny}[w.rng.IntN(2)]}
		part := w.gen.Definition()
		n.IncludeAnonymous, part.IncludeAnonymous = part.IncludeAnonymous, false
		n.Conditions = append(n.Conditions, part)
		for range 1 + w.rng.IntN(2) {
			id := []string{"seg_a", "seg_b", "seg_c", "seg_d"}[w.rng.IntN(4)]
			n.Conditions = append(n.Conditions, &segment.Node{Kind: segment.KindSegment, Segment: &segment.Ref{SegmentID: id, Member: w.rng.IntN(3) > 0}})
		}
		return n
	case k < 6:
		one := `{"kind":"activity","event":"item_purchased","did":%v,"window":{"last_days":%s},"count":{"op":">=","value":1}}`
		two := `{"kind":"activity","event":"item_purchased","did":%v,"window":{"last_days":%s},"aggregate":{"fn":"sum","property":"value","op":">","value":0}}`
		return parse(fmt.Sprintf(`{"match":%q,"conditions":[`+one+`,`+two+`]}`, []string{"all", "any"}[w.rng.IntN(2)],
			w.rng.IntN(2) == 0, days, w.rng.IntN(2) == 0, days))
	}
	return w.gen.Definition()
}

// nudge changes the thresholds of a definition a little.
func nudge(rng *rand.Rand, n *segment.Node) *segment.Node {
	c := *n
	c.Conditions = nil
	for _, k := range n.Conditions {
		c.Conditions = append(c.Conditions, nudge(rng, k))
	}
	if n.Kind == segment.KindActivity && n.Activity.Count != nil && n.Activity.Count.Op == segment.OpGe {
		a := *n.Activity
		a.Count = &segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{segment.Micros(rng.Int64N(5) * segment.MicrosPerUnit)}}
		c.Activity = &a
	}
	return &c
}

func (w *world) undefine() {
	for _, id := range []string{"seg_a", "seg_b", "seg_c", "seg_d"} {
		used := w.defs[id] == nil
		for _, d := range w.defs {
			used = used || slices.Contains(d.SegmentIDs(), id)
		}
		if !used {
			// One whose old definition is still referred to by a live one stays.
			if s := w.e.segments[id]; len(s.users) > 0 {
				continue
			}
			w.both(func(e *Engine) { e.Undefine(id) })
			delete(w.defs, id)
			delete(w.said, id)
			for key := range w.last {
				if key.segment == id {
					delete(w.last, key)
				}
			}
			delete(w.live, id)
			return
		}
	}
}

// pass lets time pass, often to just where something falls due.
func (w *world) pass() {
	to := w.now
	switch w.rng.IntN(6) {
	case 0:
		to += w.rng.Int64N(3)
	case 1:
		to += w.rng.Int64N(86_400_000)
	case 2:
		to += w.rng.Int64N(20 * 86_400_000)
	default:
		if due, ok := w.e.NextDue(); ok {
			to = due + int64(w.rng.IntN(3)) - 1
		}
	}
	if to > w.now && to < segmenttest.BaseMs+1000*86_400_000 {
		w.now = to
	}
	n := 1 + w.rng.IntN(4)
	w.both(func(e *Engine) { e.Advance(w.now, n) })
	w.hear(true)
}

// makeChunk does what is to be done outside of the engine.
func (w *world) makeChunk() {
	work, ok := w.e.Work(nothing)
	if !ok {
		return
	}
	if st := work.State; st != nil {
		l := NewLoader(st)
		root := make([]uint32, len(w.profiles))
		for i := range root {
			root[i] = uint32(i)
		}
		for _, m := range w.merges {
			if m.offset < st.UpTo {
				for i := range root {
					if root[i] == m.merged {
						root[i] = m.winner
					}
				}
			}
		}
		for _, r := range w.rows {
			pass := r.offset < st.UpTo && segment.OfType(st.Event, r.event.Type, r.event.Sent) && (st.AfterMs == nil || r.event.TimeMs > *st.AfterMs)
			for i := range st.Where {
				pass = pass && st.Where[i].Match(r.event.Properties, 0)
			}
			if pass {
				addPast(l, st, root[r.ordinal], &r.event)
			}
		}
		chunk, _ := l.Chunk(1 + w.rng.IntN(100))
		w.chunks = append(w.chunks, chunk)
		return
	}
	s := NewScanner(work.Scan)
	n := 1 + w.rng.IntN(20)
	last := true
	for o := range w.profiles {
		if w.root[o] != uint32(o) || uint32(o) < work.Scan.Cursor {
			continue
		}
		if n == 0 {
			last = false
			break
		}
		n--
		s.Add(uint32(o), facts(w.profiles[o]))
	}
	chunk, err := s.Chunk(last)
	if err != nil {
		w.fatalf("%v", err)
	}
	w.chunks = append(w.chunks, chunk)
}

func (w *world) loadChunk() {
	if len(w.chunks) == 0 {
		return
	}
	c := w.chunks[0]
	if w.rng.IntN(4) > 0 { // now and then one comes twice
		w.chunks = w.chunks[1:]
	}
	w.both(func(e *Engine) {
		if err := e.Load(c, func(o uint32) uint32 { return w.root[o] }); err != nil {
			w.fatalf("load: %v", err)
		}
	})
}

// restart writes the engine and reads it again.
func (w *world) restart() {
	if w.e.Lagging() {
		return
	}
	all := len(w.files) == 0 || w.rng.IntN(4) == 0
	f := w.e.Freeze(all)
	before := w.hash(w.e)
	// The engine continues while what was frozen is written.
	var out bytes.Buffer
	buf := bufio.NewWriter(&out)
	if err := f.Write(buf); err != nil {
		w.fatalf("%v", err)
	}
	buf.Flush()
	if all {
		w.files = nil
	}
	w.files = append(w.files, out.Bytes())
	r := NewRestorer()
	for _, b := range w.files {
		if err := r.Read(bufio.NewReader(bytes.NewReader(b))); err != nil {
			w.fatalf("read: %v", err)
		}
	}
	e, err := r.Engine(w.e.universe.Clone())
	if err != nil {
		w.fatalf("restore: %v", err)
	}
	w.share(e)
	if after := w.hash(e); after != before {
		w.fatalf("R1: the state differs after a restart")
	}
	if w.twin != nil && w.rng.IntN(2) == 0 {
		w.e, w.files = e, nil // the twin continues without a restart
	} else {
		w.twin = e
	}
}

// both does the same to the engine and, if there is one, to its twin, which was
// restarted at other times. They must not differ in what they say.
func (w *world) both(do func(e *Engine)) {
	do(w.e)
	if w.twin == nil {
		return
	}
	do(w.twin)
	if !slices.Equal(w.e.out, w.twin.out) {
		w.fatalf("R1: after a restart other transitions are made: %v, without %v", w.twin.out, w.e.out)
	}
	if w.e.done != w.twin.done || w.rng.IntN(50) == 0 && w.hash(w.e) != w.hash(w.twin) {
		w.fatalf("R1: after a restart the state becomes another: done up to %d and %d", w.twin.done, w.e.done)
	}
}

func (w *world) hash(e *Engine) string {
	h := sha256.New()
	if err := e.Hash(func(b []byte) { fmt.Fprintf(h, "%d:%x", len(b), b) }); err != nil {
		w.fatalf("%v", err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// hear replays the transitions. passing says that nothing but the passing of
// time made them.
func (w *world) hear(passing bool) {
	for id, s := range w.e.segments {
		if w.live[id] != s.live {
			w.live[id], w.liveMs = s.live, w.now
		}
	}
	if w.twin != nil {
		w.twin.Transitions()
	}
	once := map[expiredAt]segment.Cause{}
	for _, x := range w.e.Transitions() {
		m := w.said[x.Segment]
		if m == nil {
			w.fatalf("S2: a transition of %s, which is not there", x.Segment)
		}
		if m.Contains(x.Ordinal) == x.Entered {
			w.fatalf("S2: profile %d of %s: entered %v, and was so before (cause %s)", x.Ordinal, x.Segment, x.Entered, x.Cause)
		}
		if x.AtMs > w.now {
			w.fatalf("S2: a transition at %d, which is in the future", x.AtMs)
		}
		put(m, x.Ordinal, x.Entered)
		key := expiredAt{x.Segment, x.Ordinal}
		if x.AtMs < w.last[key] {
			w.fatalf("S2: profile %d of %s: a transition (%s) at %d comes behind one at %d", x.Ordinal, x.Segment, x.Cause, x.AtMs, w.last[key])
		}
		w.last[key] = x.AtMs
		if x.Cause != segment.CauseExpiry {
			if x.Cause != segment.CauseDefinition && once[key] == x.Cause {
				w.fatalf("S2: profile %d of %s comes and goes by one %s", x.Ordinal, x.Segment, x.Cause)
			}
			once[key] = x.Cause
			continue
		}
		if w.expired[key] >= x.AtMs {
			w.fatalf("S2: profile %d of %s changes by time at %d, and did at %d before", x.Ordinal, x.Segment, x.AtMs, w.expired[key])
		}
		w.expired[key] = x.AtMs
		if !passing || !w.e.Live(x.Segment) || x.AtMs <= max(w.liveMs, w.changed[x.Ordinal]) {
			continue
		}
		w.expiries++
		for _, t := range []int64{x.AtMs - 1, x.AtMs} {
			if is := w.defs[x.Segment].Naive(w.profiles[x.Ordinal], t, w.lookup); is == x.Entered != (t == x.AtMs) {
				w.fatalf("S2: profile %d of %s: entered %v at %d, and is a member %v at %d", x.Ordinal, x.Segment, x.Entered, x.AtMs, is, t)
			}
		}
	}
}

// at draws an instant to ask about.
func (w *world) at() int64 {
	switch w.rng.IntN(4) {
	case 0:
		return w.now
	case 1:
		return w.now + w.rng.Int64N(40*86_400_000)
	}
	if due, ok := w.e.NextDue(); ok {
		return max(w.now, due+int64(w.rng.IntN(3))-1)
	}
	return w.now
}

// sound checks that nothing unused is kept.
func (w *world) sound() {
	used := map[*leaf]int{}
	for _, s := range w.e.segments {
		for _, p := range []*program{s.live, s.next} {
			if p == nil {
				continue
			}
			for _, l := range p.leaves {
				used[l]++
			}
		}
	}
	for _, l := range w.e.leaves {
		if used[l] == 0 || l.uses != used[l] || w.e.byID[l.id] != l || l.state != nil && w.e.states[l.state.id] != l.state {
			w.fatalf("leaf %s is used %d times, says %d", l.key, used[l], l.uses)
		}
	}
	sources := 0
	for typ, k := range w.e.types {
		sources += len(k.sources)
		for _, s := range k.sources {
			if len(s.states) == 0 || w.e.sources[s.key] != s {
				w.fatalf("a source of %s has no use", typ)
			}
		}
	}
	if len(used) != len(w.e.leaves) || len(used) != len(w.e.byID) || sources != len(w.e.sources) {
		w.fatalf("%d leaves are used, %d and %d are there; %d sources of %d", len(used), len(w.e.leaves), len(w.e.byID), sources, len(w.e.sources))
	}
	for _, l := range w.e.timers {
		if used[l] == 0 {
			w.fatalf("leaf %s has something due and is not used", l.key)
		}
	}
	for _, st := range w.e.states {
		if len(st.leaves) == 0 {
			w.fatalf("state %d has no leaves", st.id)
		}
		if !slices.Contains(w.e.kinOf(st).groups, st.group) || st.group.states[st.slot] != st {
			w.fatalf("state %d is not where it says", st.id)
		}
	}
	seated := 0
	for _, k := range append(slices.Collect(maps.Values(w.e.types)), w.e.spans) {
		for _, g := range k.groups {
			seated += len(g.live)
			w.soundGroup(g)
		}
	}
	if seated != len(w.e.states) {
		w.fatalf("%d states have rows of %d", seated, len(w.e.states))
	}
}

// soundGroup checks that each section is counted, of a state that is there or
// on its way out, and that nothing lies outside that no row knows.
func (w *world) soundGroup(g *group) {
	if err := auditGroup(g); err != nil {
		w.fatalf("%v", err)
	}
	if g.retired != 0 && !slices.Contains(w.e.stale, g) {
		w.fatalf("what is stale in a group is never dropped")
	}
}

// check compares the engine with the model.
func (w *world) check() {
	w.sound()
	t := w.at()
	for _, id := range w.e.sortedIDs() {
		if !w.e.Live(id) {
			continue
		}
		want := roaring.New()
		for o, p := range w.profiles {
			if w.root[o] == uint32(o) && w.defs[id].Naive(p, t, w.lookup) {
				want.Add(uint32(o))
			}
		}
		w.cases++
		w.members += int(want.GetCardinality())
		got := w.e.Members(id, t)
		if !got.Equals(want) {
			o := roaring.Xor(got, want).Minimum()
			w.fatalf("S1: %s at %d: engine has %v, naive has %v\n%s\nprofile %d: %s", id, t, got, want, w.defs[id].Canonical(), o, describe(w.profiles[o]))
		}
		if n := w.e.Count(id, t); n != want.GetCardinality() {
			w.fatalf("S1: %s at %d: count %d, want %v", id, t, n, want)
		}
		from, limit := uint32(w.rng.IntN(len(w.profiles)+1)), 1+w.rng.IntN(10)
		page := w.e.Page(id, from, limit, t)
		all := slices.DeleteFunc(want.ToArray(), func(o uint32) bool { return o < from })
		if !slices.Equal(page, all[:min(limit, len(all))]) {
			w.fatalf("S1: %s at %d: page from %d is %v, members are %v", id, t, from, page, want)
		}
		for o := range w.profiles {
			if w.e.Contains(id, uint32(o), t) != want.Contains(uint32(o)) {
				w.fatalf("S1: %s at %d: profile %d", id, t, o)
			}
		}
		for _, l := range w.defs[id].Leaves() {
			if l.Kind == segment.KindSegment {
				continue
			}
			m, ok := w.e.Leaf(l.Key(), t)
			if !ok {
				w.fatalf("leaf %s of a live segment is not known", l.Key())
			}
			for o, p := range w.profiles {
				if w.root[o] == uint32(o) && l.NaiveCondition(p, t, w.lookup) != (m.Contains(uint32(o)) != l.Negated()) {
					w.fatalf("S1: leaf %s at %d: profile %d", l.Key(), t, o)
				}
			}
		}
		if t == w.now && !w.e.Working() && !w.said[id].Equals(want) {
			w.fatalf("S2: %s: transitions say %v, members are %v", id, w.said[id], want)
		}
	}
}

func describe(p *segment.NaiveProfile) string {
	s := fmt.Sprintf("anonymous %v, created %d, attributes %s, geo %s, consents %v, lists %v\n", p.Anonymous, p.CreatedAtMs, p.Attributes, p.Geo, p.Consents, p.Lists)
	for _, e := range p.Events {
		s += fmt.Sprintf("  %d %s %s\n", e.TimeMs, e.Type, e.Properties)
	}
	return s
}

// finish advances the engine until nothing is due.
func (w *world) finish() {
	for range 10_000 {
		w.offset++
		w.both(func(e *Engine) { e.Advance(w.now, 1<<30) })
		w.both(func(e *Engine) { e.Continue(1 << 20) })
		w.hear(false)
		w.chunks = nil
		if _, ok := w.e.Work(nothing); !ok && !w.e.Working() {
			return
		}
		w.makeChunk()
		for len(w.chunks) > 0 {
			w.loadChunk()
		}
	}
	w.fatalf("building does not end")
}

// nothing is passed over.
func nothing(uint32) bool { return false }
