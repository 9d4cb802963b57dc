package flows

import (
	"slices"
	"time"
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

func newTimes() *times { return &times{} }

func (t *times) add(d time.Duration) { t.all = append(t.all, max(d, 0)) }

func (t *times) summary() Latency {
	if len(t.all) == 0 {
		return Latency{}
	}
	slices.Sort(t.all)
	// The least value that so many percent do not exceed.
	ms := func(percent int) float64 {
		return float64(t.all[max((len(t.all)*percent+99)/100-1, 0)]) / 1e6
	}
	return Latency{len(t.all), ms(50), ms(99), ms(100)}
}

// ratio is a/b, and 0 when there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
