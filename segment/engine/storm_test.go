package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
)

func stormSize() uint32 {
	switch {
	case testlevel.Long():
		return 1_000_000
	case testlevel.Quick():
		return 20_000
	}
	return 200_000
}

const dayMs = 86_400_000

// crowd is an engine of many profiles and some segments.
func crowd(t testing.TB, nowMs int64, profiles uint32, definitions ...string) *Engine {
	e := New()
	e.ShareWindows()
	e.Advance(nowMs, 1)
	for i, text := range definitions {
		n, err := segment.Parse([]byte(text), segment.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e.Define(fmt.Sprintf("s%d", i), n, 1, func(string) bool { return false })
	}
	for o := range profiles {
		e.Create(o)
		e.Profile(o, &segment.Facts{}, AllFields)
		e.Evaluate(o)
	}
	e.Transitions()
	return e
}

func act(e *Engine, o uint32, atMs int64, eventType, properties string) {
	e.Touch(o)
	e.Event(o, atMs, []byte(eventType), []byte(properties))
	e.Evaluate(o)
}

// pending is how many entries of a leaf are opened and not worked off.
func pending(e *Engine, id string) int {
	w := &e.segments[id].timed[0].wheel
	return w.Opened()
}

// TestL3WindowsRunOutAtOneInstant: the windows of very many profiles run out at
// one instant. Each call of Advance makes as many changes as its budget says,
// looks at a bounded number of profiles, and continues where the last one ended;
// reads in the middle are exact, and transitions come once, in order.
func TestL3WindowsRunOutAtOneInstant(t *testing.T) {
	const start = 19_797*int64(dayMs) + 12_345
	const budget = 4096
	n := stormSize()
	e := crowd(t, start, n,
		`{"kind":"activity","event":"act","window":{"last_days":1},"count":{"op":">=","value":1}}`,
		`{"kind":"segment","segment_id":"s0","member":false}`)
	for o := range n {
		act(e, o, start, "act", `{}`)
	}
	e.Transitions()
	at := start + dayMs
	// The bucket is opened ahead, a bounded number with each call.
	opens, _ := e.NextDue()
	width, steps := e.segments["s0"].timed[0].wheel.Width(), int64(n/preparedLooks+1)
	for i, was := int64(0), 0; i < steps; i++ {
		e.Advance(opens-width+i*width/steps, budget)
		is := pending(e, "s0")
		if is-was > preparedLooks {
			t.Fatalf("one call opens %d entries", is-was)
		}
		was = is
	}
	if got := pending(e, "s0"); got != int(n) {
		t.Fatalf("%d entries are opened ahead, want %d", got, n)
	}
	e.Advance(at-1, budget)
	if got := e.Count("s0", at-1); got != uint64(n) {
		t.Fatalf("a millisecond before, %d are members, want %d", got, n)
	}
	if got := e.Count("s0", at); got != 0 {
		t.Fatalf("at the instant, %d will be members", got)
	}
	early := map[uint32]bool{}
	next, calls := uint32(0), 0
	for done := false; !done; calls++ {
		done = e.Advance(at, budget)
		said := e.Transitions()
		if len(said) > 2*budget || len(said) < 2*budget && !done {
			t.Fatalf("one call makes %d transitions of two segments, its budget is %d", len(said), budget)
		}
		for i := 0; i < len(said); i += 2 {
			for early[next] {
				next++
			}
			left, entered := said[i], said[i+1]
			if left != (Transition{"s0", next, false, segment.CauseExpiry, at}) || entered != (Transition{"s1", next, true, segment.CauseExpiry, at}) {
				t.Fatalf("transitions %v and %v, want those of %d", left, entered, next)
			}
			next++
		}
		if back := uint64(len(early)); calls%16 == 3 {
			if got := e.Count("s0", at); got != back {
				t.Fatalf("in the middle, %d are members, want %d", got, back)
			}
			if got := e.Count("s1", at+5); got != uint64(n)-back {
				t.Fatalf("in the middle, %d are members of the other, want %d", got, uint64(n)-back)
			}
			if page := e.Page("s1", n-3, 5, at); len(page) != 3 || page[0] != n-3 || !e.Contains("s1", n-1, at) {
				t.Fatalf("in the middle, the last page is %v", page)
			}
		}
		// A profile that is not processed yet comes back: the exit is emitted
		// first.
		if o := n - 10 - uint32(calls); o > next && calls < 3 {
			act(e, o, at, "act", `{}`)
			early[o] = true
			said := e.Transitions()
			if len(said) != 4 || said[0] != (Transition{"s0", o, false, segment.CauseExpiry, at}) ||
				said[2] != (Transition{"s0", o, true, segment.CauseEvent, at}) {
				t.Fatalf("coming back says %v", said)
			}
		}
	}
	for early[next] {
		next++
	}
	if next != n {
		t.Fatalf("%d left, want %d", next, n)
	}
	if got := e.Members("s0", at); got.GetCardinality() != uint64(len(early)) {
		t.Fatalf("%d are members after, want %d", got.GetCardinality(), len(early))
	}
}

// TestL3MidnightOverSeveralLeaves: conditions with windows of several widths run
// out at one midnight. Each profile changes once per segment, in order, however
// many of its conditions change, and however small the budget.
func TestL3MidnightOverSeveralLeaves(t *testing.T) {
	const midnight = 19_800 * int64(dayMs)
	const budget = 1000
	n := stormSize() / 4
	windows := []int64{1, 7, 30}
	day := func(i int) string {
		return fmt.Sprintf(`{"kind":"activity","event":"act%d","window":{"last_days":%d},"count":{"op":">=","value":1}}`, windows[i], windows[i])
	}
	e := crowd(t, midnight-30*dayMs, n,
		`{"match":"any","conditions":[`+day(0)+`,`+day(1)+`,`+day(2)+`]}`,
		`{"match":"all","conditions":[`+day(0)+`,`+day(1)+`,`+day(2)+`]}`,
		`{"match":"all","conditions":[`+day(2)+`,{"kind":"segment","segment_id":"s1","member":false}]}`)
	for i := 2; i >= 0; i-- {
		at := midnight - windows[i]*dayMs
		for !e.Advance(at, budget) {
		}
		for o := range n {
			if int(o)%4 != i {
				act(e, o, at, fmt.Sprintf("act%d", windows[i]), `{}`)
			}
		}
		e.Transitions()
	}
	for !e.Advance(midnight-1, budget) {
	}
	if said := e.Transitions(); len(said) > 0 {
		t.Fatalf("before midnight, %v", said[0])
	}
	count := [3]uint64{e.Count("s0", midnight-1), e.Count("s1", midnight-1), e.Count("s2", midnight-1)}
	if want := [3]uint64{uint64(n), uint64(n) / 4, uint64(n) / 4 * 2}; count != want {
		t.Fatalf("before midnight, members are %v, want %v", count, want)
	}
	last := int64(-1)
	rank := map[string]int{"s0": 0, "s1": 1, "s2": 2}
	lastRank := 0
	for calls, done := 0, false; !done; calls++ {
		done = e.Advance(midnight, budget)
		said := e.Transitions()
		if len(said) > 2*budget {
			t.Fatalf("one call makes %d transitions", len(said))
		}
		for _, x := range said {
			o := int64(x.Ordinal)
			if o < last || o == last && rank[x.Segment] <= lastRank {
				t.Fatalf("%v comes after profile %d", x, last)
			}
			last, lastRank = o, rank[x.Segment]
			count[rank[x.Segment]]--
			if x.Entered || x.AtMs != midnight || x.Cause != segment.CauseExpiry {
				t.Fatalf("%v at midnight", x)
			}
		}
		if calls%32 != 5 {
			continue
		}
		for id := range rank {
			if got := e.Count(id, midnight); got != 0 {
				t.Fatalf("in the middle, %s has %d members", id, got)
			}
		}
	}
	if count != [3]uint64{} {
		t.Fatalf("%v have not left", count)
	}
}

// TestR1EntriesOutOfDate: everybody's instant has moved to later. That costs
// nothing of a budget, so that a replica whose wheels were rebuilt, and hold
// nothing out of date, stops where others do.
func TestR1EntriesOutOfDate(t *testing.T) {
	const start = 19_797 * int64(dayMs)
	n := stormSize() / 4
	e := crowd(t, start, n, `{"kind":"activity","event":"act","window":{"last_days":1},"count":{"op":">=","value":1}}`)
	for _, at := range []int64{start, start + dayMs/2} {
		e.Advance(at, 1)
		for o := range n {
			act(e, o, at, "act", `{}`)
		}
	}
	e.Transitions()
	if !e.Advance(start+dayMs, 1) || len(e.Transitions()) != 0 {
		t.Fatal("entries out of date cost something")
	}
	if got := e.Count("s0", start+dayMs); got != uint64(n) {
		t.Fatalf("%d are members, want %d", got, n)
	}
}

// TestL3FarInstants: what falls due years ahead of a narrow window is looked at
// a few times until then, and leaves at its instant.
func TestL3FarInstants(t *testing.T) {
	const n = 1000
	start := int64(19_797) * dayMs
	e := crowd(t, start, n,
		`{"kind":"activity","event":"act","where":[{"property":"d","op":"not_in_last_days","value":0.0001}],"count":{"op":">=","value":1}}`,
		`{"kind":"activity","event":"act","window":{"last_days":36500},"where":[{"property":"d","op":"in_last_days","value":0.00000002}],"count":{"op":">=","value":1}}`)
	for o := range uint32(n) {
		act(e, o, start, "act", `{"d":"2034-05-06T07:08:09Z"}`)
	}
	e.Transitions()
	looks := 0
	for l := range 2 {
		leaf := e.segments[fmt.Sprintf("s%d", l)].timed[0]
		at := int64(2_030_512_089_000)
		for {
			due, ordinal := leaf.wheel.Head()
			if due >= at {
				break
			}
			if ordinal >= 0 {
				t.Fatalf("leaf %d is due at %d", l, due)
			}
			for !e.Advance(due, 1<<20) {
			}
			if looks++; looks > 20 {
				t.Fatalf("leaf %d is looked at %d times, next at %d", l, looks, due)
			}
		}
	}
	e.Advance(2_030_512_088_999, 1<<20)
	if got := [2]uint64{e.Count("s0", e.NowMs()), e.Count("s1", e.NowMs())}; got != [2]uint64{n, 0} {
		t.Fatalf("before, members are %v", got)
	}
	e.Advance(2_030_512_089_000, 1<<20)
	if got := [2]uint64{e.Count("s0", e.NowMs()), e.Count("s1", e.NowMs())}; got != [2]uint64{0, n} {
		t.Fatalf("at the instant, members are %v", got)
	}
}

// TestL3OneInstantFromAllSides: entries of one instant, some that waited in
// buckets and some that came in late and in any order, of several leaves, are
// worked off in order of ordinals, whatever the budget.
func TestL3OneInstantFromAllSides(t *testing.T) {
	const start, n = 19_800*int64(dayMs) + 77_777, 200
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var some []string
		for i := range 3 {
			some = append(some, fmt.Sprintf(`{"kind":"activity","event":"act%d","window":{"last_days":1},"count":{"op":">=","value":1}}`, i))
		}
		e := crowd(t, start, n, some...)
		order := rng.Perm(n)
		for i, o := range order {
			if i == n/2 {
				for !e.Advance(start+dayMs-5, n) {
				}
			}
			act(e, uint32(o), start, fmt.Sprintf("act%d", rng.IntN(3)), `{}`)
		}
		e.Transitions()
		next := uint32(0)
		for done := false; !done; {
			done = e.Advance(start+dayMs, 1+rng.IntN(9))
			for _, x := range e.Transitions() {
				if x.Ordinal != next || x.AtMs != start+dayMs {
					t.Fatalf("seed %d: %v, want the exit of %d", seed, x, next)
				}
				next++
			}
		}
		if next != n {
			t.Fatalf("seed %d: %d left, want %d", seed, next, n)
		}
	}
}

