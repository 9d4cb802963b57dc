package engine

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// stateHash is what the engine's state comes to.
func stateHash(t *testing.T, e *Engine) string {
	t.Helper()
	h := sha256.New()
	if err := e.Hash(func(b []byte) { fmt.Fprintf(h, "%d:%s", len(b), b) }); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestWindowsShareAState: windows over the same events come to share the state of the
// longest, in whatever order their pasts are loaded, and all at once where they were apart.
// Nothing is left to share then, which a restart would share. Without ShareWindows, as logs
// of before have it, they stay apart.
func TestWindowsShareAState(t *testing.T) {
	days := []int{3, 1, 2}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, shares := range []string{"always", "late", "never"} {
			t.Run(fmt.Sprint(order, shares), func(t *testing.T) {
				e := New()
				e.Advance(100_000_000, 1)
				for o := range uint32(hostileProfiles) {
					e.Create(o)
					e.Profile(o, hostileFacts(o), AllFields)
					e.Evaluate(o)
				}
				if shares == "always" {
					e.ShareWindows()
				}
				slices.Sort(days)
				for i, n := range days { // ascending: none can do for a later one
					defined(t, e, fmt.Sprint("s", n), fmt.Sprintf(`{"kind":"activity","event":"act","window":{"last_days":%d},"count":{"op":">=","value":2}}`, n), int64(i+1))
				}
				// A filter of its own and another kind are not concerned.
				defined(t, e, "filtered", `{"kind":"activity","event":"act","where":[{"property":"p","op":"=","value":1}],"window":{"last_days":9},"count":{"op":">=","value":2}}`, 4)
				defined(t, e, "sum", `{"kind":"activity","event":"act","window":{"last_days":9},"aggregate":{"fn":"sum","property":"p","op":">","value":2}}`, 5)
				ids := slices.Clone(e.byState)
				for _, at := range append(slices.Clone(order), 3, 4) {
					for !ids[at].live {
						w, ok := e.Work(func(id uint32) bool { return id != ids[at].id })
						if !ok {
							t.Fatal("the state asks for nothing")
						}
						l := NewLoader(w.State)
						for i := range 20 {
							l.Add(uint32(i%hostileProfiles), 99_999_000+int64(i), fmt.Appendf(nil, `{"p":%d}`, i))
						}
						chunk, _ := l.Chunk(60)
						if err := e.Load(chunk, func(o uint32) uint32 { return o }); err != nil {
							t.Fatal(err)
						}
					}
				}
				want := 3
				if shares == "never" {
					want = 5
				}
				if shares == "late" {
					if len(e.states) != 5 {
						t.Fatalf("%d states before", len(e.states))
					}
					e.ShareWindows()
				}
				if len(e.states) != want || len(e.byState) != want {
					t.Fatalf("%d states, want %d", len(e.states), want)
				}
				for e.Working() {
					e.Continue(100)
				}
				for _, n := range days {
					id := fmt.Sprint("s", n)
					if !e.Live(id) || e.Count(id, e.NowMs()) != hostileProfiles || e.Count(id, 100_000_000+int64(n)*86_400_000+1) != 0 {
						t.Errorf("%s: %v, %d members, %d behind its window", id, e.Live(id), e.Count(id, e.NowMs()), e.Count(id, 100_000_000+int64(n)*86_400_000+1))
					}
				}
				if shares == "never" {
					return
				}
				before := stateHash(t, e)
				e.shares = false
				e.ShareWindows()
				if stateHash(t, e) != before {
					t.Error("something was left to share")
				}
			})
		}
	}
}

// TestS1ManyWindowsOfOneState (S1): of many windows that share a state, each event and each
// instant changes the answers that it concerns, and no other.
func TestS1ManyWindowsOfOneState(t *testing.T) {
	const people, windows = 3, 40
	rng := rand.New(rand.NewPCG(5, 5))
	now := int64(19_800 * dayMs)
	e := crowd(t, now, people)
	type question struct{ days, n int }
	asked := map[string]question{}
	ops := []string{">=", ">", "=", "<", "between"}
	for i := range windows {
		q := question{1 + i, 1 + rng.IntN(4)}
		id, op := fmt.Sprint("w", i), ops[0]
		if i%8 == 7 {
			op = ops[1+rng.IntN(3)]
		}
		asked[id+op] = q
		defineSegment(t, e, id+op, fmt.Sprintf(`{"kind":"activity","event":"act","window":{"last_days":%d},"count":{"op":%q,"value":%d}}`, q.days, op, q.n))
	}
	states := map[string]int{}
	for _, st := range e.states {
		states[fmt.Sprint(st.spec.Keep)]++
	}
	for keep, n := range states {
		if n > 1 {
			t.Fatalf("%d states keep %s times", n, keep)
		}
	}
	var times [people][]int64
	members := 0
	for step := range 3000 {
		now += rng.Int64N(dayMs)
		e.Advance(now, 1<<30)
		o := rng.IntN(people)
		if rng.IntN(3) > 0 {
			at := now - rng.Int64N(1+rng.Int64N(10*dayMs)) // some come late
			times[o] = append(times[o], at)
			act(e, uint32(o), at, "act", `{}`)
		}
		if step%10 != 0 {
			continue
		}
		for id, q := range asked {
			for o := range people {
				n := 0
				for _, at := range times[o] {
					if at > now-int64(q.days)*dayMs {
						n++
					}
				}
				want := n >= q.n
				switch id[len(id)-1] {
				case '>':
					want = n > q.n
				case '<':
					want = n < q.n
				case '=':
					want = n == q.n || id[len(id)-2] == '>' && n > q.n
				}
				if have := e.Contains(id, uint32(o), now); have != want {
					t.Fatalf("step %d: %s of %d, %d events in %d days: %v", step, id, o, n, q.days, have)
				} else if want {
					members++
				}
			}
		}
		e.Transitions()
	}
	if members < 1000 {
		t.Errorf("%d members are too few to tell anything", members)
	}
}
