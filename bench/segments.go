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

func segmentsRun(ctx context.Context, s streams, args []string) (err error) {
	var o segments.Options
	f := newFlags("segments", s)
	f.IntVar(&o.MinProfiles, "min-profiles", 10_000, "profiles of the first size; each further one is ten times as large")
	f.IntVar(&o.MaxProfiles, "max-profiles", 10_000_000, "profiles of the last size")
	f.IntVar(&o.EventsPerProfile, "events-per-profile", 10, "past events per profile")
	f.IntVar(&o.ActiveProfiles, "active-profiles", 0, "profiles, spread over all, that present events fall on; 0 is all of them")
	f.DurationVar(&o.Budget, "budget", 15*time.Minute, "time for growing and measuring; the stale-read check comes after it")
	memory := f.Int64("max-memory-mb", 0, "most memory to take, in MiB; 0 is four fifths of what is free")
	f.IntVar(&o.Events, "events", 200_000, "events of each measurement of ingest")
	f.IntVar(&o.CostEvents, "cost-events", 50_000, "events of each measurement with 1 to 1,000 segments")
	f.IntVar(&o.Rounds, "rounds", 3, "how often each of those is repeated")
	f.IntVar(&o.Reads, "reads", 20_000, "counts that are timed under ingest")
	f.IntVar(&o.StaleReads, "stale-reads", 1_000_000, "acknowledged events that are each followed by a read; 0 leaves that out")
	f.IntVar(&o.Workers, "workers", 16, "how many submit at the same time")
	history := f.Int64("history-memory-mb", 0, "DuckDB's memory in MiB; 0 is the server's default")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of events")
	out := f.String("out", "", "directory for report.json and the charts; empty makes a temporary one")
	parent := f.String("dir", "", "where the data directory is made; empty is the system's temporary one. It is removed at the end")
	profile := f.Bool("cpuprofile", false, "write CPU profiles of ingest with 20 segments beside the report")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	o.MemoryBytes, o.HistoryMemory, o.Log = *memory<<20, *history<<20, s.logf
	if err := o.Validate(); err != nil {
		return err
	}
	if *out == "" {
		if *out, err = os.MkdirTemp("", "muster-segments-"); err != nil {
			return fmt.Errorf("out: %w", err)
		}
	} else if err := os.MkdirAll(*out, 0o755); err != nil {
		return fmt.Errorf("out: %w", err)
	}
	if *profile {
		o.ProfileDir = *out
	}
	if o.Dir, err = workDir(*parent); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	report, err := segments.Run(ctx, o)
	if report == nil {
		return err
	}
	// What was measured before a fault is worth having.
	err = errors.Join(err, report.Print(s.out), writeJSON(filepath.Join(*out, "report.json"), report))
	plots, fault := report.Plot(*out)
	fmt.Fprintf(s.out, "\nreport.json and %d charts are in %s\n", len(plots), *out)
	return errors.Join(err, fault)
}
