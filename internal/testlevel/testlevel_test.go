package testlevel

import (
	"sync"
	"testing"
)

func TestQuick(t *testing.T) {
	for _, x := range []struct {
		short, named bool
		env          string
		want         bool
	}{
		{want: true},
		{named: true},
		{env: EnvAll},
		{env: EnvLong},
		{short: true, want: true},
		{short: true, named: true, want: true},
		{short: true, env: EnvAll, want: true},
		{short: true, env: EnvLong, want: true},
	} {
		env := func(name string) string {
			if name == x.env {
				return "1"
			}
			return ""
		}
		if got := quick(x.short, x.named, env); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// TestEachSeed: each seed is simulated once, and what was compared is counted once all are over.
func TestEachSeed(t *testing.T) {
	t.Setenv("MUSTER_SEEDS", "")
	t.Setenv("MUSTER_SEED", "")
	var mu sync.Mutex
	seen, counted := map[uint64]int{}, 0
	t.Run("all", func(t *testing.T) {
		EachSeed(t, 5, func(_ *testing.T, seed uint64) {
			mu.Lock()
			defer mu.Unlock()
			seen[seed]++
		}, func(seeds int) {
			if counted++; seeds != 5 || len(seen) != 5 {
				t.Errorf("counted %d seeds after %d", seeds, len(seen))
			}
		})
	})
	if len(seen) != 5 || counted != 1 {
		t.Errorf("seeds %v, counted %d times", seen, counted)
	}
	for seed, n := range seen {
		if n != 1 {
			t.Errorf("seed %d was simulated %d times", seed, n)
		}
	}
}
