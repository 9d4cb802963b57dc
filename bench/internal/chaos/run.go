package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/flowcrash"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/victim"
)

// Load of a run.
const (
	eventWorkers = 4
	eventThink   = 25 * time.Millisecond
	flowWorkers  = 2
	flowThink    = 25 * time.Millisecond
	// attempt bounds one attempt at a request: a node may be frozen.
	attempt = 4 * time.Second
	// again is the time between two attempts.
	again = 30 * time.Millisecond
)

// windows are short, so that a round ends soon.
var windows = flowcrash.Windows{Cart: 1200, Browse: 1600, Busy: 700}

// Run does a whole run. The error says in which round of which seed something was
// lost, doubled or changed; data and logs of all processes are left in the
// directory.
func Run(ctx context.Context, config Config) (report Report, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return Report{}, err
	}
	flows, err := flowcrash.NewLoad(flowcrash.LoadOptions{
		Seed: config.Seed, Workers: flowWorkers, Think: flowThink, Windows: windows, SettleTimeout: config.HealTimeout,
	})
	if err != nil {
		return Report{}, err
	}
	config.Topology.Args = append(flows.Args(), config.Topology.Args...)
	began := time.Now()
	r := &run{config: config, flows: flows, sent: sent{}, rng: rand.New(rand.NewPCG(config.Seed, 0))}
	r.report.Faults = map[string]int{}
	err = r.do(ctx)
	if r.client != nil {
		r.client.Close()
	}
	if r.site != nil {
		err = errors.Join(err, r.site.close())
	}
	err = errors.Join(err, flows.Close())
	r.report.Elapsed = time.Since(began)
	if err != nil {
		return r.report, fmt.Errorf("seed %d, %d brokers: %w", config.Seed, config.Topology.Brokers, err)
	}
	return r.report, nil
}

type run struct {
	config      Config
	rng         *rand.Rand
	site        *site
	credentials server.Credentials
	client      *surface.Client
	events      *crash.Load
	flows       *flowcrash.Load
	probes      *probes
	sent        sent
	disturbed   []flowcrash.Disturbance
	round       atomic.Int64
	ended       atomic.Int64 // nodes, by themselves
	report      Report
}

func (r *run) do(ctx context.Context) (err error) {
	if r.site, err = open(ctx, r.config); err != nil {
		return err
	}
	// The first makes the company.
	for _, n := range r.site.nodes {
		if err := n.start(ctx, nil); err != nil {
			return err
		}
	}
	if r.credentials, err = r.site.nodes[0].readCredentials(); err != nil {
		return err
	}
	if err := r.setUp(ctx); err != nil {
		return fmt.Errorf("before the first round: %w", err)
	}
	if err := r.rounds(ctx); err != nil {
		return err
	}
	for _, n := range r.site.nodes {
		if err := n.stop(r.config.StartTimeout); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
	}
	return nil
}

func (r *run) rounds(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	attended := make(chan error, 1)
	go func() {
		err := r.attend(ctx)
		cancel(err)
		attended <- err
	}()
	err := func() error {
		d := &deck{rng: r.rng, topology: r.config.Topology}
		for round := range r.config.Rounds {
			r.round.Store(int64(round))
			if err := r.oneRound(ctx, d.round()); err != nil {
				return fmt.Errorf("round %d: %w", round+1, err)
			}
			r.report.Rounds++
		}
		return nil
	}()
	cancel(nil)
	r.report.Ended = int(r.ended.Load())
	return errors.Join(<-attended, err)
}

func (r *run) setUp(ctx context.Context) (err error) {
	origins := anyOf(r.site.origins(), r.config.Seed)
	target := surface.Site{Credentials: r.credentials, Origin: origins, Timeout: attempt, Pause: again}
	if r.client, err = surface.NewClient(target); err != nil {
		return err
	}
	if err := r.client.Open(ctx); err != nil {
		return err
	}
	if err := r.flows.SetUp(ctx, r.client); err != nil {
		return err
	}
	r.probes = newProbes(r.client, r.config.Seed)
	if err := r.probes.setUp(ctx); err != nil {
		return err
	}
	r.events = crash.NewLoad(crash.LoadOptions{Site: target, Workers: eventWorkers, Seed: r.config.Seed, Think: eventThink})
	return nil
}

