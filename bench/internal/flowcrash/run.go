package flowcrash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Run does a whole run. The error says what went wrong; the server's files are
// left in the installation's directory.
func Run(ctx context.Context, config Config) (report Report, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return Report{}, err
	}
	load, err := NewLoad(LoadOptions{Seed: config.Seed, Workers: config.Workers, MailFaults: config.MailFaults, SettleTimeout: config.SettleTimeout})
	if err != nil {
		return Report{}, err
	}
	r := &run{config: config, Load: load}
	installation := *config.Installation
	installation.Args = append(slices.Clip(installation.Args), load.Args()...)
	r.victim = topology.Victim{
		Installation: &installation, Variants: config.Variants, StartTimeout: config.StartTimeout,
		Rng: rand.New(rand.NewPCG(config.Seed, 0)), Gate: gate.New(),
	}
	began := time.Now()
	err = errors.Join(r.do(ctx), r.victim.Close())
	if r.client != nil {
		r.client.Close()
		r.report.Work = r.Work()
	}
	err = errors.Join(err, r.Load.Close())
	r.report.KillsWhileStart = r.victim.WhileStarting
	r.report.StartMedian, r.report.StartMax = r.victim.StartTimes()
	r.report.Elapsed = time.Since(began)
	if err != nil {
		return r.report, fmt.Errorf("seed %d: %w", config.Seed, err)
	}
	return r.report, nil
}

type run struct {
	config Config
	victim topology.Victim
	*Load
	report Report
}

func (r *run) do(ctx context.Context) error {
	if err := r.victim.Start(ctx); err != nil {
		return fmt.Errorf("first start: %w", err)
	}
	r.victim.Gate.Lift()
	c, err := surface.NewClient(surface.Site{Credentials: r.victim.Server.Credentials, Gate: r.victim.Gate})
	if err != nil {
		return err
	}
	if err := c.Open(ctx); err != nil {
		c.Close()
		return err
	}
	if err := r.SetUp(ctx, c); err != nil {
		return err
	}
	if err := r.kills(ctx); err != nil {
		return err
	}
	if err := r.Settle(ctx); err != nil {
		return err
	}
	var disturbed []Disturbance
	for _, at := range r.victim.Kills {
		disturbed = append(disturbed, Disturbance{at, at})
	}
	return r.Check(ctx, disturbed, func() error { return r.victim.Stop(r.config.StopTimeout) })
}

// kills lets the workers work through all kills and until nothing is open.
func (r *run) kills(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	finish := make(chan struct{})
	group.Go(func() error { return r.Load.Run(ctx, finish) })
	group.Go(func() error {
		defer close(finish)
		for i := range r.config.Rounds {
			if err := r.round(ctx, group, i); err != nil {
				return fmt.Errorf("round %d: %w", i+1, err)
			}
		}
		return r.wait(ctx)
	})
	return group.Wait()
}

// round kills the server under load and starts it again.
func (r *run) round(ctx context.Context, group *errgroup.Group, i int) error {
	late := []func(){}
	for _, p := range r.pauses {
		toggle := func() error { return p.toggle(ctx) }
		switch r.victim.Rng.IntN(3) {
		case 0:
			if err := toggle(); err != nil {
				return err
			}
		case 1: // the kill may come in between
			late = append(late, func() { group.Go(toggle) })
		}
	}
	if i == r.config.Rounds/3 {
		late = append(late, func() { group.Go(func() error { return r.PublishLast(ctx) }) })
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	for _, f := range late {
		f()
	}
	if err := r.victim.Wait(ctx, 0, lateHeadStart); err != nil {
		return err
	}
	for _, p := range r.pauses {
		if p.isPausedNow() {
			r.report.PausedKills++
		}
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
	return r.CheckPauses(ctx)
}

// lateHeadStart is how long before a kill something may begin that the kill is to
// come in between.
const lateHeadStart = 10 * time.Millisecond

// wait lets the load run for a random time.
func (r *run) wait(ctx context.Context) error {
	return r.victim.Wait(ctx, r.config.MinLoad, r.config.MaxLoad)
}
