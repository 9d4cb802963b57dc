package editor

import (
	"fmt"
	"io"
	"slices"

	"github.com/musterhq/muster/bench/internal/report"
)

// The targets, in milliseconds: of the 99th percentile, of keystrokes the 95th, and of pages
// the slowest.
const (
	searchTarget  = 20
	suggestTarget = 5
	firstTarget   = 150
	editTarget    = 10
	keyTarget     = 150
	pageTarget    = 1000
)

// Line is the latencies of one kind of question, in milliseconds.
type Line struct {
	Name   string  `json:"name"`
	N      int     `json:"n"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
	Target float64 `json:"target_ms"`
	// Quantile is the share of the questions that are to meet the target, and At what they
	// took at most.
	Quantile float64 `json:"quantile"`
	At       float64 `json:"at_quantile_ms"`
}

// Report is what was measured.
type Report struct {
	Options       Options `json:"options"`
	FillSeconds   float64 `json:"fill_seconds"`
	DefineSeconds float64 `json:"define_seconds"`
	Lines         []Line  `json:"lines"`
	// Agreed is how many profiles a preview and the segment saved from it both had.
	Agreed uint64 `json:"agreed"`
}

func (r *Report) add(name string, target, quantile float64, times []float64) {
	slices.Sort(times)
	at := func(q float64) float64 { return report.Quantile(times, q) }
	r.Lines = append(r.Lines, Line{name, len(times), at(0.5), at(0.99), at(1), target, quantile, at(quantile)})
}

// Print writes the report as a table.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, r.print)
}

func (r *Report) print(w io.Writer) {
	fmt.Fprintf(w, "%d profiles, %d events, filled in %.0f s; 7 conditions built in %.1f s; a preview and its segment both have %d profiles\n\n",
		r.Options.Profiles, r.Options.Profiles*r.Options.EventsPerProfile, r.FillSeconds, r.DefineSeconds, r.Agreed)
	fmt.Fprintln(w, "question\tn\tp50 ms\tp99 ms\tmax ms\ttarget\t\t")
	for _, l := range r.Lines {
		verdict := "met"
		if l.At >= l.Target {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.2f\tp%.0f < %.0f\t%s\t\n", l.Name, l.N, l.P50, l.P99, l.Max, 100*l.Quantile, l.Target, verdict)
	}
}
