package builds

import "testing"

// TestRatioBounds compares the bounds with those of tables of the sign test: of 6 pairs the
// outermost, of 20 the sixth, of 40 the fourteenth from both ends.
func TestRatioBounds(t *testing.T) {
	for n, k := range map[int]int{6: 1, 8: 1, 9: 2, 20: 6, 40: 14, 100: 40} {
		a, b := make([]float64, n), make([]float64, n)
		for i := range a { // the ratios are 1 to n, in an order that is not theirs
			b[i] = float64(i%3 + 1)
			a[i] = b[i] * float64(1+(i*7+3)%n)
			if n%7 == 0 {
				t.Fatal("7 must not divide n")
			}
		}
		got := newRatio(a, b)
		if want := (Ratio{float64(n+1) / 2, float64(k), float64(n + 1 - k)}); got != want {
			t.Errorf("%d pairs: %+v, want %+v", n, got, want)
		}
	}
}

// TestCompare takes the first build's figures by the second's, and not the other way round.
func TestCompare(t *testing.T) {
	r := Report{Builds: [2]Build{{CPUMicrosPerEvent: 10}, {CPUMicrosPerEvent: 40}}}
	for range minPairs {
		r.Builds[0].Turns = append(r.Builds[0].Turns, Turn{EventsPerSecond: 300, CPUMicrosPerEvent: 5, P99Millis: 8})
		r.Builds[1].Turns = append(r.Builds[1].Turns, Turn{EventsPerSecond: 100, CPUMicrosPerEvent: 20, P99Millis: 2})
	}
	r.compare()
	if r.Rate != (Ratio{3, 3, 3}) || r.CPU != (Ratio{0.25, 0.25, 0.25}) || r.P99 != (Ratio{4, 4, 4}) || r.WholeCPU != 0.25 {
		t.Errorf("%+v", r)
	}
}
