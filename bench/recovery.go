package main

import (
	"context"
	"path/filepath"

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
	t := newTrial(f, s)
	if err := parse(f, args, 0); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	o.Dir, o.Binary, o.ServerArgs, o.Log = filepath.Join(t.dir, "server"), t.binary, t.serverArgs(), s.logf
	report, err := recovery.Run(ctx, o)
	return finish(t, report, err)
}
