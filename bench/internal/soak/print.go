package soak

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/bench/internal/report"
)

// String is the sample in one line.
func (s Sample) String() string {
	var disk []string
	for _, name := range slices.Sorted(maps.Keys(s.DiskBytes)) {
		if s.DiskBytes[name] >= 1e6 {
			disk = append(disk, fmt.Sprintf("%s %d", name, s.DiskBytes[name]/1e6))
		}
	}
	return fmt.Sprintf("%6.0f s: %6.0f events/s, p50 %.2f, p99 %.2f, p99.9 %.2f, most %.1f ms; %.1f µs/event; %d failed; RSS %d MB, %d open files, %.2f M events; MB on disk: %s",
		s.Seconds, s.EventsPerSecond, s.P50Millis, s.P99Millis, s.P999Millis, s.MaxMillis, s.CPUMicrosPerEvent, s.Failed,
		s.RSSBytes/1e6, s.OpenFiles, float64(s.StoredEvents)/1e6, strings.Join(disk, ", "))
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, func(w io.Writer) {
		fmt.Fprintf(w, "%d CPUs, %s, %.0f events/s, %d live segments, %d merges, %d known profiles, %g of the events on new ones\n",
			r.CPUs, r.Go, r.Rate, r.Options.Segments, r.Merges, r.Options.Profiles, r.Options.NewRatio)
		for _, s := range r.Samples {
			fmt.Fprintln(w, s)
		}
		fmt.Fprintf(w, "%d events acknowledged, %d rows, %d missing, %d doubled; stopped in %.1f s\n",
			r.Once.Acked, r.Once.Rows, r.Once.Missing, r.Once.Doubled, r.StopSeconds)
	})
}
