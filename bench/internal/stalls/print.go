package stalls

import (
	"fmt"
	"io"
)

// The stalls that are printed, and the causes of each.
const (
	printedStalls = 20
	printedCauses = 4
)

// Print writes a report in a few lines.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "slow requests: %d took over %g ms while %.1f s were traced; one of them at least was unanswered for %.2f s, of which\n",
		r.Requests, r.ThresholdMillis, r.TracedSeconds, r.Seconds)
	list := func(of []Share) {
		for _, s := range of {
			fmt.Fprintf(w, "  %.3f s %s\n", s.Seconds, s.Name)
		}
	}
	list(r.Causes)
	fmt.Fprintf(w, "stalls: %d, of which the longest\n", len(r.Each))
	for _, s := range r.Each[:min(len(r.Each), printedStalls)] {
		fmt.Fprintf(w, "  at %.3f s %.0f ms:", s.AtSeconds, s.Seconds*1e3)
		for i, c := range s.Causes[:min(len(s.Causes), printedCauses)] {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, " %s %.0f", c.Name, c.Seconds*1e3)
		}
		fmt.Fprintln(w)
	}
	if len(r.Ran) > 0 {
		fmt.Fprintln(w, "without a processor: these had them meanwhile (seconds of processors)")
		list(r.Ran)
	}
}
