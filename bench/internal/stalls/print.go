package stalls

import (
	"fmt"
	"io"
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
	if len(r.Ran) > 0 {
		fmt.Fprintln(w, "without a processor: these had them meanwhile (seconds of processors)")
		list(r.Ran)
	}
}
