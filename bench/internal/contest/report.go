package contest

import (
	"time"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
)

// Report is everything that was measured.
type Report struct {
	Options Options      `json:"options"`
	CPUs    int          `json:"cpus"`
	Go      string       `json:"go"`
	Modes   []ModeReport `json:"modes"`
}

// ModeReport is one mode's rounds and what they come to.
type ModeReport struct {
	Mode   Mode    `json:"mode"`
	Rounds []Round `json:"rounds"`
	Median Summary `json:"median"`
}

// Round is one measurement of all servers.
type Round struct {
	Parse  Phase   `json:"parse_only"`
	Read   Phase   `json:"read_only"`
	Muster *Muster `json:"muster,omitempty"`
}

// Muster is one measurement of the real binary.
type Muster struct {
	Sweep     Phase `json:"sweep"`
	Saturated Phase `json:"saturated"`
	Paced     Phase `json:"paced"`
	// Once is the comparison of history with what was acknowledged.
	Once history.Once `json:"once"`
	// HistorySeconds is how long after the load the first count over history
	// was answered: how far history was behind, and the query.
	HistorySeconds float64 `json:"history_seconds"`
	// StopSeconds is how long the graceful stop took.
	StopSeconds float64 `json:"stop_seconds"`
	// CPUMicrosPerEvent is all CPU time from the start of the load until
	// history had everything, per event, paced phase and idling included.
	CPUMicrosPerEvent float64 `json:"cpu_us_per_event"`
	// PeakRSSBytes is the most memory the server had resident.
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
	// DiskBytes is what the data directory holds after the stop.
	DiskBytes map[string]int64 `json:"disk_bytes"`
}

// Phase is one phase of load on one server.
type Phase struct {
	Events          uint64  `json:"events"`
	Requests        uint64  `json:"requests"`
	Failed          uint64  `json:"failed_requests"`
	Failure         string  `json:"first_failure,omitempty"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	// OfferedPerSecond is the rate asked for, 0 in a closed loop.
	OfferedPerSecond float64 `json:"offered_per_second,omitempty"`
	// Latencies per request. In an open loop they count from when the request
	// was due.
	P50Millis  float64 `json:"p50_ms"`
	P99Millis  float64 `json:"p99_ms"`
	P999Millis float64 `json:"p999_ms"`
	MaxMillis  float64 `json:"max_ms"`
	// LateP99Millis is the loader's own share of a paced latency.
	LateP99Millis float64 `json:"loader_late_p99_ms,omitempty"`
	// CPUSeconds is the server's CPU time during the phase.
	CPUSeconds              float64 `json:"cpu_seconds"`
	CPUMicrosPerEvent       float64 `json:"cpu_us_per_event"`
	LoaderCPUMicrosPerEvent float64 `json:"loader_cpu_us_per_event"`
	PeakRSSBytes            int64   `json:"peak_rss_bytes"`
}

func newPhase(r *loader.Result, server, self time.Duration, peak int64) Phase {
	p := Phase{
		Events: r.Events, Requests: r.Requests, Failed: r.Failed,
		Seconds: r.Elapsed.Seconds(), EventsPerSecond: r.EventsPerSecond(),
		P50Millis:  float64(r.Latency.ValueAtQuantile(50)) / 1000,
		P99Millis:  float64(r.Latency.ValueAtQuantile(99)) / 1000,
		P999Millis: float64(r.Latency.ValueAtQuantile(99.9)) / 1000,
		MaxMillis:  float64(r.Latency.Max()) / 1000,
		CPUSeconds: server.Seconds(), PeakRSSBytes: peak,
	}
	if r.Late.TotalCount() > 0 {
		p.LateP99Millis = float64(r.Late.ValueAtQuantile(99)) / 1000
	}
	if r.FirstFailure != nil {
		p.Failure = r.FirstFailure.Error()
	}
	if r.Events > 0 {
		p.CPUMicrosPerEvent = server.Seconds() * 1e6 / float64(r.Events)
		p.LoaderCPUMicrosPerEvent = self.Seconds() * 1e6 / float64(r.Events)
	}
	return p
}
