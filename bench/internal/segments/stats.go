package segments

import (
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
)

// Latency is a distribution of times in microseconds.
type Latency struct {
	Reads     int     `json:"reads"`
	P50Micros float64 `json:"p50_us"`
	P99Micros float64 `json:"p99_us"`
	MaxMicros float64 `json:"max_us"`
}

// newLatency sorts the times.
func newLatency(times []time.Duration) Latency {
	slices.Sort(times)
	us := func(q float64) float64 { return float64(report.Quantile(times, q)) / 1e3 }
	return Latency{len(times), us(0.5), us(0.99), us(1)}
}

// spread is how much the largest value is above the smallest, as a ratio; 0 for
// less than two values.
func spread(values []float64) float64 {
	if len(values) < 2 || slices.Min(values) <= 0 {
		return 0
	}
	return slices.Max(values) / slices.Min(values)
}
