package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/server"
)

// Run does a whole run. The error says what was lost, doubled or changed; the
// server's files are left in the installation's directory.
func Run(ctx context.Context, config Config) (Report, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return Report{}, err
	}
	began := time.Now()
	r := &run{config: config, rng: rand.New(rand.NewPCG(config.Seed, 0)), people: newPeople(), gate: gate.New()}
	err := r.do(ctx)
	if r.server != nil {
		err = errors.Join(err, r.server.Kill())
	}
	r.report.Elapsed = time.Since(began)
	if err != nil {
		return r.report, fmt.Errorf("seed %d: %w", config.Seed, err)
	}
	return r.report, nil
}

type run struct {
	config  Config
	rng     *rand.Rand
	people  *people
	gate    *gate.Gate
	workers []*worker
	server  *server.Server // nil while none runs
	starts  []time.Duration
	live    []*liveSegment
	report  Report
}

func (r *run) do(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("first start: %w", err)
	}
	for i := range r.config.Workers {
		r.workers = append(r.workers, newWorker(i, r.config.Seed, r.server.Credentials, r.people, r.gate))
	}
	r.live = liveSegments()
	if err := r.define(ctx); err != nil {
		return err
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	for _, w := range r.workers {
		r.report.Requests += w.counts.requests
		r.report.Retried += w.counts.retried
		r.report.Repeated += w.counts.repeated
		r.report.Twins += w.counts.twins
		r.report.GivenUp += w.counts.givenUp
	}
	if len(r.starts) > 0 {
		slices.Sort(r.starts)
		r.report.StartMedian, r.report.StartMax = r.starts[len(r.starts)/2], r.starts[len(r.starts)-1]
	}
	return r.check(ctx)
}

// load lets the workers work through all kills and until nothing is open.
func (r *run) load(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	finish := make(chan struct{})
	for _, w := range r.workers {
		group.Go(func() error { return w.run(ctx, finish) })
	}
	group.Go(func() error {
		defer close(finish)
		r.gate.Lift()
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
	select {
	case <-r.server.Done():
		return fmt.Errorf("the server ended by itself; its last output:\n%s", r.server.Tail())
	default:
	}
	if err := r.server.Kill(); err != nil {
		return err
	}
	r.server = nil
	r.gate.Drop()
	r.report.Kills++
	// One start in four is killed as well, at a random moment.
	early := 0
	for r.rng.IntN(4) == 0 && early < 3 {
		if err := r.killWhileStarting(ctx); err != nil {
			return err
		}
		early++
	}
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("start after kill: %w", err)
	}
	r.starts = append(r.starts, r.server.StartedIn)
	r.config.Log("round %d: killed (%d more while starting), served again after %v", i+1, early, r.server.StartedIn.Round(time.Millisecond))
	r.gate.Lift()
	return r.define(ctx)
}

func (r *run) start(ctx context.Context) (err error) {
	r.server, err = r.installation().Start(ctx, r.config.StartTimeout)
	return err
}

// installation is the installation with the arguments of the next start.
func (r *run) installation() *server.Installation {
	i := *r.config.Installation
	if n := len(r.config.Variants); n > 0 {
		i.Args = append(slices.Clip(i.Args), r.config.Variants[r.rng.IntN(n)]...)
	}
	return &i
}

func (r *run) killWhileStarting(ctx context.Context) error {
	p, err := r.installation().Launch()
	if err != nil {
		return err
	}
	// Up to a good part beyond the usual start, so that every step is hit.
	usual := 100 * time.Millisecond
	if n := len(r.starts); n > 0 {
		usual = r.starts[n-1]
	}
	wait(ctx, time.Duration(r.rng.Int64N(int64(usual)*5/4)+1))
	r.report.KillsWhileStart++
	return p.Kill()
}

// pause lets the load run for a random time.
func (r *run) pause(ctx context.Context) error {
	wait(ctx, r.config.MinLoad+time.Duration(r.rng.Int64N(int64(r.config.MaxLoad-r.config.MinLoad)+1)))
	return ctx.Err()
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
