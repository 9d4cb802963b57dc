package crash

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Run does a whole run. Without a report, the error says what was lost, doubled or
// changed; the server's files are left in the directory.
func Run(ctx context.Context, config topology.Kills) (*Report, error) {
	if err := Complete(&config); err != nil {
		return nil, err
	}
	victim, err := topology.NewVictim(config)
	if err != nil {
		return nil, err
	}
	r := &run{config: config, victim: victim}
	killed, err := victim.Close(r.do(ctx))
	if err != nil {
		return nil, err
	}
	return &Report{killed, r.work}, nil
}

type run struct {
	config topology.Kills
	victim *topology.Victim
	load   *Load
	work   Work
}

func (r *run) do(ctx context.Context) error {
	if err := r.victim.Start(ctx); err != nil {
		return err
	}
	r.load = NewLoad(LoadOptions{
		Site:    surface.Site{Credentials: r.victim.Server.Credentials, Gate: r.victim.Gate, Tries: maxTries},
		Workers: r.config.Workers, Seed: r.config.Seed,
	})
	if err := r.define(ctx); err != nil {
		return err
	}
	before := func(ctx context.Context, _ *errgroup.Group, _ int) error { return r.victim.Load(ctx) }
	if err := r.victim.Run(ctx, r.load.Run, before, r.define); err != nil {
		return err
	}
	return r.check(ctx)
}

// maxTries bounds the attempts at one request over all restarts.
const maxTries = 5000

func (r *run) define(ctx context.Context) error {
	return r.load.Define(ctx, r.victim.Server.Credentials)
}

// check compares the server's profiles, segments and history with the books.
// It stops the server: no other process may have its history open.
func (r *run) check(ctx context.Context) error {
	var err error
	r.work, err = r.load.Check(ctx, Sources{
		Nodes: []server.Credentials{r.victim.Server.Credentials}, Alone: true,
		Keys: func(visit func(history.Key) error) error {
			if err := r.victim.Stop(); err != nil {
				return err
			}
			file, err := history.Open(ctx, r.victim.HistoryFile())
			if err != nil {
				return err
			}
			return errors.Join(file.Keys(ctx, visit), file.Close())
		},
	})
	return err
}