// TestS2TouchedWhileLagging (S2): a profile to which something happens while
// the engine lags is brought up to its time, and what was due for it before is
// not done again.
func TestS2TouchedWhileLagging(t *testing.T) {
	const start, n = 19_800 * int64(dayMs), 10
	e := crowd(t, start, n, `{"kind":"activity","event":"act","window":{"last_days":1},"count":{"op":"=","value":1}}`)
	for _, at := range []int64{start, start + 10_000} {
		e.Advance(at, n)
		for o := range uint32(n) {
			act(e, o, at, "act", `{}`)
		}
	}
	e.Transitions()
	// Each enters when one of two has run out, and leaves when both have.
	if e.Advance(start+2*dayMs, 3) {
		t.Fatal("the engine does not lag")
	}
	said := append([]Transition(nil), e.Transitions()...)
	act(e, n-1, start+2*dayMs, "other", `{}`)
	act(e, n-2, start+2*dayMs, "act", `{}`)
	said = append(said, e.Transitions()...)
	for !e.Advance(start+2*dayMs, 1) {
	}
	said = append(said, e.Transitions()...)
	of := map[uint32][]int64{}
	for _, x := range said {
		of[x.Ordinal] = append(of[x.Ordinal], x.AtMs)
	}
	for o := range uint32(n) {
		want := []int64{start + dayMs, start + dayMs + 10_000}
		if o == n-2 {
			want = append(want, start+2*dayMs)
		}
		if !slices.Equal(of[o], want) {
			t.Errorf("profile %d changes at %v, want %v", o, of[o], want)
		}
	}
}

