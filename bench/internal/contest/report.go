package contest

import (
	"time"

	"github.com/musterhq/muster/bench/internal/cpuspeed"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/stalls"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Report is everything that was measured.
type Report struct {
	Options Options `json:"options"`
	report.Machine
	Modes []ModeReport `json:"modes"`
}

// ModeReport is one mode's rounds and what they come to.
type ModeReport struct {
	Mode   Mode    `json:"mode"`
	Rounds []Round `json:"rounds"`
	Median Summary `json:"median"`
}

// Round is one measurement of all servers.
type Round struct {
	Parse Phase `json:"parse_only"`
	Read  Phase `json:"read_only"`
	// Disk is the idle disk of the server's directory: its part of the tail of latencies.
	Disk Disk `json:"disk"`
	// Idle is how fast the processors ran while only the disk was measured.
	Idle   cpuspeed.Speed `json:"processors_idle"`
	Muster *Muster        `json:"muster,omitempty"`
}

// Muster is one measurement of the real binary.
type Muster struct {
	Sweep     Phase `json:"sweep"`
	Saturated Phase `json:"saturated"`
	Paced     Phase `json:"paced"`
	topology.Stopped
	// HistorySeconds is how long after the load the first count over history
	// was answered: how far history was behind, and the query.
	HistorySeconds float64 `json:"history_seconds"`
	// CPUMicrosPerEvent is all CPU time from the start of the load until
	// history had everything, per event, paced phase and idling included.
	CPUMicrosPerEvent float64 `json:"cpu_us_per_event"`
	// Processors is how fast they ran in the paced phase, and Settled the latencies without that.
	Processors cpuspeed.Speed `json:"processors"`
	Settled    Settled        `json:"settled"`
	// Stalls is what slow requests of the paced phase waited for, if it was asked.
	Stalls *stalls.Report `json:"stalls,omitempty"`
	// PeakRSSBytes is the most memory the server had resident.
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
	// DiskBytes is what the data directory holds after the stop.
	DiskBytes map[string]int64 `json:"disk_bytes"`
}

// Phase is one phase of load on one server.
type Phase struct {
	report.Phase
	// LateP99Millis is the loader's own share of a paced latency.
	LateP99Millis float64 `json:"loader_late_p99_ms,omitempty"`
	// CPUSeconds is the server's CPU time during the phase.
	CPUSeconds              float64 `json:"cpu_seconds"`
	CPUMicrosPerEvent       float64 `json:"cpu_us_per_event"`
	LoaderCPUMicrosPerEvent float64 `json:"loader_cpu_us_per_event"`
	PeakRSSBytes            int64   `json:"peak_rss_bytes"`
	// OverTime are the parts of Muster's two phases.
	OverTime []Moment `json:"over_time,omitempty"`
}

// timed is [measure], and also tells the phase by its parts.
func timed(pid int, fleet *loader.Fleet, phase time.Duration, load func() (*loader.Result, error)) (Phase, error) {
	fleet.Interval = momentOf(phase)
	defer func() { fleet.Interval = 0 }()
	stop, uses := make(chan struct{}), make(chan []use, 1)
	go watch(pid, fleet.Interval, stop, uses)
	var slots []loader.Slot
	p, err := measure(pid, func() (*loader.Result, error) {
		r, err := load()
		if err == nil {
			slots = r.Slots
		}
		return r, err
	})
	close(stop)
	p.OverTime = momentsOf(fleet.Interval, slots, <-uses)
	return p, err
}

// measure runs a phase against a server and measures its CPU time.
func measure(pid int, load func() (*loader.Result, error)) (p Phase, err error) {
	phase, r, used, err := report.Measure(load, []int{pid})
	if err != nil {
		return p, err
	}
	p = Phase{
		Phase: phase, CPUSeconds: used.Groups[0].Seconds(), PeakRSSBytes: used.PeakRSSBytes,
		CPUMicrosPerEvent: phase.PerEvent(used.Groups[0]), LoaderCPUMicrosPerEvent: phase.PerEvent(used.Self),
	}
	if r.Late.TotalCount() > 0 {
		p.LateP99Millis = report.Millis(r.Late, 99)
	}
	return p, nil
}
