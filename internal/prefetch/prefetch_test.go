package prefetch

import "testing"

// TestPrefetchOfAnything: a prefetch fails nowhere, also of what there is not and at the ends
// of what there is.
func TestPrefetchOfAnything(t *testing.T) {
	Line[byte](nil)
	Bytes(nil, 100)
	for n := range 200 {
		b := make([]byte, n)
		Bytes(b, 1000)
		Bytes(b, 70)
		Bytes(b, 0)
		if n > 0 {
			Line(&b[n-1])
		}
	}
	m := map[string]*[4]uint64{"here": {}}
	Line(m["here"])
	Line(m["not here"])
}

// BenchmarkLine is what a prefetch costs of a line that is near.
func BenchmarkLine(b *testing.B) {
	var x uint64
	for range b.N {
		Line(&x)
	}
}
