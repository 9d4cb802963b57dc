package report

import (
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
)

// Machine is where a command ran.
type Machine struct {
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// ThisMachine returns the machine of this process.
func ThisMachine() Machine { return Machine{runtime.NumCPU(), runtime.Version()} }

// Phase is the load of one phase.
type Phase struct {
	Events   uint64 `json:"events"`
	Requests uint64 `json:"requests"`
	Failed   uint64 `json:"failed_requests"`
	// Failure is the first of the failed requests' errors.
	Failure         string  `json:"first_failure,omitempty"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	// OfferedPerSecond is the rate asked for, 0 in a closed loop.
	OfferedPerSecond float64 `json:"offered_per_second,omitempty"`
	// Latencies are per request. In an open loop they count from when the request
	// was due.
	P50Millis  float64 `json:"p50_ms"`
	P99Millis  float64 `json:"p99_ms"`
	P999Millis float64 `json:"p999_ms"`
	MaxMillis  float64 `json:"max_ms"`
}

// NewPhase returns the figures of a result.
func NewPhase(r *loader.Result) Phase {
	p := Phase{Events: r.Events, Requests: r.Requests, Failed: r.Failed, Seconds: r.Elapsed.Seconds(), EventsPerSecond: r.EventsPerSecond()}
	if r.FirstFailure != nil {
		p.Failure = r.FirstFailure.Error()
	}
	p.SetLatencies(r.Latency)
	return p
}

// Measure runs a load on groups of processes, given by their process ids, and returns
// its figures, its result and what was used meanwhile.
func Measure(load func() (*loader.Result, error), groups ...[]int) (p Phase, r *loader.Result, used child.Used, err error) {
	m, err := child.StartMeter(groups...)
	if err == nil {
		r, err = load()
	}
	if err == nil {
		p = NewPhase(r)
		used, err = m.Stop()
	}
	return p, r, used, err
}

// PerEvent returns a time by event, in microseconds.
func (p *Phase) PerEvent(d time.Duration) float64 { return Ratio(d.Seconds()*1e6, float64(p.Events)) }

// SetLatencies sets the latencies from a histogram in microseconds.
func (p *Phase) SetLatencies(h *hdrhistogram.Histogram) {
	p.P50Millis, p.P99Millis, p.P999Millis, p.MaxMillis = Millis(h, 50), Millis(h, 99), Millis(h, 99.9), float64(h.Max())/1000
}

// Millis returns a percentile of a histogram in microseconds, in milliseconds.
func Millis(h *hdrhistogram.Histogram, percent float64) float64 {
	return float64(h.ValueAtQuantile(percent)) / 1000
}
