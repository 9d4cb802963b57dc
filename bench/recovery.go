package main

import (
	"context"

	"github.com/musterhq/muster/bench/internal/recovery"
)

func recoveryRun(ctx context.Context, s streams, args []string) error {
	var o recovery.Options
	f := newFlags("recovery", s)
	f.IntVar(&o.Events, "events", 1_000_000, "events stored before the first kill")
	f.IntVar(&o.Profiles, "profiles", 100_000, "profiles of these events")
	f.IntVar(&o.Segments, "segments", 20, "segments that are live meanwhile, 0 to 20")
	f.IntVar(&o.Clients, "clients", 16, "clients that retry without a pause")
	f.IntVar(&o.Rounds, "rounds", 5, "kills")
	return measure(ctx, f, newTrial(f, s), args, &o.Options, func() error { return o.Validate() }, func() (*recovery.Report, error) { return recovery.Run(ctx, o) })
}
