package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/musterhq/muster/bench/internal/figures"
)

// segmentRounds is how often costs beside segments are measured at least: half a second of events
// may have a checkpoint in it, so one measurement of each says little.
const segmentRounds = 3

func figuresRun(ctx context.Context, s streams, args []string) error {
	var o figures.Options
	f := newFlags("figures", s)
	out := f.String("out", "bench/figures", "directory for the page, README.md, and its charts")
	f.IntVar(&o.Ingest.Rounds, "rounds", 3, "how often ingest is measured")
	f.DurationVar(&o.Ingest.Duration, "duration", 15*time.Second, "length of each phase of ingest")
	f.IntVar(&o.Segments.MaxProfiles, "max-profiles", 1_000_000, "profiles of the largest account of the measurement of segments; the first has 10,000")
	f.IntVar(&o.Segments.StaleReads, "stale-reads", 100_000, "events that are each followed by a read")
	f.IntVar(&o.Recovery.Events, "events", 1_000_000, "events stored before the first kill")
	f.IntVar(&o.Recovery.Rounds, "kills", 5, "kills under clients that retry")
	t := newTrial(f, s)
	prepare := func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		i := &o.Ingest
		i.Baseline, i.BaselineDuration = []string{self, baselineCommand}, min(5*time.Second, i.Duration)
		i.Profiles, i.NewRatio, i.EventBytes, i.Segments, i.Seed = 100_000, 0.05, 320, 20, 1
		if i.Modes, err = ingestModes("events", "single,batch", "", 100, 0); err != nil {
			return err
		}
		g := &o.Segments
		g.MinProfiles, g.EventsPerProfile, g.Budget, g.Seed = min(10_000, g.MaxProfiles), 10, 15*time.Minute, 1
		g.Events, g.CostEvents, g.Rounds, g.Reads, g.Workers = min(200_000, 10*g.MaxProfiles), min(200_000, 10*g.MaxProfiles), max(segmentRounds, i.Rounds), 20_000, 16
		c := &o.Recovery
		c.Profiles, c.Segments, c.Clients = min(100_000, c.Events), 20, 16
		return o.Validate()
	}
	return measure(ctx, f, t, args, &o.Options, prepare, func() (*figures.Report, error) {
		r, err := figures.Run(ctx, o)
		if r == nil {
			return nil, err
		}
		return r, errors.Join(err, r.Write(*out))
	})
}
