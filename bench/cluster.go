package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/cluster"
)

func clusterRun(ctx context.Context, s streams, args []string) error {
	var o cluster.Options
	f := newFlags("cluster", s)
	modes := f.String("modes", "single,batch", "what to send: single, batch or both, separated by a comma")
	batch := f.Int("batch", 100, "events per batch")
	connections := f.Int("connections", 0, fmt.Sprintf("connections, and senders of bare produce; 0 is %d for single events and %d for batches", singleConnections, batchConnections))
	nodes := f.String("nodes", "1,3", "numbers of nodes, separated by a comma")
	f.IntVar(&o.Partitions, "partitions", 6, "partitions of the log, with a company in each")
	f.IntVar(&o.Rounds, "rounds", 3, "how often ingest is measured; 0 leaves it out")
	f.DurationVar(&o.Duration, "duration", 5*time.Second, "length of each phase")
	f.IntVar(&o.Profiles, "profiles", 100_000, "known profiles of all companies together")
	f.Float64Var(&o.NewRatio, "new-ratio", 0.05, "share of events on new profiles, 0 to 1")
	f.IntVar(&o.EventBytes, "event-bytes", 320, "bytes of one event's JSON")
	f.IntVar(&o.Segments, "segments", 20, "segments that are live in each company, 0 to 20")
	f.IntVar(&o.MoveProfiles, "move-profiles", 1_000_000, "profiles of the partition that moves; 0 leaves moves out")
	f.IntVar(&o.Cycles, "cycles", 1, "how often its owner is stopped and killed")
	f.Float64Var(&o.ProbesPerSecond, "probes", 50, "events and counts a second while it moves")
	f.DurationVar(&o.Session, "session-timeout", 6*time.Second, "how long a node may be silent before another takes over")
	f.StringVar(&o.Services, "services", cluster.Own, "Kafka and ClickHouse: own starts them for the run, shared takes those of make services-up or the environment")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the generator")
	prepare := func() (err error) {
		if o.Modes, err = modesOf(*modes, *batch, *connections); err != nil {
			return err
		}
		for text := range strings.SplitSeq(*nodes, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				return fmt.Errorf("nodes: %q is no number", text)
			}
			o.Nodes = append(o.Nodes, n)
		}
		return o.Validate()
	}
	return measure(ctx, f, newTrial(f, s), args, &o.Options, prepare, func() (*cluster.Report, error) { return cluster.Run(ctx, o) })
}
