package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Run does a whole run. The error says what was lost, doubled or changed; the
// server's files are left in the installation's directory.
func Run(ctx context.Context, config Config) (Report, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return Report{}, err
	}
	began := time.Now()
	r := &run{config: config, victim: topology.Victim{
		Installation: config.Installation, Variants: config.Variants, StartTimeout: config.StartTimeout,
		Rng: rand.New(rand.NewPCG(config.Seed, 0)), Gate: gate.New(),
	}}
	err := r.do(ctx)
	err = errors.Join(err, r.victim.Close())
	r.report.Elapsed = time.Since(began)
	if err != nil {
		return r.report, fmt.Errorf("seed %d: %w", config.Seed, err)
	}
	return r.report, nil
}

type run struct {
	config Config
	victim topology.Victim
	load   *Load
	report Report
}

func (r *run) do(ctx context.Context) error {
	if err := r.victim.Start(ctx); err != nil {
		return fmt.Errorf("first start: %w", err)
	}
	r.load = NewLoad(LoadOptions{
		Site:    surface.Site{Credentials: r.victim.Server.Credentials, Gate: r.victim.Gate, Tries: maxTries},
		Workers: r.config.Workers, Seed: r.config.Seed,
	})
	if err := r.define(ctx); err != nil {
		return err
	}
	if err := r.kills(ctx); err != nil {
		return err
	}
	r.report.KillsWhileStart = r.victim.WhileStarting
	r.report.StartMedian, r.report.StartMax = r.victim.StartTimes()
	return r.check(ctx)
}

// maxTries bounds the attempts at one request over all restarts.
const maxTries = 5000

func (r *run) define(ctx context.Context) error {
	return r.load.Define(ctx, r.victim.Server.Credentials)
}

// check compares the server's profiles, segments and history with the ledgers.
// It stops the server, whose history nobody else reads before.
func (r *run) check(ctx context.Context) error {
	work, err := r.load.Check(ctx, Sources{
		Nodes: []server.Credentials{r.victim.Server.Credentials}, Alone: true,
		Keys: func(visit func(history.Key) error) error {
			if err := r.victim.Stop(r.config.StopTimeout); err != nil {
				return err
			}
			file, err := history.Open(ctx, r.config.Installation.HistoryFile())
			if err != nil {
				return err
			}
			return errors.Join(file.Keys(ctx, visit), file.Close())
		},
	})
	r.report.Work = work
	return err
}

// kills lets the workers work through all kills and until nothing is open.
func (r *run) kills(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	finish := make(chan struct{})
	group.Go(func() error { return r.load.Run(ctx, finish) })
	group.Go(func() error {
		defer close(finish)
		r.victim.Gate.Lift()
		for i := range r.config.Rounds {
			if err := r.round(ctx, i); err != nil {
				return fmt.Errorf("round %d: %w", i+1, err)
			}
		}
		return r.pause(ctx)
	})
	return group.Wait()
}

// round kills the server under load and starts it again.
func (r *run) round(ctx context.Context, i int) error {
	if err := r.pause(ctx); err != nil {
		return err
	}
	if err := r.victim.Kill(); err != nil {
		return err
	}
	r.report.Kills++
	early, err := r.victim.Restart(ctx)
	if err != nil {
		return err
	}
	r.config.Log("round %d: killed (%d more while starting), served again after %v", i+1, early, r.victim.Server.StartedIn.Round(time.Millisecond))
	return r.define(ctx)
}

// pause lets the load run for a random time.
func (r *run) pause(ctx context.Context) error {
	return r.victim.Wait(ctx, r.config.MinLoad, r.config.MaxLoad)
}
