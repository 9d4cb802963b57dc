package segments

import (
	"testing"
	"time"
)

func TestLatency(t *testing.T) {
	l := newLatency([]time.Duration{4 * time.Microsecond, time.Millisecond, 2 * time.Microsecond})
	if l != (Latency{3, 4, 1000, 1000}) {
		t.Errorf("%+v", l)
	}
}

func TestSpread(t *testing.T) {
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

func TestFlatness(t *testing.T) {
	r := Report{Steps: []*Step{
		{Profiles: 10, Ingest: Ingest{Without: Rate{LeastMicros: 2}, With: Rate{LeastMicros: 4}}},
		{Profiles: 100, Ingest: Ingest{Without: Rate{LeastMicros: 3}}}, // stopped before the second
	}}
	r.conclude()
	if r.Sizes != (Flatness{Without: 1.5}) {
		t.Errorf("%+v", r.Sizes)
	}
}
