package flows

import (
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
)

// Latency is a distribution of times in milliseconds.
type Latency struct {
	N         int     `json:"n"`
	P50Millis float64 `json:"p50_ms"`
	P99Millis float64 `json:"p99_ms"`
	MaxMillis float64 `json:"max_ms"`
}

// times collects durations; what would be below zero, because two clocks of one
// machine are read in different processes, is zero.
type times struct{ all []time.Duration }

func (t *times) add(d time.Duration) { t.all = append(t.all, max(d, 0)) }

func (t *times) summary() Latency {
	slices.Sort(t.all)
	ms := func(q float64) float64 { return float64(report.Quantile(t.all, q)) / 1e6 }
	return Latency{len(t.all), ms(0.5), ms(0.99), ms(1)}
}
