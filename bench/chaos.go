package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/chaos"
)

func chaosRun(ctx context.Context, s streams, args []string) error {
	f := newFlags("chaos", s)
	rounds := f.Int("rounds", 100, "how often there are faults")
	seed := f.Uint64("seed", 1, "seed of faults, requests and moments")
	faults := f.String("faults", "", "the only faults there are, with commas between them, such as \"node frozen\"; empty means all")
	nodes := f.Int("nodes", 3, "nodes of muster")
	brokers := f.Int("brokers", 0, "brokers of Kafka, 1 or 3; 0: 3 for every fourth seed")
	partitions := f.Int("partitions", 0, "partitions of the log; 0: 3, or 1 with one node")
	session := f.Duration("session-timeout", 3*time.Second, "how long a node may be silent before another takes over")
	t := newTrial(f, s)
	if err := parse(f, args, 0); err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	if *brokers == 0 {
		*brokers = chaos.BrokersOf(*seed)
	}
	var only []string
	if *faults != "" {
		only = strings.Split(*faults, ",")
	}
	r, err := chaos.Run(ctx, chaos.Config{
		Binary: t.binary, Dir: filepath.Join(t.dir, "chaos"), Rounds: *rounds, Faults: only, Seed: *seed, Log: s.logf,
		Topology: chaos.Topology{Nodes: *nodes, Brokers: *brokers, Partitions: *partitions, Session: *session, Args: t.serverArgs()},
	})
	if err != nil {
		return t.close(err, nil)
	}
	fmt.Fprintf(s.out, "seed %d: %d rounds with %d nodes and %d brokers in %v: %v\n", *seed, r.Rounds, *nodes, *brokers, r.Elapsed.Round(time.Second), r.Faults)
	fmt.Fprintf(s.out, "%d events of %d profiles acknowledged, %d sent again on purpose: each is in ClickHouse exactly once, each profile and segment count is right, at each node\n",
		r.Events.Acked, r.Events.Profiles, r.Events.Repeated)
	fmt.Fprintf(s.out, "%d requests, %d sent again after no answer; %d events given up, %d of them in ClickHouse, none twice\n",
		r.Events.Requests+r.Flows.Requests, r.Events.Retried+r.Flows.Retried, r.Events.GivenUp, r.Events.GivenUpInHistory)
	fmt.Fprintf(s.out, "%d enrolments of %d people (%d by calls that came late), %d steps, %d merges, %d pauses: each enrolment exists once, took the path it had to and is counted right\n",
		r.Flows.Enrolments, r.Flows.People, r.Flows.Late, r.Flows.Steps, r.Flows.Merges, r.Flows.Pauses)
	fmt.Fprintf(s.out, "%d webhook calls and %d e-mails, each under one id; %d came again after a fault of the receiver, %d over a fault of the round\n",
		r.Flows.Calls, r.Flows.Mails, r.Flows.AfterError, r.Flows.AfterKill)
	fmt.Fprintf(s.out, "%d posts (%d more were given up) and %d reads of probes are linearizable; the longest post took %v\n",
		r.Probes.Posts, r.Probes.GivenUp, r.Probes.Reads, r.Probes.WaitMax.Round(time.Millisecond))
	fmt.Fprintf(s.out, "after the faults of a round all was answered within %v; %d times a node ended when it woke\n", r.HealMax.Round(time.Millisecond), r.Ended)
	return t.close(nil, r)
}
