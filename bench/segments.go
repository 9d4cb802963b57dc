package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/bench/internal/segments"
)

func segmentsRun(ctx context.Context, s streams, args []string) error {
	var o segments.Options
	f := newFlags("segments", s)
	f.IntVar(&o.MinProfiles, "min-profiles", 10_000, "profiles of the first size; each further one is ten times as large")
	f.IntVar(&o.MaxProfiles, "max-profiles", 10_000_000, "profiles of the last size")
	f.IntVar(&o.EventsPerProfile, "events-per-profile", 10, "past events per profile")
	f.IntVar(&o.ActiveProfiles, "active-profiles", 0, "profiles, spread over all, that present events fall on; 0 is all of them")
	f.DurationVar(&o.Budget, "budget", 15*time.Minute, "time for growing and measuring; the stale-read check comes after it")
	memory := f.Int64("max-memory-mb", 0, "most memory to take, in MiB; 0 is four fifths of what is free")
	f.IntVar(&o.Events, "events", 200_000, "events of each measurement of ingest")
	f.IntVar(&o.CostEvents, "cost-events", 200_000, "events of each measurement with 1 to 1,000 segments")
	f.IntVar(&o.Rounds, "rounds", 3, "how often each of those is repeated")
	f.IntVar(&o.Reads, "reads", 20_000, "counts that are timed under ingest")
	f.IntVar(&o.StaleReads, "stale-reads", 1_000_000, "acknowledged events that are each followed by a read; 0 leaves that out")
	f.IntVar(&o.Workers, "workers", 16, "how many submit at the same time")
	history := f.Int64("history-memory-mb", 0, "DuckDB's memory in MiB; 0 is the server's default")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of events")
	out := f.String("out", "", "directory for report.json and the charts; empty makes a temporary one")
	t := &trial{streams: s, without: true}
	f.StringVar(&t.parent, "dir", "", "where the data directory is made; empty is the system's temporary one. It is removed at the end, but not after a failure")
	profile := f.Bool("cpuprofile", false, "write CPU profiles of ingest with 20 segments beside the report")
	prepare := func() (err error) {
		o.MemoryBytes, o.HistoryMemory = *memory<<20, *history<<20
		if err := o.Validate(); err != nil {
			return err
		}
		if *out == "" {
			*out, err = os.MkdirTemp("", "muster-segments-")
		} else {
			err = os.MkdirAll(*out, 0o755)
		}
		if err != nil {
			return fmt.Errorf("out: %w", err)
		}
		if *profile {
			o.ProfileDir = *out
		}
		t.json = filepath.Join(*out, "report.json")
		return nil
	}
	charts := 0
	err := measure(ctx, f, t, args, &o.Options, prepare, func() (*segments.Report, error) {
		r, err := segments.Run(ctx, o)
		if r == nil {
			return nil, err
		}
		plots, fault := r.Plot(*out)
		charts = len(plots)
		return r, errors.Join(err, fault)
	})
	if charts > 0 {
		fmt.Fprintf(s.out, "\nreport.json and %d charts are in %s\n", charts, *out)
	}
	return err
}
