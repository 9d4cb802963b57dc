package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/musterhq/muster/bench/internal/builds"
)

func buildsRun(ctx context.Context, s streams, args []string) error {
	var o builds.Options
	f := newFlags("builds", s)
	f.StringVar(&o.Other, "other", "", "the muster binary that --binary is compared with; the same one shows what a run can tell apart")
	mode := f.String("mode", "single", "what to send: single or batch")
	batch := f.Int("batch", 100, "events per batch")
	connections := f.Int("connections", 0, fmt.Sprintf("connections; 0 is %d for single events and %d for batches", singleConnections, batchConnections))
	change := f.String("change-ratio", "all", "share of the events whose traits change, 0 to 1; all draws traits for each event, so that nearly each changes its profile")
	f.IntVar(&o.Pairs, "pairs", 40, "turns of each build")
	f.DurationVar(&o.Turn, "turn", 2*time.Second, "length of a turn")
	f.IntVar(&o.Load.Profiles, "profiles", 100_000, "known profiles")
	f.Float64Var(&o.Load.NewRatio, "new-ratio", 0.05, "share of events on new profiles, 0 to 1")
	f.IntVar(&o.Load.EventBytes, "event-bytes", 320, "bytes of one event's JSON")
	f.IntVar(&o.Segments, "segments", 20, "segments that are live meanwhile, 0 to 20")
	f.Uint64Var(&o.Load.Seed, "seed", 1, "seed of the generator")
	t := newTrial(f, s)
	prepare := func() error {
		if o.Other == "" {
			return errors.New("other: name the binary of the other build")
		}
		if _, err := exec.LookPath(o.Other); err != nil {
			return fmt.Errorf("other: %w", err)
		}
		modes, err := modesOf(*mode, *batch, *connections)
		if err == nil {
			modes, err = withChanges(modes, *change)
		}
		if err != nil {
			return err
		}
		if len(modes) != 1 {
			return errors.New("mode and change-ratio: name one of each")
		}
		m := modes[0]
		o.Connections, o.Load.Batch, o.Load.Repeat, o.Load.ChangeRatio = m.Connections, m.Batch, m.Repeat, m.ChangeRatio
		return o.Validate()
	}
	return measure(ctx, f, t, args, &o.Options, prepare, func() (*builds.Report, error) { return builds.Run(ctx, o) })
}
