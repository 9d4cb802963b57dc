package main

import (
	"context"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/chaos"
)

func chaosRun(ctx context.Context, s streams, args []string) error {
	var c chaos.Config
	f := newFlags("chaos", s)
	f.IntVar(&c.Rounds, "rounds", 100, "how often there are faults")
	f.Uint64Var(&c.Seed, "seed", 1, "seed of faults, requests and moments")
	faults := f.String("faults", "", "the only faults there are, with commas between them, such as \"node frozen\"; empty means all")
	f.IntVar(&c.Topology.Nodes, "nodes", 3, "nodes of muster")
	f.IntVar(&c.Topology.Brokers, "brokers", 0, "brokers of Kafka, 1 or 3; 0: 3 for every fourth seed")
	f.IntVar(&c.Topology.Partitions, "partitions", 0, "partitions of the log; 0: 3, or 1 with one node")
	f.DurationVar(&c.Topology.Session, "session-timeout", 3*time.Second, "how long a node may be silent before another takes over")
	prepare := func() error {
		if *faults != "" {
			c.Faults = strings.Split(*faults, ",")
		}
		return c.Complete()
	}
	return measure(ctx, f, newTrial(f, s), args, &c.Options, prepare, func() (*chaos.Report, error) { return chaos.Run(ctx, c) })
}
