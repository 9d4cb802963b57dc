package segments

import (
	"math"
	"slices"
	"time"
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
	us := func(q float64) float64 { return float64(percentile(times, q)) / 1e3 }
	return Latency{len(times), us(0.5), us(0.99), us(1)}
}

// percentile is the least of the sorted times that a share q of them does not
// exceed; 0 when there are none.
func percentile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	// The product of 0.99 and 100 is a little more than 99.
	i := int(math.Ceil(q*float64(len(sorted))-1e-9)) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// median is the middle value, or the mean of the two in the middle; 0 when there
// are none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// spread is how much the largest value is above the smallest, as a ratio; 0 for
// less than two values.
func spread(values []float64) float64 {
	if len(values) < 2 || slices.Min(values) <= 0 {
		return 0
	}
	return slices.Max(values) / slices.Min(values)
}

// ratio is a/b, and 0 when there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
