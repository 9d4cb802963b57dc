package main

import (
	"context"
	"time"

	"github.com/musterhq/muster/bench/internal/soak"
)

func soakRun(ctx context.Context, s streams, args []string) error {
	var o soak.Options
	f := newFlags("soak", s)
	f.DurationVar(&o.Duration, "duration", 30*time.Minute, "length of the load")
	f.DurationVar(&o.Interval, "interval", time.Minute, "length of one sample")
	f.Float64Var(&o.RatePerSecond, "rate", 0, "events/s; 0 is half of the greatest rate, which is measured first")
	f.Float64Var(&o.MergesPerSecond, "merges", 5, "pairs of profiles merged each second")
	f.IntVar(&o.Batch, "batch", 0, "events per request; 0 sends single events")
	f.IntVar(&o.Connections, "connections", singleConnections, "connections")
	f.IntVar(&o.Profiles, "profiles", 100_000, "known profiles")
	f.Float64Var(&o.NewRatio, "new-ratio", 0, "share of events on new profiles, 0 to 1")
	f.IntVar(&o.EventBytes, "event-bytes", 320, "bytes of one event's JSON")
	f.IntVar(&o.Segments, "segments", 20, "segments that are live meanwhile, 0 to 20")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the generator")
	return measure(ctx, f, newTrial(f, s), args, &o.Options, func() error { return o.Validate() }, func() (*soak.Report, error) { return soak.Run(ctx, o) })
}
