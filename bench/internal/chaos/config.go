package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/flowcrash"
)

// Limits of a [Config].
const (
	MaxRounds = 10_000
	maxNodes  = 9
	maxLoad   = time.Minute
)

// Config says what to do. The zero value of a field but Binary and Dir means its
// default.
type Config struct {
	// Binary is the path of muster.
	Binary string
	// Dir, an empty directory, takes data and logs of all processes.
	Dir string
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
	// goes on any more. Defaults 60 s.
	StartTimeout, HealTimeout time.Duration
	// Log receives a line per fault and per round; nil is silent.
	Log func(format string, args ...any)
}

// Topology is what runs.
type Topology struct {
	// Nodes of muster. Default 3.
	Nodes int
	// Brokers of Kafka, 1 or 3. Default 1.
	Brokers int
	// Partitions of the log. Default 3, 1 with one node.
	Partitions int
	// Session is how long a node may be silent before another takes over. Default 3 s.
	Session time.Duration
	// Args are further arguments of muster serve.
	Args []string
}

func (c Config) withDefaults() Config {
	t := &c.Topology
	c.Rounds, t.Nodes, t.Brokers = cmp.Or(c.Rounds, 10), cmp.Or(t.Nodes, 3), cmp.Or(t.Brokers, 1)
	t.Partitions = cmp.Or(t.Partitions, min(3, t.Nodes))
	c.MinLoad, c.MaxLoad = cmp.Or(c.MinLoad, 200*time.Millisecond), cmp.Or(c.MaxLoad, time.Second)
	c.StartTimeout, c.HealTimeout = cmp.Or(c.StartTimeout, time.Minute), cmp.Or(c.HealTimeout, time.Minute)
	t.Session = cmp.Or(t.Session, 3*time.Second)
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return c
}

func (c Config) validate() error {
	switch t := c.Topology; {
	case c.Binary == "" || c.Dir == "":
		return fmt.Errorf("a chaos run needs a binary and a directory")
	case c.Rounds < 1 || c.Rounds > MaxRounds:
		return fmt.Errorf("rounds must be 1 to %d, not %d", MaxRounds, c.Rounds)
	case len(c.Faults) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(c.Faults, k) && (k != brokerStopped || t.Brokers == 3) }):
		return fmt.Errorf("faults must be some of %q, not %q", kinds, c.Faults)
	case t.Nodes < 1 || t.Nodes > maxNodes:
		return fmt.Errorf("nodes must be 1 to %d, not %d", maxNodes, t.Nodes)
	case t.Brokers != 1 && t.Brokers != 3:
		return fmt.Errorf("brokers must be 1 or 3, not %d", t.Brokers)
	case t.Partitions < 1 || t.Partitions > 64:
		return fmt.Errorf("partitions must be 1 to 64, not %d", t.Partitions)
	case t.Session < time.Second || t.Session > maxLoad:
		return fmt.Errorf("a session must last 1 s to %v, not %v", maxLoad, t.Session)
	case c.MinLoad < 0 || c.MaxLoad < c.MinLoad || c.MaxLoad > maxLoad:
		return fmt.Errorf("load must last 0 to %v, the least no longer than the most", maxLoad)
	}
	return nil
}

// Report is what a run did. It says more than counts only when every check
// passed.
type Report struct {
	Rounds int `json:"rounds"`
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

// BrokersOf is how many brokers runs with a seed usually have: three for every
// fourth.
func BrokersOf(seed uint64) int {
	if seed%4 == 3 {
		return 3
	}
	return 1
}
