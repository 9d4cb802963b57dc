package report

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQuantile finds the least value that the share does not exceed by counting.
func TestQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		times := make([]time.Duration, 1+rng.IntN(250))
		for i := range times {
			times[i] = time.Duration(rng.IntN(50))
		}
		slices.Sort(times)
		for _, hundredths := range []int{1, 50, 90, 99, 100} {
			got := Quantile(times, float64(hundredths)/100)
			at := slices.IndexFunc(times, func(v time.Duration) bool {
				n := 0
				for _, x := range times {
					if x <= v {
						n++
					}
				}
				return n*100 >= hundredths*len(times)
			})
			if got != times[at] {
				t.Fatalf("%d %% of %v: %d, want %d", hundredths, times, got, times[at])
			}
		}
	}
	if Quantile[time.Duration](nil, 0.5) != 0 {
		t.Error("nothing has a quantile")
	}
}

func TestSpread(t *testing.T) {
	values := []float64{9, 1, 2}
	if got := NewSpread(values); got != (Spread{2, 1, 9}) || values[0] != 9 {
		t.Errorf("%+v of %v", got, values)
	}
	for want, values := range map[float64][]float64{0: nil, 3: {3}, 5: {9, 1}, 2.5: {4, 1, 3, 2}} {
		if got := Median(values); got != want {
			t.Errorf("the median of %v is %v, want %v", values, got, want)
		}
	}
}

func TestRatio(t *testing.T) {
	if a, b := Ratio(3, 2), Ratio(3, 0); a != 1.5 || b != 0 {
		t.Errorf("%v, %v", a, b)
	}
}

func TestTargets(t *testing.T) {
	targets := []Target{AtMost("a", 10, 10), AtMost("b", 10.1, 10), AtLeast("c", 10, 10), AtLeast("d", 9.9, 10)}
	var out bytes.Buffer
	if err := PrintTables(&out, PrintTargets(targets)); err != nil {
		t.Fatal(err)
	}
	const want = "\nMET: a: 10, at most 10\nMISSED: b: 10.1, at most 10\nMET: c: 10, at least 10\nMISSED: d: 9.9, at least 10\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if err := PrintTables(&out, PrintTargets(nil)); err != nil || strings.Count(out.String(), "\n\n") > 0 {
		t.Errorf("no targets are no section: %q, %v", out.String(), err)
	}
}
