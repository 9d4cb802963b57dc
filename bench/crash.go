package main

import (
	"context"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/flowcrash"
	"github.com/musterhq/muster/bench/internal/topology"
)

func crashRun(ctx context.Context, s streams, args []string) error {
	c := flowcrash.Config{Kills: topology.Kills{Variants: topology.UsualVariants()}, MailFaults: true}
	k := &c.Kills
	f := newFlags("crash", s)
	withFlows := f.Bool("flows", false, "with flows running: each enrolment exists once, each effect has one id")
	f.IntVar(&k.Rounds, "rounds", 50, "how often the server is killed under load")
	f.Uint64Var(&k.Seed, "seed", 1, "seed of requests and moments")
	f.IntVar(&k.Workers, "workers", 0, "workers that post at the same time; every other one posts batches; 0 is 6, and 4 with --flows")
	f.DurationVar(&k.MaxLoad, "max-load", 0, "longest time from ready to kill; 0 is 900ms, and 2s with --flows")
	t := newTrial(f, s)
	// A flag decides which of two measurements it is.
	if err := parse(f, args, 0); err != nil {
		return err
	}
	if *withFlows {
		return measure(ctx, f, t, args, &k.Options, c.Complete, func() (*flowcrash.Report, error) { return flowcrash.Run(ctx, c) })
	}
	return measure(ctx, f, t, args, &k.Options, func() error { return crash.Complete(k) }, func() (*crash.Report, error) { return crash.Run(ctx, *k) })
}
