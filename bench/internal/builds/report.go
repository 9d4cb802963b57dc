package builds

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Report is what a comparison showed.
type Report struct {
	Options Options `json:"options"`
	report.Machine
	// Builds are that of Options.Binary and that of Options.Other.
	Builds [2]Build `json:"builds"`
	// Rate, CPU and P99 are the first build's events/s, CPU time by event and 99th percentile
	// of latency, each by the second's in the turn beside it.
	Rate Ratio `json:"rate_ratio"`
	CPU  Ratio `json:"cpu_ratio"`
	P99  Ratio `json:"p99_ratio"`
	// WholeCPU is the ratio of the CPU times by event over the whole run, checkpoints and
	// history of all turns included.
	WholeCPU float64 `json:"whole_cpu_ratio"`
}

// Build is one of the two.
type Build struct {
	Path   string `json:"path"`
	Events uint64 `json:"events"`
	Turns  []Turn `json:"turns"`
	// CPUMicrosPerEvent is all CPU time from the first turn until both histories had everything.
	CPUMicrosPerEvent float64 `json:"cpu_us_per_event"`
	PeakRSSBytes      int64   `json:"peak_rss_bytes"`
	topology.Stopped
}

// Turn is one turn of a build.
type Turn struct {
	EventsPerSecond   float64 `json:"events_per_second"`
	CPUMicrosPerEvent float64 `json:"cpu_us_per_event"`
	P99Millis         float64 `json:"p99_ms"`
	Failed            uint64  `json:"failed_requests"`
}

// Ratio is a ratio of all pairs: the median, and the bounds that the true median lies between
// with a confidence of 95 %.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// newRatio is the ratio of the values of pairs. Of n ratios in order the bounds are the k-th
// and the k-th from the end, where fewer than k of n fair coins show heads in at most 2.5 % of
// cases.
func newRatio(a, b []float64) Ratio {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = report.Ratio(a[i], b[i])
	}
	slices.Sort(ratios)
	n := len(ratios)
	k, chance, below := 0, math.Pow(0.5, float64(n)), 0.0
	for below+chance <= 0.025 {
		below += chance
		chance *= float64(n-k) / float64(k+1)
		k++
	}
	k = max(k, 1) // too few for the confidence; Validate asks for more
	return Ratio{report.Median(ratios), ratios[k-1], ratios[n-k]}
}

func (r *Report) compare() {
	of := func(value func(Turn) float64) Ratio {
		var values [2][]float64
		for i, b := range r.Builds {
			for _, t := range b.Turns {
				values[i] = append(values[i], value(t))
			}
		}
		return newRatio(values[0], values[1])
	}
	r.Rate = of(func(t Turn) float64 { return t.EventsPerSecond })
	r.CPU = of(func(t Turn) float64 { return t.CPUMicrosPerEvent })
	r.P99 = of(func(t Turn) float64 { return t.P99Millis })
	r.WholeCPU = report.Ratio(r.Builds[0].CPUMicrosPerEvent, r.Builds[1].CPUMicrosPerEvent)
}

// Print writes the report as a table for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, r.print, r.printRatios)
}

func (r *Report) print(w io.Writer) {
	what := "single events"
	if r.Options.Load.Batch > 0 {
		what = fmt.Sprintf("batches of %d", r.Options.Load.Batch)
	}
	if r.Options.Load.Repeat {
		what += fmt.Sprintf(", traits of %g of them change", r.Options.Load.ChangeRatio)
	}
	fmt.Fprintf(w, "%d CPUs, %s, %d known profiles, %d live segments; %s, %d connections, %d pairs of turns of %v\n",
		r.CPUs, r.Go, r.Options.Load.Profiles, r.Options.Segments, what, r.Options.Connections, r.Options.Pairs, r.Options.Turn)
	fmt.Fprintln(w, "build\tevents/s\tCPU µs/event in its turns\tover the whole run\tp99 ms\tpeak RSS MB\tfailed\tmissing\tdoubled\t")
	for _, b := range r.Builds {
		failed := uint64(0)
		for _, t := range b.Turns {
			failed += t.Failed
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f\t%d\t%d\t%d\t\n", b.Path,
			report.Over(b.Turns, func(t *Turn) float64 { return t.EventsPerSecond }).Median,
			report.Over(b.Turns, func(t *Turn) float64 { return t.CPUMicrosPerEvent }).Median, b.CPUMicrosPerEvent,
			report.Over(b.Turns, func(t *Turn) float64 { return t.P99Millis }).Median,
			float64(b.PeakRSSBytes)/1e6, failed, b.Once.Missing, b.Once.Doubled)
	}
}

func (r *Report) printRatios(w io.Writer) {
	fmt.Fprintln(w, "the first by the second, within pairs")
	for _, x := range []struct {
		name string
		of   Ratio
	}{{"rate", r.Rate}, {"CPU in its turns", r.CPU}, {"p99", r.P99}} {
		fmt.Fprintf(w, "%s: %.3f (95 %%: %.3f to %.3f)\n", x.name, x.of.Median, x.of.Low, x.of.High)
	}
	fmt.Fprintf(w, "CPU over the whole run: %.3f\n", r.WholeCPU)
}
