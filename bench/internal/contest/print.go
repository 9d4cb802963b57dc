package contest

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/musterhq/muster/bench/internal/cpuspeed"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/report"
)

// Print writes the report as a table for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, r.print, report.PrintTargets(r.Targets()))
}

func (r *Report) print(w io.Writer) {
	fmt.Fprintf(w, "%d CPUs, %s, %d-byte events, %d known profiles, %g of the events on new ones, seed %d\n",
		r.CPUs, r.Go, r.Options.EventBytes, r.Options.Profiles, r.Options.NewRatio, r.Options.Seed)
	for i := range r.Modes {
		r.Modes[i].print(w)
	}
	if ratio, ok := r.trackingOfBatch(); ok {
		fmt.Fprintf(w, "\nmedian: the tracking API takes %.1f %% of the rate of batches of the events API\n", 100*ratio)
	}
}

// what names what is sent.
func (m *ModeReport) what() string {
	what := "single events"
	if m.Mode.Batch > 0 {
		what = fmt.Sprintf("batches of %d", m.Mode.Batch)
	}
	if m.Mode.Tracking {
		what = fmt.Sprintf("the tracking API, batches of %d, events longer by %d bytes", m.Mode.Batch, payload.TrackedBytes)
	}
	if m.Mode.Repeat {
		what += fmt.Sprintf(", traits of %g of them change", m.Mode.ChangeRatio)
	}
	return what
}

func (m *ModeReport) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s, %d connections, rounds: %d\n", m.what(), m.Mode.Connections, len(m.Rounds))
	fmt.Fprintln(w, "round\tserver\tevents/s\tp50 ms\tp99 ms\tp99.9 ms\tmax ms\tCPU s\tCPU µs/event\tloader µs/event\tloader late p99 ms\tpeak RSS MB\tfailed\t")
	for i, r := range m.Rounds {
		if !m.Mode.Tracking {
			row(w, i+1, "parse only", r.Parse)
			row(w, i+1, "read only", r.Read)
		}
		if r.Muster == nil {
			continue
		}
		row(w, i+1, "muster, saturated", r.Muster.Saturated)
		row(w, i+1, fmt.Sprintf("muster at %.0f/s", r.Muster.Paced.OfferedPerSecond), r.Muster.Paced)
	}
	for i, r := range m.Rounds {
		if r.Muster != nil {
			r.Muster.print(w, i+1)
		}
	}
	m.Median.print(w)
}

func row(w io.Writer, round int, name string, p Phase) {
	late := "-" // only an open loop waits
	if p.OfferedPerSecond > 0 {
		late = fmt.Sprintf("%.2f", p.LateP99Millis)
	}
	fmt.Fprintf(w, "%d\t%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f\t%s\t%.0f\t%d\t\n", round, name,
		p.EventsPerSecond, p.P50Millis, p.P99Millis, p.P999Millis, p.MaxMillis, p.CPUSeconds,
		p.CPUMicrosPerEvent, p.LoaderCPUMicrosPerEvent, late, float64(p.PeakRSSBytes)/1e6, p.Failed)
}

func (m *Muster) print(w io.Writer, round int) {
	fmt.Fprintf(w, "round %d: %d events acknowledged, %d rows, %d missing, %d doubled; %.2f µs of CPU per event with history; "+
		"first count after %.2f s; stopped in %.2f s; bytes per event on disk:",
		round, m.Once.Acked, m.Once.Rows, m.Once.Missing, m.Once.Doubled, m.CPUMicrosPerEvent, m.HistorySeconds, m.StopSeconds)
	for _, name := range slices.Sorted(maps.Keys(m.DiskBytes)) {
		if per := float64(m.DiskBytes[name]) / float64(max(m.Once.Rows, 1)); per >= 0.1 {
			fmt.Fprintf(w, " %s %.1f", name, per)
		}
	}
	fmt.Fprintf(w, "\nround %d, paced: %s\n", round, m.settledLine())
	if m.Stalls != nil {
		m.Stalls.Print(w)
	}
}

// settledLine tells the latencies of the paced phase without slow processors.
func (m *Muster) settledLine() string {
	return fmt.Sprintf("%s; apart from these, %d of %d requests: p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, longest %.1f ms",
		speedLine(m.Processors), m.Settled.Requests, m.Paced.Requests, m.Settled.P50Millis, m.Settled.P99Millis, m.Settled.P999Millis, m.Settled.MaxMillis)
}

func speedLine(s cpuspeed.Speed) string {
	return fmt.Sprintf("the processors were slow for %.2f of %.1f s in %d phases, the longest %.0f ms, down to 1/%.0f of their speed",
		s.Slow, s.Watched, len(s.Phases), s.LongestMillis, s.Slowest)
}

func (s Summary) print(w io.Writer) {
	if s.ParsePerSecond > 0 {
		fmt.Fprintf(w, "median: parse only %.0f events/s (%.2f µs of CPU), read only %.0f (%.2f µs)\n",
			s.ParsePerSecond, s.ParseCPUMicros, s.ReadPerSecond, s.ReadCPUMicros)
	}
	if s.MusterPerSecond == 0 {
		return
	}
	fmt.Fprintf(w, "median: muster %.0f events/s (%.2f µs of CPU)", s.MusterPerSecond, s.MusterCPUMicros)
	if s.ParsePerSecond > 0 {
		fmt.Fprintf(w, " = %.1f %% of parse only, %.1f %% of read only", 100*s.OfParse, 100*s.OfRead)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "median: muster at %.0f events/s: p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms; peak RSS %.0f MB\n",
		s.PacedPerSecond, s.PacedP50Millis, s.PacedP99Millis, s.PacedP999Millis, s.PeakRSSBytes/1e6)
	fmt.Fprintf(w, "median: the same apart from slow processors, which took %.1f %% of the time (%.1f %% on the idle machine): p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms\n",
		100*s.SlowShare, 100*s.IdleSlowShare, s.SettledP50Millis, s.SettledP99Millis, s.SettledP999Millis)
	fmt.Fprintf(w, "median: a synced write on the idle disk: p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, longest %.1f ms\n",
		s.DiskP50Millis, s.DiskP99Millis, s.DiskP999Millis, s.DiskMaxMillis)
}
