package historytest

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// S1 compares the members of random definitions over random histories with
// those of the naive evaluator, at random instants (the edges of windows ± 1 ms
// among them), cuts and merges.
//
// MUSTER_SEED is the first seed (default 1), MUSTER_S1_HISTORIES how many
// histories are drawn (by default so many, with MUSTER_LONG=1 60); each is asked
// s1Questions questions, half as many at the quick level.
func S1(t *testing.T, open Open, histories int) {
	if testlevel.Long() {
		histories = 60
	}
	if testlevel.Quick() {
		histories = 1
	}
	if n, err := strconv.Atoi(os.Getenv("MUSTER_S1_HISTORIES")); err == nil {
		histories = n
	}
	first := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		first = n
	}
	s := open(t)
	members, cases := 0, 0
	var next int64
	for i := range histories {
		seed := first + uint64(i)
		w := drawWorld(seed, next)
		next = w.end
		if err := s.Append(context.Background(), &w.batch); err != nil {
			t.Fatal(err)
		}
		for range testlevel.Count(s1Questions/2, s1Questions) {
			m, ok := w.ask(t, s)
			if !ok {
				t.Fatalf("repeat with MUSTER_SEED=%d MUSTER_S1_HISTORIES=%d", seed, 1)
			}
			cases++
			members += m
		}
	}
	t.Logf("%d cases, %d members in all, seeds %d to %d", cases, members, first, first+uint64(histories)-1)
	if members < cases {
		t.Fatal("the questions hit too few members to tell anything")
	}
}
