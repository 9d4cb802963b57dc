package figures

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/bench/internal/recovery"
	"github.com/musterhq/muster/bench/internal/report"
)

// section is a part of the page: a table of figures and the command that repeats it.
type section struct {
	title, command string
	rows           [][2]string
}

func (s *section) add(what, format string, args ...any) {
	s.rows = append(s.rows, [2]string{what, fmt.Sprintf(format, args...)})
}

// write writes the section, unless it has no figures.
func (s section) write(b *bytes.Buffer) {
	if len(s.rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n`%s`\n\n| figure | value |\n|---|---|\n", s.title, s.command)
	for _, r := range s.rows {
		fmt.Fprintf(b, "| %s | %s |\n", r[0], r[1])
	}
}

func (r *Report) ingest() section {
	s := section{title: "Taking events", command: "go run ./bench ingest"}
	if r.Ingest == nil {
		return s
	}
	var acked, missing, doubled uint64
	for _, m := range r.Ingest.Modes {
		what := "single events"
		if m.Mode.Batch > 0 {
			what = fmt.Sprintf("batches of %d", m.Mode.Batch)
		}
		if m.Mode.Repeat {
			what += fmt.Sprintf(", traits of %g %% of the events change", 100*m.Mode.ChangeRatio)
		} else {
			what += ", traits of nearly each event change"
		}
		x := m.Median
		s.add(what, "%s events/s, %.1f µs of CPU an event; %.1f %% of a server that only parses, %.1f %% of one that only reads",
			count(x.MusterPerSecond), x.MusterCPUMicros, 100*x.OfParse, 100*x.OfRead)
		s.add("— at half of that rate", "p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms", x.PacedP50Millis, x.PacedP99Millis, x.PacedP999Millis)
		s.add("— the same without phases of slow processors", "p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms; these took %.1f %% of the time, %.1f %% on the idle machine",
			x.SettledP50Millis, x.SettledP99Millis, x.SettledP999Millis, 100*x.SlowShare, 100*x.IdleSlowShare)
		for _, round := range m.Rounds {
			if round.Muster != nil {
				acked += round.Muster.Once.Acked
				missing += round.Muster.Once.Missing
				doubled += round.Muster.Once.Doubled
			}
		}
		s.add("— on disk", "%.0f bytes an event (log, history, state)", m.DiskBytes())
	}
	s.add(fmt.Sprintf("of %s acknowledged events", count(float64(acked))), "%d missing, %d doubled", missing, doubled)
	return s
}

func (r *Report) recovery() section {
	s := section{title: "After kill -9", command: "go run ./bench recovery"}
	if r.Recovery == nil || len(r.Recovery.Rounds) == 0 {
		return s
	}
	slowest := func(value func(recovery.Round) float64) float64 {
		return value(slices.MaxFunc(r.Recovery.Rounds, func(a, b recovery.Round) int { return cmp.Compare(value(a), value(b)) }))
	}
	s.add("the first event is taken", "%.1f s after the start", slowest(func(x recovery.Round) float64 { return x.FirstSeconds }))
	s.add(fmt.Sprintf("one of each of %d clients that retry without a pause", r.Recovery.Options.Clients), "%.1f s after the start",
		slowest(func(x recovery.Round) float64 { return x.AllSeconds }))
	s.add(fmt.Sprintf("of %s acknowledged events, %d kills", count(float64(r.Recovery.Once.Acked)), len(r.Recovery.Rounds)), "%d missing, %d doubled",
		r.Recovery.Once.Missing, r.Recovery.Once.Doubled)
	return s
}

func (r *Report) segments() section {
	s := section{title: "Segments", command: "go run ./bench segments"}
	if r.Segments == nil || len(r.Segments.Steps) == 0 {
		return s
	}
	x := r.Segments.Steps[len(r.Segments.Steps)-1]
	s.title += fmt.Sprintf(", %s profiles, %s events", count(float64(x.Profiles)), count(float64(x.Events)))
	s.add("an event with 20 live segments", "%.1f µs of CPU, right behind a restart %.1f; without segments %.1f", x.Ingest.With.LeastMicros, x.Ingest.Cold.LeastMicros, x.Ingest.Without.LeastMicros)
	if len(r.Segments.Steps) > 1 {
		s.add("the same at the sizes measured, dearest by cheapest", "%.2f with 20 segments, %.2f without", r.Segments.Sizes.With, r.Segments.Sizes.Without)
	}
	if x.Counts != nil {
		s.add("a count while events come", "p50 %.0f µs, p99 %.0f µs", x.Counts.Busy.P50Micros, x.Counts.Busy.P99Micros)
	}
	if x.Preview != nil {
		s.add("a preview of a definition", "%.1f ms where segments have its conditions, %.0f ms with one that none has, %.0f ms wholly from history; the first of all %.0f ms",
			x.Preview.KnownMillis, x.Preview.UnknownMillis, x.Preview.WholeMillis, x.Preview.FirstMillis)
	}
	s.add("memory a profile after a restart", "%.0f bytes of heap, %.0f resident", x.Memory.HeapPerProfile, x.Memory.RSSPerProfile)
	if r.Segments.Stale != nil {
		s.add(fmt.Sprintf("of %s reads, each right after its event", count(float64(r.Segments.Stale.Reads))), "%d stale", r.Segments.Stale.Stale)
	}
	return s
}

// targets is a table of what is to be reached, and whether it was.
func (r *Report) targets() string {
	var all []report.Target
	if r.Ingest != nil {
		all = r.Ingest.Targets()
	}
	if r.Segments != nil {
		all = append(all, r.Segments.Targets...)
	}
	if len(all) == 0 {
		return ""
	}
	var b bytes.Buffer
	b.WriteString("\n## Targets\n\n| what | measured | target | |\n|---|---|---|---|\n")
	for _, t := range all {
		fmt.Fprintf(&b, "| %s | %.3g | %s | %s |\n", t.Name, t.Value, t.Bound(), t.Verdict())
	}
	return b.String()
}

// count is a number in a few digits, with a comma at the thousands.
func count(v float64) string {
	n := int64(v + 0.5)
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
