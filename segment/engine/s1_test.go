package engine

import (
	"os"
	"strconv"
	"testing"
)

// TestS1S2EngineEqualsNaive drives the engine with random events (late ones
// among them), changes of profiles, merges, definitions, steps of the clock,
// pieces of the past in any order, budgets too small for what is due, and
// restarts, and compares it at random instants, the edges of windows ± 1 ms
// among them, with the naive evaluator (S1), and what its transitions add up to
// with the members (S2).
//
// MUSTER_SEED repeats one seed, MUSTER_STEPS sets how many steps are made.
func TestS1S2EngineEqualsNaive(t *testing.T) {
	steps := 40_000
	if testing.Short() {
		steps = 4_000
	}
	if os.Getenv("MUSTER_LONG") != "" {
		steps = 1_000_000
	}
	if n, err := strconv.Atoi(os.Getenv("MUSTER_STEPS")); err == nil {
		steps = n
	}
	const perSeed = 400
	first, cases, members := uint64(1), 0, 0
	if s, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		first, steps = s, perSeed
	}
	for seed := first; steps > 0; seed++ {
		w := newWorld(t, seed)
		for range perSeed {
			steps--
			w.step()
			w.check()
		}
		w.settle()
		w.check()
		cases += w.cases
		members += w.members
	}
	t.Logf("%d cases, %d members in all, from seed %d", cases, members, first)
	if members < cases {
		t.Fatal("the questions hit too few members to tell anything")
	}
}
