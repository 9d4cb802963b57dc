package background

import (
	"cmp"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

// While it sorts, another goroutine runs on the only processor, and not just where Go takes
// it away after ten milliseconds.
func TestSortFuncYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var stop atomic.Bool
	turns := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; !stop.Load(); turns++ {
			Yield()
		}
	}()
	rng := rand.New(rand.NewPCG(2, 2))
	x := make([]int, 50_000)
	for i := range x {
		x[i] = rng.Int()
	}
	SortFunc(x, cmp.Compare[int])
	stop.Store(true)
	<-ended
	if turns < 20 {
		t.Errorf("the other goroutine had %d turns", turns)
	}
}

func TestSortFuncSorts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := make([]int, 30_000)
	for i := range x {
		x[i] = rng.IntN(20_000)
	}
	want := slices.Sorted(slices.Values(x))
	SortFunc(x, cmp.Compare[int])
	if !slices.Equal(x, want) {
		t.Error("not sorted")
	}
}
