// Package background is for long work beside requests. A goroutine that computes without
// a pause keeps its processor for ten milliseconds before Go takes it away, and where there
// are two processors, requests wait that long for each such goroutine. Work that yields every
// few hundred microseconds runs while the processors have nothing else to do, and now and
// then when they always have.
package background

import (
	"runtime"
	"slices"
)

// Yield lets all goroutines run first that are ready to. It costs some 100 ns when there are none.
func Yield() { runtime.Gosched() }

// comparisons is how many of them SortFunc makes between two yields: some 100 µs.
const comparisons = 1 << 13

// SortFunc is [slices.SortFunc] that yields.
func SortFunc[S ~[]E, E any](x S, cmp func(a, b E) int) {
	n := 0
	slices.SortFunc(x, func(a, b E) int {
		if n++; n%comparisons == 0 {
			Yield()
		}
		return cmp(a, b)
	})
}
