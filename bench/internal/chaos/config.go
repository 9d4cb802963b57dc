package chaos

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/flowcrash"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/server"
)

// Limits of a [Config].
const (
	MaxRounds = 10_000
	maxNodes  = 9
	maxLoad   = time.Minute
)

// Config says what to do. The zero value of a number means its default.
type Config struct {
	server.Options
	// Topology is what runs.
	Topology Topology
	// Rounds is how often there are faults. Default 10.
	Rounds int
	// Faults are the only kinds there are; none means all.
	Faults []string
	// Seed decides which faults, requests and moments there are.
	Seed uint64
	// MinLoad and MaxLoad bound the random time of load before the faults of a
	// round. Defaults 200 ms and 1 s.
	MinLoad, MaxLoad time.Duration
	// StartTimeout bounds the start of a process. HealTimeout bounds the time from
	// the end of the faults until everything has an answer, and again until nothing
	// continues any more. Defaults 60 s.
	StartTimeout, HealTimeout time.Duration
}

// Topology is what runs.
type Topology struct {
	// Nodes of muster. Default 3.
	Nodes int
	// Brokers of Kafka, 1 or 3. Default 3 for every fourth seed, 1 for the others.
	Brokers int
	// Partitions of the log. Default 3, 1 with one node.
	Partitions int
	// Session is how long a node may be silent before another takes over. Default 3 s.
	Session time.Duration
}

// Complete puts the defaults in place of zero values, and reports the first fault.
func (c *Config) Complete() error {
	t := &c.Topology
	brokers := 1
	if c.Seed%4 == 3 {
		brokers = 3
	}
	c.Rounds, t.Nodes, t.Brokers = cmp.Or(c.Rounds, 10), cmp.Or(t.Nodes, 3), cmp.Or(t.Brokers, brokers)
	t.Partitions = cmp.Or(t.Partitions, min(3, t.Nodes))
	c.MinLoad, c.MaxLoad = cmp.Or(c.MinLoad, 200*time.Millisecond), cmp.Or(c.MaxLoad, time.Second)
	c.StartTimeout, c.HealTimeout = cmp.Or(c.StartTimeout, time.Minute), cmp.Or(c.HealTimeout, time.Minute)
	t.Session = cmp.Or(t.Session, 3*time.Second)
	switch {
	case len(c.Faults) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(c.Faults, k) && (k != brokerStopped || t.Brokers == 3) }):
		return fmt.Errorf("faults must be some of %q, not %q", kinds, c.Faults)
	case t.Brokers != 1 && t.Brokers != 3:
		return fmt.Errorf("brokers must be 1 or 3, not %d", t.Brokers)
	}
	return cmp.Or(
		server.Within("rounds", c.Rounds, 1, MaxRounds),
		server.Within("nodes", t.Nodes, 1, maxNodes),
		server.Within("partitions", t.Partitions, 1, 64),
		server.Within("session-timeout", t.Session, time.Second, maxLoad),
		server.Within("load", c.MaxLoad, 0, maxLoad),
		server.Within("load, the least,", c.MinLoad, 0, c.MaxLoad),
	)
}

// Report is what a run did. It is only made when every check passed.
type Report struct {
	Seed    uint64 `json:"seed"`
	Nodes   int    `json:"nodes"`
	Brokers int    `json:"brokers"`
	Rounds  int    `json:"rounds"`
	// Faults are how often each kind happened.
	Faults map[string]int `json:"faults"`
	// Ended is how often a node that was frozen or cut off for longer than its
	// session ended because another had taken over.
	Ended  int            `json:"nodes_that_ended_when_they_woke"`
	Events crash.Work     `json:"events"`
	Flows  flowcrash.Work `json:"flows"`
	Probes ProbeWork      `json:"probes"`
	// HealMax is the longest time from the end of a round's faults until everything
	// had its answer.
	HealMax time.Duration `json:"heal_max_ns"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// ProbeWork is what the probes did.
type ProbeWork struct {
	Posts   int `json:"posts"`
	Reads   int `json:"reads"`
	GivenUp int `json:"posts_given_up"`
	// WaitMax is how long one post took at most, all attempts together.
	WaitMax time.Duration `json:"post_wait_max_ns"`
}

func (w *ProbeWork) add(x ProbeWork) {
	w.Posts += x.Posts
	w.Reads += x.Reads
	w.GivenUp += x.GivenUp
	w.WaitMax = max(w.WaitMax, x.WaitMax)
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, func(w io.Writer) {
		e, f := &r.Events, &r.Flows
		fmt.Fprintf(w, "seed %d: %d rounds with %d nodes and %d brokers in %v: %v\n", r.Seed, r.Rounds, r.Nodes, r.Brokers, r.Elapsed.Round(time.Second), r.Faults)
		fmt.Fprintf(w, "%d events of %d profiles acknowledged, %d sent again on purpose: each is in ClickHouse exactly once, each profile and segment count is right, at each node\n",
			e.Acked, e.Profiles, e.Repeated)
		fmt.Fprintf(w, "%d requests, %d sent again after no answer; %d events given up, %d of them in ClickHouse, none twice\n",
			e.Requests+f.Requests, e.Retried+f.Retried, e.GivenUp, e.GivenUpInHistory)
		fmt.Fprintf(w, "%d enrolments of %d people (%d by calls that came late), %d steps, %d merges, %d pauses: each enrolment exists once, took the path it had to and is counted right\n",
			f.Enrolments, f.People, f.Late, f.Steps, f.Merges, f.Pauses)
		fmt.Fprintf(w, "%d webhook calls and %d e-mails, each under one id; %d came again after a fault of the receiver, %d over a fault of the round\n",
			f.Calls, f.Mails, f.AfterError, f.AfterKill)
		fmt.Fprintf(w, "%d posts (%d more were given up) and %d reads of probes are linearizable; the longest post took %v\n",
			r.Probes.Posts, r.Probes.GivenUp, r.Probes.Reads, r.Probes.WaitMax.Round(time.Millisecond))
		fmt.Fprintf(w, "after the faults of a round all was answered within %v; %d times a node ended when it woke\n", r.HealMax.Round(time.Millisecond), r.Ended)
	})
}
