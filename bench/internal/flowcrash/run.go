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

// Run does a whole run. Without a report, the error says what went wrong; the
// server's files are left in the directory.
func Run(ctx context.Context, config Config) (_ *Report, err error) {
	if err := config.Complete(); err != nil {
		return nil, err
	}
	load, err := NewLoad(LoadOptions{Seed: config.Seed, Workers: config.Workers, MailFaults: config.MailFaults, IdleTimeout: config.IdleTimeout})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, load.Close()) }()
	config.ServerArgs = append(slices.Clip(config.ServerArgs), load.Args()...)
	victim, err := topology.NewVictim(config.Kills)
	if err != nil {
		return nil, err
	}
	r := &run{config: config, victim: victim, Load: load}
	killed, err := victim.Close(r.do(ctx))
	if r.client != nil {
		r.client.Close()
	}
	if err != nil {
		return nil, err
	}
	return &Report{killed, r.pausedKills, r.Work()}, nil
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
