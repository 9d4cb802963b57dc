package segments

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/bench/internal/report"
)

// Print writes the report as tables for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, r.printHead, r.printGrowth, r.printIngest, r.printCost, r.printCounts, r.printBackfill, r.printMemory, r.printRestart, r.printVerified, report.PrintTargets(r.Targets))
}

func (r *Report) printHead(w io.Writer) {
	fmt.Fprintf(w, "%d CPUs, %s, %s of memory free at the start, %d events per profile, seed %d, %.0f s\n",
		r.CPUs, r.Go, bytesText(r.AvailableBytes), r.Options.EventsPerProfile, r.Options.Seed, r.Seconds)
	fmt.Fprintf(w, "stopped: %s\n", r.Stopped)
}

func (r *Report) printGrowth(w io.Writer) {
	fmt.Fprintln(w)
	fmt.Fprintln(w, "size\tprofiles\tpast events\tevents at the end\tgrown at events/s\tCPU µs/event\tapply µs/event\tthe step s\tpeak RSS MB\tdisk MB\t")
	for i, s := range r.Steps {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%.0f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t\n", i+1, s.Profiles, s.Grow.Events, s.Events, s.Grow.PerSec, s.Grow.CPUMicros, s.Grow.ApplyMicros, s.Seconds, mb(s.PeakRSS), mb(s.DiskBytes))
	}
	for _, s := range r.Steps {
		if s.Incomplete != "" {
			fmt.Fprintf(w, "%d profiles: %s\n", s.Profiles, s.Incomplete)
		}
	}
}

func (r *Report) printIngest(w io.Writer) {
	fmt.Fprintln(w)
	which := "all profiles"
	if n := r.Options.ActiveProfiles; n > 0 {
		which = fmt.Sprintf("%d profiles", n)
	}
	fmt.Fprintf(w, "Ingest of %d × %d events in batches of %d on %s\n", r.Options.Rounds, r.Options.Events, batch, which)
	fmt.Fprintln(w, "profiles\tsegments\tevents/s\tCPU µs/event\tleast round\tapply µs/event\ttransitions/event\tcheckpoints\tCPU ratio\tadded µs/event\t")
	row := func(s *Step, what string, x Rate, ratio, added string) {
		if x.Events > 0 {
			fmt.Fprintf(w, "%d\t%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.3f\t%d\t%s\t%s\t\n", s.Profiles, what, x.PerSec, x.CPUMicros, x.LeastMicros, x.ApplyMicros, float64(x.Transitions)/float64(x.Events), x.Checkpoints, ratio, added)
		}
	}
	for _, s := range r.Steps {
		row(s, "none", s.Ingest.Without, "1", "")
		row(s, "20", s.Ingest.With, fmt.Sprintf("%.2f", s.Ingest.CPURatio), fmt.Sprintf("%.2f", s.Ingest.AddedMicros))
		row(s, "20, behind a restart", s.Ingest.Cold, "", "")
		row(s, "none again", s.Ingest.WithoutAgain, "", "")
	}
	if r.Sizes.Without > 0 {
		fmt.Fprintf(w, "over the sizes, largest least round / smallest: %.2f without segments, %.2f with 20, %.2f with 1,000 on other types\n", r.Sizes.Without, r.Sizes.With, r.Sizes.Other)
	}
}

func (r *Report) printCost(w io.Writer) {
	fmt.Fprintln(w)
	fmt.Fprintf(w, "CPU µs/event by number of segments, the least of %d rounds\n", r.Options.Rounds)
	head := "profiles\ton\t"
	for _, n := range scaleCounts {
		head += fmt.Sprintf("%d\t", n)
	}
	fmt.Fprintln(w, head+"largest / smallest\t")
	for _, s := range r.Steps {
		if s.Cost == nil {
			continue
		}
		fmt.Fprintf(w, "%d\tother types\t", s.Profiles)
		for _, p := range s.Cost.Other {
			fmt.Fprintf(w, "%.2f\t", p.CPUMicros)
		}
		fmt.Fprintf(w, "%.2f\t\n%d\tthe same type\t\t", s.Cost.OtherSpread, s.Profiles)
		for _, p := range s.Cost.Same {
			fmt.Fprintf(w, "%.2f\t", p.CPUMicros)
		}
		fmt.Fprintln(w, "\t")
	}
}

