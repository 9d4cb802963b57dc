package soak

import (
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
)

// Sample is one interval of the load.
type Sample struct {
	// Seconds is when the interval ended, from the start of the load.
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	Failed          uint64  `json:"failed_requests"`
	// Latencies are of requests, from the instant each was due.
	P50Millis  float64 `json:"p50_ms"`
	P99Millis  float64 `json:"p99_ms"`
	P999Millis float64 `json:"p999_ms"`
	MaxMillis  float64 `json:"max_ms"`
	// CPUMicrosPerEvent is the server's CPU time.
	CPUMicrosPerEvent float64 `json:"cpu_us_per_event"`
	// What the server holds at the end of the interval. StoredEvents is all
	// acknowledged so far; DiskBytes is by the first element of the path.
	StoredEvents uint64           `json:"stored_events"`
	RSSBytes     int64            `json:"rss_bytes"`
	OpenFiles    int              `json:"open_files"`
	DiskBytes    map[string]int64 `json:"disk_bytes"`
}

func sampleOf(r *loader.Result, used time.Duration) Sample {
	s := Sample{
		EventsPerSecond: r.EventsPerSecond(), Failed: r.Failed,
		P50Millis:  float64(r.Latency.ValueAtQuantile(50)) / 1000,
		P99Millis:  float64(r.Latency.ValueAtQuantile(99)) / 1000,
		P999Millis: float64(r.Latency.ValueAtQuantile(99.9)) / 1000,
		MaxMillis:  float64(r.Latency.Max()) / 1000,
	}
	if r.Events > 0 {
		s.CPUMicrosPerEvent = used.Seconds() * 1e6 / float64(r.Events)
	}
	return s
}

// hold adds what the server holds now.
func (s *Sample) hold(i *server.Installation, pid int, usage child.Usage) (err error) {
	s.RSSBytes = usage.RSSBytes
	if s.OpenFiles, err = child.OpenFiles(pid); err != nil {
		return err
	}
	s.DiskBytes, err = i.DiskBytes()
	return err
}
