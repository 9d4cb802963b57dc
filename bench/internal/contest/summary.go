package contest

import "github.com/musterhq/muster/bench/internal/report"

// Summary is a mode's medians over the rounds.
type Summary struct {
	ParsePerSecond  float64 `json:"parse_only_events_per_second"`
	ReadPerSecond   float64 `json:"read_only_events_per_second"`
	MusterPerSecond float64 `json:"muster_events_per_second"`
	// OfParse and OfRead are Muster's rate as a share of the baselines'. They
	// are medians of each round's own ratio, so that a drift of the machine
	// between rounds cancels out.
	OfParse float64 `json:"muster_of_parse_only"`
	OfRead  float64 `json:"muster_of_read_only"`

	ParseCPUMicros  float64 `json:"parse_only_cpu_us_per_event"`
	ReadCPUMicros   float64 `json:"read_only_cpu_us_per_event"`
	MusterCPUMicros float64 `json:"muster_cpu_us_per_event"`

	PacedPerSecond  float64 `json:"paced_events_per_second"`
	PacedP50Millis  float64 `json:"paced_p50_ms"`
	PacedP99Millis  float64 `json:"paced_p99_ms"`
	PacedP999Millis float64 `json:"paced_p999_ms"`
	PeakRSSBytes    float64 `json:"muster_peak_rss_bytes"`

	// SlowShare is the share of the paced phase in which the processors were slow, IdleSlowShare
	// that of the time before the server was started, and the latencies are those apart from it.
	SlowShare         float64 `json:"slow_processors_share"`
	IdleSlowShare     float64 `json:"slow_processors_share_idle"`
	SettledP50Millis  float64 `json:"settled_p50_ms"`
	SettledP99Millis  float64 `json:"settled_p99_ms"`
	SettledP999Millis float64 `json:"settled_p999_ms"`

	// Disk is that of the rounds, each figure the median.
	DiskP50Millis  float64 `json:"disk_p50_ms"`
	DiskP99Millis  float64 `json:"disk_p99_ms"`
	DiskP999Millis float64 `json:"disk_p999_ms"`
	DiskMaxMillis  float64 `json:"disk_max_ms"`
}

func summarise(rounds []Round) Summary {
	over := func(value func(*Round) float64) float64 { return report.Over(rounds, value).Median }
	s := Summary{
		ParsePerSecond: over(func(r *Round) float64 { return r.Parse.EventsPerSecond }),
		ReadPerSecond:  over(func(r *Round) float64 { return r.Read.EventsPerSecond }),
		ParseCPUMicros: over(func(r *Round) float64 { return r.Parse.CPUMicrosPerEvent }),
		ReadCPUMicros:  over(func(r *Round) float64 { return r.Read.CPUMicrosPerEvent }),
	}
	if len(rounds) == 0 || rounds[0].Muster == nil {
		return s
	}
	s.MusterPerSecond = over(func(r *Round) float64 { return r.Muster.Saturated.EventsPerSecond })
	if rounds[0].Parse.EventsPerSecond > 0 { // else there were no baselines
		s.OfParse = over(func(r *Round) float64 { return r.Muster.Saturated.EventsPerSecond / r.Parse.EventsPerSecond })
		s.OfRead = over(func(r *Round) float64 { return r.Muster.Saturated.EventsPerSecond / r.Read.EventsPerSecond })
	}
	s.DiskP50Millis = over(func(r *Round) float64 { return r.Disk.P50Millis })
	s.DiskP99Millis = over(func(r *Round) float64 { return r.Disk.P99Millis })
	s.DiskP999Millis = over(func(r *Round) float64 { return r.Disk.P999Millis })
	s.DiskMaxMillis = over(func(r *Round) float64 { return r.Disk.MaxMillis })
	s.MusterCPUMicros = over(func(r *Round) float64 { return r.Muster.Saturated.CPUMicrosPerEvent })
	s.PacedPerSecond = over(func(r *Round) float64 { return r.Muster.Paced.EventsPerSecond })
	s.PacedP50Millis = over(func(r *Round) float64 { return r.Muster.Paced.P50Millis })
	s.PacedP99Millis = over(func(r *Round) float64 { return r.Muster.Paced.P99Millis })
	s.PacedP999Millis = over(func(r *Round) float64 { return r.Muster.Paced.P999Millis })
	s.SlowShare = over(func(r *Round) float64 { return report.Ratio(r.Muster.Processors.Slow, r.Muster.Processors.Watched) })
	s.IdleSlowShare = over(func(r *Round) float64 { return report.Ratio(r.Idle.Slow, r.Idle.Watched) })
	s.SettledP50Millis = over(func(r *Round) float64 { return r.Muster.Settled.P50Millis })
	s.SettledP99Millis = over(func(r *Round) float64 { return r.Muster.Settled.P99Millis })
	s.SettledP999Millis = over(func(r *Round) float64 { return r.Muster.Settled.P999Millis })
	s.PeakRSSBytes = over(func(r *Round) float64 { return float64(r.Muster.PeakRSSBytes) })
	return s
}

// trackingOfBatch is the tracking API's rate as a share of that of batches of the events
// API: the median of each round's own ratio. ok is false when not both were measured.
func (r *Report) trackingOfBatch() (ratio float64, ok bool) {
	var batch, tracking []Round
	for _, m := range r.Modes {
		switch {
		case m.Mode.Tracking:
			tracking = m.Rounds
		case m.Mode.Batch > 0:
			batch = m.Rounds
		}
	}
	var ratios []float64
	for i := range min(len(batch), len(tracking)) {
		if a, b := batch[i].Muster, tracking[i].Muster; a != nil && b != nil && a.Saturated.EventsPerSecond > 0 {
			ratios = append(ratios, b.Saturated.EventsPerSecond/a.Saturated.EventsPerSecond)
		}
	}
	return report.Median(ratios), len(ratios) > 0
}
