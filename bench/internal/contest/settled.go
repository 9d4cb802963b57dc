package contest

import (
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/cpuspeed"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/report"
)

// Settled is the latencies of the paced phase without what the machine's processors had to do
// with: those of the requests that were neither under way while the processors were slow, nor
// in the time that the queue of a slow phase takes to go (see [cpuspeed.Speed.Settled]).
type Settled struct {
	Requests int `json:"requests"`
	Latencies
}

// settled returns the latencies at the processors' usual speed.
func settled(r *loader.Result, speed cpuspeed.Speed) Settled {
	var took []time.Duration
	for _, w := range r.Waits {
		if s := r.Span(w); speed.Settled(s.From, s.To) {
			took = append(took, s.To.Sub(s.From))
		}
	}
	return Settled{Requests: len(took), Latencies: latenciesOf(took)}
}

// Latencies are quantiles of times.
type Latencies struct {
	P50Millis  float64 `json:"p50_ms"`
	P99Millis  float64 `json:"p99_ms"`
	P999Millis float64 `json:"p999_ms"`
	MaxMillis  float64 `json:"max_ms"`
}

// latenciesOf returns the quantiles of times, which it sorts; all are 0 when there are none.
func latenciesOf(times []time.Duration) Latencies {
	slices.Sort(times)
	ms := func(q float64) float64 { return float64(report.Quantile(times, q)) / 1e6 }
	return Latencies{P50Millis: ms(0.5), P99Millis: ms(0.99), P999Millis: ms(0.999), MaxMillis: ms(1)}
}

// watched runs the paced phase with each request told, and tells how fast the processors ran
// meanwhile.
func watched(fleet *loader.Fleet, into *Muster, phase func() (*loader.Result, error)) func() (*loader.Result, error) {
	return func() (*loader.Result, error) {
		fleet.Each = true
		defer func() { fleet.Each = false }()
		watch := cpuspeed.Start()
		defer func() { into.Processors = watch.Stop() }()
		return phase()
	}
}
