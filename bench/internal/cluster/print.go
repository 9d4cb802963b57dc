package cluster

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/musterhq/muster/bench/internal/report"
)

// Print writes the report as tables for people.
func (r *Report) Print(out io.Writer) error {
	sections := []func(io.Writer){func(w io.Writer) {
		fmt.Fprintf(w, "%d CPUs, %s, seed %d, %.0f s; %d partitions, %d live segments each, Kafka and ClickHouse: %s\n",
			r.CPUs, r.Go, r.Options.Seed, r.Seconds, r.Options.Partitions, r.Options.Segments, r.Options.Services)
	}}
	for i := range r.Modes {
		sections = append(sections, r.Modes[i].print)
	}
	return report.PrintTables(out, append(sections, r.printOnce, r.printMoves, report.PrintTargets(r.Targets))...)
}

func (m *ModeReport) print(w io.Writer) {
	what := "single events"
	if m.Mode.Batch > 0 {
		what = fmt.Sprintf("batches of %d", m.Mode.Batch)
	}
	if len(m.Rounds) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, %d connections, rounds: %d, records of %.0f bytes; CPU in µs per event\n", what, m.Mode.Connections, len(m.Rounds), m.RecordBytes)
	fmt.Fprintln(w, "round\twhat\tevents/s\tp50 ms\tp99 ms\tp99.9 ms\tmax ms\tnodes\tKafka\tClickHouse\tloader\tothers %\tfailed\thistory/s\t")
	for i := range m.Rounds {
		r := &m.Rounds[i]
		row(w, i+1, "produce, a record a request", r.Produce, 0)
		row(w, i+1, "produce, full batches", r.ProduceFull, 0)
		row(w, i+1, "insert", r.Insert, 0)
		for _, l := range r.Groups {
			row(w, i+1, l.name(), l.Saturated, l.HistoryPerSecond)
			row(w, i+1, fmt.Sprintf("%s, at %.0f/s", l.name(), l.Paced.OfferedPerSecond), l.Paced, 0)
		}
	}
	m.printRatios(w)
}

func row(w io.Writer, round int, name string, p Phase, history float64) {
	fmt.Fprintf(w, "%d\t%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%d\t", round, name,
		p.EventsPerSecond, p.P50Millis, p.P99Millis, p.P999Millis, p.MaxMillis, p.NodesMicros, p.KafkaMicros, p.ClickHouseMicros, p.LoaderMicros, 100*p.Others, p.Failed)
	if history > 0 {
		fmt.Fprintf(w, "%.0f", history)
	}
	fmt.Fprintln(w, "\t")
}

func (m *ModeReport) printRatios(w io.Writer) {
	for j, l := range m.Rounds[0].Groups {
		rate := func(r *Round) float64 { return r.Groups[j].Saturated.EventsPerSecond }
		fmt.Fprintf(w, "%s: %.0f events/s", l.name(), report.Over(m.Rounds, rate).Median)
		fmt.Fprintf(w, " = %s of produce with a record a request", percent(report.Over(m.Rounds, func(r *Round) float64 { return report.Ratio(rate(r), r.Produce.EventsPerSecond) })))
		fmt.Fprintf(w, ", %s of full batches", percent(report.Over(m.Rounds, func(r *Round) float64 { return report.Ratio(rate(r), r.ProduceFull.EventsPerSecond) })))
		fmt.Fprintf(w, "; history %s of bare inserts", percent(report.Over(m.Rounds, func(r *Round) float64 { return report.Ratio(r.Groups[j].HistoryPerSecond, r.Insert.EventsPerSecond) })))
		fmt.Fprintf(w, "; at half p50 %.2f ms, p99 %.2f ms\n", report.Over(m.Rounds, func(r *Round) float64 { return r.Groups[j].Paced.P50Millis }).Median,
			report.Over(m.Rounds, func(r *Round) float64 { return r.Groups[j].Paced.P99Millis }).Median)
	}
}

// percent is a median share with its spread.
func percent(s report.Spread) string {
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*s.Median, 100*s.Least, 100*s.Most)
}

func (r *Report) printOnce(w io.Writer) {
	if len(r.Once) > 0 {
		fmt.Fprintln(w)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Once)) {
		o := r.Once[name]
		fmt.Fprintf(w, "%s: %d events acknowledged, %d rows in ClickHouse, %d missing, %d doubled; %d segments count right\n", name, o.Acked, o.Rows, o.Missing, o.Doubled, o.Segments)
	}
}