// TestS2ManyFlipsJudgedOnce (S2): where several answers of a profile change at
// once, a segment is judged after those it refers to, and once.
func TestS2ManyFlipsJudgedOnce(t *testing.T) {
	all := []string{
		`{"kind":"attribute","field":"last_name","op":"=","value":"B"}`,
		`{"kind":"attribute","field":"first_name","op":"=","value":"A"}`,
		`{"kind":"segment","segment_id":"s1"}`,
		`{"match":"all","conditions":[{"kind":"attribute","field":"last_name","op":"=","value":"B"},{"kind":"segment","segment_id":"s2","member":false}]}`,
		`{"match":"all","conditions":[{"kind":"segment","segment_id":"s0"},{"kind":"segment","segment_id":"s1","member":false}]}`,
	}
	for n := 3; n <= len(all); n++ {
		e := crowd(t, 1000, 0, all[:n]...)
		e.Create(0)
		e.Profile(0, &segment.Facts{}, AllFields)
		e.Evaluate(0)
		e.Touch(0)
		e.Profile(0, &segment.Facts{Fields: segment.Fields{FirstName: []byte("A"), LastName: []byte("B")}}, AllFields)
		e.Evaluate(0)
		said := e.Transitions()
		if len(said) != 3 || !said[0].Entered || !said[1].Entered || said[2].Segment != "s2" {
			t.Errorf("of %d segments, transitions are %v", n, said)
		}
	}
}
