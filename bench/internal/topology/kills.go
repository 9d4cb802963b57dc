package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/server"
)

// maxLoad is the longest time from ready to kill.
const maxLoad = time.Minute

// Kills says how often and when a [Victim] is killed.
type Kills struct {
	server.Options
	// Variants are further arguments of the server; each start takes one of them.
	// Some should make checkpoints so often that kills hit them.
	Variants [][]string
	// Rounds is how often the server is killed under load.
	Rounds int
	// Seed makes the requests and moments repeatable, as far as the machine is.
	Seed uint64
	// Workers act at the same time.
	Workers int
	// MinLoad and MaxLoad bound the random time from ready to kill.
	MinLoad, MaxLoad time.Duration
	// StartTimeout bounds a start after a kill, StopTimeout the stop at the end.
	// Defaults 60 s.
	StartTimeout, StopTimeout time.Duration
}

// Complete puts the usual numbers in place of zero values, and reports the first fault
// of k, given the limits of rounds and workers.
func (k *Kills) Complete(usual Kills, maxRounds, minWorkers, maxWorkers int) error {
	k.Rounds, k.Workers = cmp.Or(k.Rounds, usual.Rounds), cmp.Or(k.Workers, usual.Workers)
	k.MinLoad, k.MaxLoad = cmp.Or(k.MinLoad, usual.MinLoad), cmp.Or(k.MaxLoad, usual.MaxLoad)
	k.StartTimeout, k.StopTimeout = cmp.Or(k.StartTimeout, time.Minute), cmp.Or(k.StopTimeout, time.Minute)
	return cmp.Or(
		server.Within("rounds", k.Rounds, 1, maxRounds),
		server.Within("workers", k.Workers, minWorkers, maxWorkers),
		server.Within("load", k.MaxLoad, 0, maxLoad),
		server.Within("load, the least,", k.MinLoad, 0, k.MaxLoad),
	)
}

// Killed is the part of a report that says how often and when a server was killed.
type Killed struct {
	Seed            uint64 `json:"seed"`
	Kills           int    `json:"kills"`
	KillsWhileStart int    `json:"kills_while_starting"`
	// StartMedian and StartMax are the times until a restarted server served.
	StartMedian time.Duration `json:"start_median_ns"`
	StartMax    time.Duration `json:"start_max_ns"`
	Elapsed     time.Duration `json:"elapsed_ns"`
}

// PrintStarts writes how long the starts after a kill took.
func (k *Killed) PrintStarts(w io.Writer) {
	fmt.Fprintf(w, "restart: median %v, longest %v\n", k.StartMedian.Round(time.Millisecond), k.StartMax.Round(time.Millisecond))
}

// Close kills the server if one runs: what a run does in the end, whatever came of it.
// It returns the run's error with the seed, and what is to be reported.
func (v *Victim) Close(err error) (Killed, error) {
	if v.Server != nil {
		err = errors.Join(err, v.Server.Kill())
	}
	k := Killed{Seed: v.config.Seed, Kills: len(v.Kills) - v.whileStarting, KillsWhileStart: v.whileStarting, Elapsed: time.Since(v.began)}
	if n := len(v.starts); n > 0 {
		sorted := slices.Sorted(slices.Values(v.starts))
		k.StartMedian, k.StartMax = sorted[n/2], sorted[n-1]
	}
	if err != nil {
		err = fmt.Errorf("seed %d: %w", v.config.Seed, err)
	}
	return k, err
}

// Run runs load through all kills, and then until nothing is open. Before each kill
// it calls before with the number of the round, and after the restart after.
func (v *Victim) Run(ctx context.Context, load func(ctx context.Context, finish <-chan struct{}) error,
	before func(ctx context.Context, group *errgroup.Group, round int) error, after func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	finish := make(chan struct{})
	group.Go(func() error { return load(ctx, finish) })
	round := func(i int) error {
		if err := before(ctx, group, i); err != nil {
			return err
		}
		if err := v.kill(); err != nil {
			return err
		}
		early, err := v.restart(ctx)
		if err != nil {
			return err
		}
		v.config.Logf("round %d: killed (%d more while starting), served again after %v", i+1, early, v.Server.StartedIn.Round(time.Millisecond))
		return after(ctx)
	}
	group.Go(func() error {
		defer close(finish)
		for i := range v.config.Rounds {
			if err := round(i); err != nil {
				return fmt.Errorf("round %d: %w", i+1, err)
			}
		}
		return v.Load(ctx)
	})
	return group.Wait()
}

// Load lets the load run for a random time.
func (v *Victim) Load(ctx context.Context) error {
	return v.Wait(ctx, v.config.MinLoad, v.config.MaxLoad)
}
