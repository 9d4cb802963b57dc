package segments

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The percentile is the least value that the share does not exceed: found here
// by counting.
func TestPercentile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		times := make([]time.Duration, 1+rng.IntN(250))
		for i := range times {
			times[i] = time.Duration(rng.IntN(50))
		}
		slices.Sort(times)
		for _, hundredths := range []int{1, 50, 90, 99, 100} {
			got := percentile(times, float64(hundredths)/100)
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
	if percentile(nil, 0.5) != 0 {
		t.Error("nothing has a percentile")
	}
	l := newLatency([]time.Duration{4 * time.Microsecond, time.Millisecond, 2 * time.Microsecond})
	if l != (Latency{3, 4, 1000, 1000}) {
		t.Errorf("%+v", l)
	}
}

func TestMedianAndSpread(t *testing.T) {
	values := []float64{5, 1, 3}
	if median(values) != 3 || median([]float64{4, 1, 3, 2}) != 2.5 || median(nil) != 0 || values[0] != 5 {
		t.Error("median")
	}
	if spread([]float64{4, 5, 6}) != 1.5 || spread([]float64{4}) != 0 || spread([]float64{0, 1}) != 0 {
		t.Error("spread")
	}
}

func TestRoundsJoin(t *testing.T) {
	r := join([]Rate{{Events: 100, Seconds: 1, CPUMicros: 4, ApplyMicros: 2, Transitions: 3, Checkpoints: 1}, {Events: 300, Seconds: 1, CPUMicros: 8, ApplyMicros: 6, Transitions: 4}})
	if r.Events != 400 || r.PerSec != 200 || r.CPUMicros != 7 || r.ApplyMicros != 5 || r.LeastMicros != 4 || r.Transitions != 7 || r.Checkpoints != 1 || len(r.Rounds) != 2 {
		t.Errorf("%+v", r)
	}
	if r := join(nil); r.Events != 0 || r.LeastMicros != 0 {
		t.Errorf("%+v", r)
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		value   float64
		atLeast bool
		met     bool
	}{{10, false, true}, {10.1, false, false}, {10, true, true}, {9.9, true, false}} {
		if got := newTarget("x", c.value, 10, c.atLeast); got.Met != c.met {
			t.Errorf("%+v", got)
		}
	}
	r := Report{Steps: []*Step{
		{Profiles: 10, Ingest: Ingest{Without: Rate{LeastMicros: 2}, With: Rate{LeastMicros: 4}}},
		{Profiles: 100, Ingest: Ingest{Without: Rate{LeastMicros: 3}}}, // stopped before the second
	}}
	r.conclude()
	if r.Sizes != (Flatness{Without: 1.5}) {
		t.Errorf("%+v", r.Sizes)
	}
}
