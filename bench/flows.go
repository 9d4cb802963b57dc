package main

import (
	"context"
	"time"

	"github.com/musterhq/muster/bench/internal/flows"
)

func flowsRun(ctx context.Context, s streams, args []string) error {
	var o flows.Options
	f := newFlags("flows", s)
	f.IntVar(&o.Flows, "flows", 100, "flows that are live under load; 0 leaves the load out")
	f.Float64Var(&o.RatePerSecond, "rate", 0, "events/s of the load; 0 measures at 10, 25, 50 and 75 % of the greatest rate with flows, and at half of that without")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "length of each phase of the load")
	f.IntVar(&o.Profiles, "profiles", 50_000, "profiles that the load falls on")
	f.IntVar(&o.Connections, "connections", singleConnections, "connections of the load")
	f.Float64Var(&o.ProbesPerSecond, "probes", 100, "events/s beside the load that are followed through their flows")
	f.IntVar(&o.Sleepers, "sleepers", 1_000_000, "enrolments that sleep; 0 leaves them out")
	f.DurationVar(&o.Budget, "budget", 15*time.Minute, "time for everything")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of events and flows")
	return measure(ctx, f, newTrial(f, s), args, &o.Options, func() error { return o.Validate() }, func() (*flows.Report, error) { return flows.Run(ctx, o) })
}
