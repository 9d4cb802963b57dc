package contest

import (
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/report"
)

// Moment is a part of a phase.
type Moment struct {
	// Seconds is when it ended, from the start of the phase.
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	// Latencies are those of the requests answered in it, 0 when there were none.
	P50Millis float64 `json:"p50_ms"`
	P99Millis float64 `json:"p99_ms"`
	MaxMillis float64 `json:"max_ms"`
	// Cores is the server's CPU time by the clock's; RSSBytes the memory it had resident at
	// the end.
	Cores    float64 `json:"cores"`
	RSSBytes int64   `json:"rss_bytes"`
}

// The parts of a phase: a sixtieth of it, but long enough for CPU time, which is counted in
// hundredths of a second.
const (
	moments        = 60
	shortestMoment = 250 * time.Millisecond
)

// momentOf is how long the parts of a phase are.
func momentOf(phase time.Duration) time.Duration { return max(phase/moments, shortestMoment) }

// use is what a server used in a part of a phase.
type use struct {
	cores float64
	rss   int64
}

// watch reads what a server uses at each interval until stop is closed, and then sends it.
func watch(pid int, interval time.Duration, stop <-chan struct{}, out chan<- []use) {
	var uses []use
	defer func() { out <- uses }()
	last, err := child.UsageOf(pid)
	if err != nil {
		return
	}
	at := time.Now()
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		u, err := child.UsageOf(pid)
		if err != nil {
			return // the phase tells of a server that ended
		}
		now := time.Now()
		uses = append(uses, use{cores: report.Ratio((u.CPU - last.CPU).Seconds(), now.Sub(at).Seconds()), rss: u.RSSBytes})
		last, at = u, now
	}
}

// momentsOf puts the two together. The last part may be short; it is left out.
func momentsOf(interval time.Duration, slots []loader.Slot, uses []use) (out []Moment) {
	for i := range min(len(slots), len(uses)) {
		s := slots[i]
		out = append(out, Moment{
			Seconds: float64(i+1) * interval.Seconds(), EventsPerSecond: float64(s.Events) / interval.Seconds(),
			P50Millis: report.Millis(s.Latency, 50), P99Millis: report.Millis(s.Latency, 99), MaxMillis: report.Millis(s.Latency, 100),
			Cores: uses[i].cores, RSSBytes: uses[i].rss,
		})
	}
	return out
}
