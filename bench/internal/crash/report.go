package crash

import (
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Report is what a run did. It is only made when every check passed.
type Report struct {
	topology.Killed
	Work
}

// Work is what a [Load] did.
type Work struct {
	Requests         int `json:"requests"`
	Retried          int `json:"requests_retried"`
	Twins            int `json:"requests_sent_twice_at_once"`
	Acked            int `json:"events_acked"`
	Repeated         int `json:"events_repeated"`
	GivenUp          int `json:"events_given_up"`
	GivenUpInHistory int `json:"events_unacked_in_history"`
	Profiles         int `json:"profiles"`
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, func(w io.Writer) {
		fmt.Fprintf(w, "killed %d times under load and %d times while starting, in %v\n", r.Kills, r.KillsWhileStart, r.Elapsed.Round(time.Second))
		fmt.Fprintf(w, "%d requests, %d sent again after no answer, %d sent twice at once; %d events sent again on purpose\n",
			r.Requests, r.Retried, r.Twins, r.Repeated)
		fmt.Fprintf(w, "%d events of %d profiles acknowledged: each is in history exactly once, each profile and segment count is right\n",
			r.Acked, r.Profiles)
		fmt.Fprintf(w, "%d events given up, %d of them in history, none twice\n", r.GivenUp, r.GivenUpInHistory)
	}, r.PrintStarts)
}