func (r *Report) printCounts(w io.Writer) {
	fmt.Fprintln(w)
	fmt.Fprintln(w, "Counts of live segments, µs; the same counts as SQL; previews of unsaved definitions")
	fmt.Fprintln(w, "profiles\tp50 idle\tp99 idle\tp50 at half rate\tp99\tmax\tevents/s beside\treads\tSQL ms\ttimes slower\tpreview known ms\tone unknown ms\tall from history ms\tfirst of all ms\t")
	for _, s := range r.Steps {
		c := s.Counts
		if c == nil {
			continue
		}
		fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%d\t", s.Profiles, c.Idle.P50Micros, c.Idle.P99Micros, c.Busy.P50Micros, c.Busy.P99Micros, c.Busy.MaxMicros, c.PerSec, c.Busy.Reads)
		sql := 0.0
		for _, q := range c.SQL {
			if q.Times == c.LeastTimes {
				sql = q.SQLMillis
			}
		}
		fmt.Fprintf(w, "%.1f\t%.0f\t", sql, c.LeastTimes)
		if p := s.Preview; p != nil {
			fmt.Fprintf(w, "%.2f\t%.1f\t%.1f\t%.0f\t", p.KnownMillis, p.UnknownMillis, p.WholeMillis, p.FirstMillis)
		}
		fmt.Fprintln(w)
	}
}

func (r *Report) printBackfill(w io.Writer) {
	fmt.Fprintln(w)
	fmt.Fprintln(w, "Building a segment against the bare query")
	fmt.Fprintln(w, "profiles\tevents\tkind\tbuild ms\tbare ms\tratio\tmembers\t")
	for _, s := range r.Steps {
		for _, b := range s.Backfill {
			fmt.Fprintf(w, "%d\t%d\t%s\t%.1f\t%.1f\t%.2f\t%d\t\n", s.Profiles, s.Grow.Events, b.Kind, b.BuildMillis, b.BareMillis, b.Ratio, b.Members)
		}
	}
}

func (r *Report) printMemory(w io.Writer) {
	fmt.Fprintln(w)
	fmt.Fprintln(w, "Memory in bytes: by profile without segments (after a restart; as served, with caches), and leaf state of 20 segments")
	fmt.Fprintln(w, "profiles\theap/profile\tRSS/profile\tserved heap\tserved RSS\tleaf bytes/value\tleaf bytes/profile\theap added/profile\tvalues\tstates\tleaves\t")
	for _, s := range r.Steps {
		m := &s.Memory
		fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.0f\t%.0f\t%d\t%d\t%d\t\n", s.Profiles, m.HeapPerProfile, m.RSSPerProfile, m.ServedHeapPerProfile, m.ServedRSSPerProfile,
			m.BytesPerValue, m.SegmentBytesPerProfile, m.SegmentHeapPerProfile, m.Segments.Values, m.Segments.States, m.Segments.Leaves)
	}
}

func (r *Report) printRestart(w io.Writer) {
	fmt.Fprintln(w)
	fmt.Fprintln(w, "Stop and start, checkpoints")
	fmt.Fprintln(w, "profiles\tsegments\tstop s\tstart s\tcheckpoint s\tof CPU s\tCPU µs/event\tfreeze ms\tcheckpoint MB\t20 live after s\t")
	for _, s := range r.Steps {
		if x := s.RestartBare; x != nil {
			fmt.Fprintf(w, "%d\tnone\t%.2f\t%.2f\t\t\t\t\t\t\t\n", s.Profiles, x.CloseSeconds, x.OpenSeconds)
		}
		if x, c := s.Restart, s.Checkpoint; x != nil && c != nil {
			fmt.Fprintf(w, "%d\t20\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t%.2f\t\n", s.Profiles, x.CloseSeconds, x.OpenSeconds, c.Seconds, c.CPUSeconds, c.CPUMicros, c.FreezeMilli, mb(c.Bytes), s.LiveSeconds)
		}
	}
}

func (r *Report) printVerified(w io.Writer) {
	fmt.Fprintln(w)
	for _, s := range r.Steps {
		for _, v := range s.Verified {
			fmt.Fprintf(w, "%d profiles: %d segments with %d members are the same as SQL finds, judged %d min ahead\n", s.Profiles, v.Segments, v.Members, v.AheadMillis/60_000)
		}
	}
	if x := r.Stale; x != nil {
		fmt.Fprintf(w, "stale reads: %d of %d, each behind an acknowledged event, %d at a time, %.0f/s\n", x.Stale, x.Reads, x.Workers, x.PerSec)
	}
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }
