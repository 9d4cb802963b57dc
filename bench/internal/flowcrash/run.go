package flowcrash

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Run does a whole run. The error says what went wrong; the server's files are
// left in the installation's directory.
func Run(ctx context.Context, config Config) (report Report, err error) {
	config.Kills = config.WithDefaults(usual)
	if err := config.Validate(MaxRounds, minWorkers, maxWorkers); err != nil {
		return Report{}, err
	}
	load, err := NewLoad(LoadOptions{Seed: config.Seed, Workers: config.Workers, MailFaults: config.MailFaults, IdleTimeout: config.IdleTimeout})
	if err != nil {
		return Report{}, err
	}
	installation := *config.Installation
	installation.Args = append(slices.Clip(installation.Args), load.Args()...)
	config.Installation = &installation
	r := &run{config: config, victim: topology.NewVictim(config.Kills), Load: load}
	report.Killed, err = r.victim.Close(r.do(ctx))
	if r.client != nil {
		r.client.Close()
		report.Work = r.Work()
	}
	report.PausedKills = r.pausedKills
	return report, errors.Join(err, r.Load.Close())
}

type run struct {
	config Config
	victim *topology.Victim
	*Load
	pausedKills int
}

func (r *run) do(ctx context.Context) error {
	if err := r.victim.Start(ctx); err != nil {
		return err
	}
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
	if err := r.victim.Run(ctx, r.Load.Run, r.beforeKill, r.CheckPauses); err != nil {
		return err
	}
	if err := r.AwaitIdle(ctx); err != nil {
		return err
	}
	var disturbed []Disturbance
	for _, at := range r.victim.Kills {
		disturbed = append(disturbed, Disturbance{at, at})
	}
	return r.Check(ctx, disturbed, r.victim.Stop)
}

// beforeKill pauses and resumes flows and lets the load run until the server is to be
// killed.
func (r *run) beforeKill(ctx context.Context, group *errgroup.Group, i int) error {
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
	if err := r.victim.Load(ctx); err != nil {
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
			r.pausedKills++
		}
	}
	return nil
}

// lateHeadStart is how long before a kill something may begin that the kill is to
// come in between.
const lateHeadStart = 10 * time.Millisecond
