package soak

import (
	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Sample is one interval of the load.
type Sample struct {
	// Phase is the load of the interval, but for Seconds: that is when the interval
	// ended, from the start of the load.
	report.Phase
	// CPUMicrosPerEvent is the server's CPU time.
	CPUMicrosPerEvent float64 `json:"cpu_us_per_event"`
	// What the server holds at the end of the interval. StoredEvents is all
	// acknowledged so far; DiskBytes is by the first element of the path.
	StoredEvents uint64           `json:"stored_events"`
	RSSBytes     int64            `json:"rss_bytes"`
	OpenFiles    int              `json:"open_files"`
	DiskBytes    map[string]int64 `json:"disk_bytes"`
}

// hold adds what the server holds now.
func (s *Sample) hold(of *topology.Single) error {
	usage, err := child.UsageOf(of.PID())
	if err != nil {
		return err
	}
	s.RSSBytes = usage.RSSBytes
	if s.OpenFiles, err = child.OpenFiles(of.PID()); err != nil {
		return err
	}
	s.DiskBytes, err = of.DiskBytes()
	return err
}