// anyOf draws one of the origins each time.
func anyOf(origins []string, seed uint64) func() string {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 1))
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return origins[rng.IntN(len(origins))]
	}
}

// oneRound is load, faults and, once all is quiet, the checks.
func (r *run) oneRound(ctx context.Context, faults []fault) error {
	began := time.Now()
	var said []string
	for _, f := range faults {
		r.report.Faults[f.kind]++
		said = append(said, f.String())
	}
	r.config.Log("round %d: %s", r.round.Load()+1, strings.Join(said, "; "))
	// Built while there are faults.
	if err := r.events.Define(ctx, r.credentials); err != nil {
		return err
	}
	disturbed, healed, err := r.disturb(ctx, faults)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, r.config.HealTimeout)
	defer cancel()
	if err := r.flows.Settle(within, r.site.origins()...); err != nil {
		return err
	}
	quiet := time.Now()
	within, cancel = context.WithTimeout(ctx, 2*r.config.HealTimeout)
	defer cancel()
	if err := r.check(within, disturbed); err != nil {
		return err
	}
	r.report.Flows = r.flows.Work()
	r.report.Probes = r.probes.work
	r.config.Log("round %d: all is answered %v after the faults, quiet after %v, checked in %v; %v in all",
		r.round.Load()+1, healed.Round(time.Millisecond), quiet.Sub(began).Round(time.Millisecond), time.Since(quiet).Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	return nil
}

var errUnanswered = errors.New("not everything has its answer in time behind the faults")

// disturb lets the loads run through the faults until everything has its answer.
func (r *run) disturb(ctx context.Context, faults []fault) (d flowcrash.Disturbance, healed time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	group, within := errgroup.WithContext(ctx)
	finish := make(chan struct{})
	for _, load := range []func(context.Context, <-chan struct{}) error{r.events.Run, r.flows.Run, r.probes.run} {
		group.Go(func() error { return load(within, finish) })
	}
	var ended time.Time
	group.Go(func() error {
		defer close(finish)
		if err := r.pause(within, r.config.MinLoad, r.config.MaxLoad); err != nil {
			return err
		}
		own := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
		group.Go(func() error { return r.meddle(within, own) })
		d.From = time.Now()
		if err := r.site.inflict(within, r.rng, faults); err != nil {
			return err
		}
		ended = time.Now()
		timer := time.AfterFunc(r.config.HealTimeout, func() { cancel(errUnanswered) })
		context.AfterFunc(within, func() { timer.Stop() })
		return r.pause(within, 200*time.Millisecond, 500*time.Millisecond)
	})
	err = group.Wait()
	if err == nil {
		err = r.probes.settle(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return d, 0, err
	}
	d.To = time.Now()
	healed = d.To.Sub(ended)
	r.report.HealMax = max(r.report.HealMax, healed)
	return d, healed, nil
}

// meddle pauses and resumes flows as the faults happen, and checks that what is
// paused stands still.
func (r *run) meddle(ctx context.Context, rng *rand.Rand) error {
	victim.Wait(ctx, time.Duration(rng.Int64N(int64(time.Second))))
	if r.round.Load() == 0 {
		if err := r.flows.PublishLast(ctx); err != nil {
			return err
		}
	}
	if err := r.flows.Toggle(ctx, rng); err != nil {
		return err
	}
	victim.Wait(ctx, time.Duration(rng.Int64N(int64(2*time.Second))))
	return r.flows.CheckPauses(ctx)
}

// pause lets the load run for a random time.
func (r *run) pause(ctx context.Context, least, most time.Duration) error {
	victim.Wait(ctx, least+time.Duration(r.rng.Int64N(int64(most-least)+1)))
	return ctx.Err()
}

// attend starts nodes again that have ended by right, until ctx ends.
func (r *run) attend(ctx context.Context) error {
	for {
		for _, n := range r.site.nodes {
			ended, err := n.revive(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case ended:
				r.config.Log("round %d: %v ended, as another has taken over, and was started again", r.round.Load()+1, n)
				r.ended.Add(1)
			}
		}
		victim.Wait(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return nil
		}
	}
}
