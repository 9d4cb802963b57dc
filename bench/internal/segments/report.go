package segments

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/bench/internal/report"
)

// Report is everything that was measured.
type Report struct {
	Options Options `json:"options"`
	report.Machine
	AvailableBytes int64   `json:"available_memory_bytes"` // at the start
	Steps          []*Step `json:"steps"`
	// Stopped says how far the account grew and why not further.
	Stopped string  `json:"stopped"`
	Seconds float64 `json:"seconds"`
	// Sizes is how much the cost of an event differs over the sizes.
	Sizes   Flatness        `json:"flat_over_sizes"`
	Targets []report.Target `json:"targets"`
	Stale   *Stale          `json:"stale_reads,omitempty"`
}

// Flatness is the largest cost of an event over the smallest, over all sizes, by
// the least of the rounds at each; 1 is perfectly flat, 0 that there was one size
// only.
type Flatness struct {
	Without float64 `json:"without_segments"`
	With    float64 `json:"with_20_segments"`
	// Other is with 1,000 segments on other event types.
	Other float64 `json:"with_1000_on_other_types"`
}

// Step is what was measured at one size.
type Step struct {
	Profiles int   `json:"profiles"`
	Events   int64 `json:"events"` // in history when the step ended; it began with Grow's
	// Incomplete says what is missing, and why; empty when nothing is.
	Incomplete string      `json:"incomplete,omitempty"`
	Seconds    float64     `json:"seconds"`
	Phases     []PhaseTime `json:"phases"`

	Grow   Rate      `json:"grow"`
	Memory MemoryUse `json:"memory"`
	Ingest Ingest    `json:"ingest"`
	Cost   *Cost     `json:"cost,omitempty"`
	// LiveSeconds is how long it took until all 20 segments were live.
	LiveSeconds float64     `json:"live_segments_built_seconds"`
	Backfill    []Backfill  `json:"backfill"`
	Counts      *Counts     `json:"counts,omitempty"`
	Preview     *Preview    `json:"preview,omitempty"`
	Verified    []Verified  `json:"verified"`
	Checkpoint  *Checkpoint `json:"checkpoint,omitempty"`
	// RestartBare is without segments, Restart with the 20.
	RestartBare *Restart `json:"restart_without_segments,omitempty"`
	Restart     *Restart `json:"restart,omitempty"`
	DiskBytes   int64    `json:"disk_bytes"`
	PeakRSS     int64    `json:"peak_rss_bytes"`
}

// Ingest compares ingest with 20 live segments and without any.
type Ingest struct {
	// Cold is with 20 live segments right behind a restart, when no profile is in a cache.
	// The others are measured once each active profile has had some events since the restart.
	Cold Rate `json:"cold"`
	// Without is measured before the segments exist, WithoutAgain after they were
	// deleted.
	Without      Rate `json:"without_segments"`
	With         Rate `json:"with_20_segments"`
	WithoutAgain Rate `json:"without_segments_again"`
	// CPURatio is the CPU time per event with segments by that without, where the
	// latter is the mean of the two.
	CPURatio float64 `json:"cpu_ratio"`
	// AddedMicros is the difference.
	AddedMicros float64 `json:"added_cpu_us_per_event"`
}

func (g *Ingest) compare() {
	base := g.Without.CPUMicros
	if g.WithoutAgain.Events > 0 {
		base = (base + g.WithoutAgain.CPUMicros) / 2
	}
	g.CPURatio, g.AddedMicros = report.Ratio(g.With.CPUMicros, base), g.With.CPUMicros-base
}

// conclude works out what is known only at the end.
func (r *Report) conclude() {
	over := func(value func(*Step) float64) float64 {
		var v []float64
		for _, s := range r.Steps {
			if x := value(s); x > 0 {
				v = append(v, x)
			}
		}
		return spread(v)
	}
	r.Sizes = Flatness{
		Without: over(func(s *Step) float64 { return s.Ingest.Without.LeastMicros }),
		With:    over(func(s *Step) float64 { return s.Ingest.With.LeastMicros }),
		Other:   over(of(func(s *Step) *Cost { return s.Cost }, (*Cost).most)),
	}
	r.Targets = nil
	add := func(name string, value, want float64) {
		r.Targets = append(r.Targets, report.AtMost(name, value, want))
	}
	if len(r.Steps) > 1 {
		add("cost of an event over the sizes, without segments, largest / smallest", r.Sizes.Without, 1.5)
		add("cost of an event over the sizes, 20 segments, largest / smallest", r.Sizes.With, 1.5)
	}
	for _, s := range slices.Backward(r.Steps) {
		at := fmt.Sprintf(" (%d profiles)", s.Profiles)
		if s.Cost != nil {
			add("cost of an event with 0 to 1,000 segments on other types, largest / smallest"+at, s.Cost.OtherSpread, 1.15)
			if n := len(s.Cost.Same); n > 0 && s.Cost.Same[n-1].Segments == 1000 {
				add("cost of an event with 1,000 segments on its type, µs of CPU"+at, s.Cost.Same[n-1].CPUMicros, 60)
			}
		}
		if s.Counts != nil {
			add("count under ingest, p99 in µs"+at, s.Counts.Busy.P99Micros, 1000)
			r.Targets = append(r.Targets, report.AtLeast("SQL against count, times slower"+at, s.Counts.LeastTimes, 1000))
		}
		if p := s.Preview; p != nil {
			add("a preview that segments know all of, ms"+at, p.KnownMillis, 1)
			add("a preview with one unknown condition, ms"+at, p.UnknownMillis, 20)
			add("a preview wholly from history, ms"+at, p.WholeMillis, 100)
		}
		for _, b := range s.Backfill {
			add("backfill of a "+b.Kind+" against the bare query"+at, b.Ratio, 1.5)
		}
		if s.Memory.Started.HeapBytes > 0 {
			add("Go heap per profile in bytes, beside leaf state"+at, s.Memory.HeapPerProfile, 200)
			add("RSS per profile in bytes, beside leaf state"+at, s.Memory.RSSPerProfile, 200)
		}
		break // the largest size counts
	}
	if r.Stale != nil {
		add("stale reads", float64(r.Stale.Stale), 0)
	}
}
