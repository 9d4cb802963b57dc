package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/flowcrash"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/internal/pause"
)

// Load of a run.
const (
	eventWorkers = 4
	eventThink   = 40 * time.Millisecond
	flowWorkers  = 2
	flowThink    = 25 * time.Millisecond
	// attempt bounds one attempt at a request: a node may be frozen.
	attempt = 4 * time.Second
	// again is the time between two attempts.
	again = 30 * time.Millisecond
)

// windows are short, so that a round ends soon.
var windows = flowcrash.Windows{Cart: 1200, Browse: 1600, Busy: 700}

// Run does a whole run. Without a report, the error says in which round of which
// seed something was lost, doubled or changed; data and logs of all processes are
// left in the directory.
func Run(ctx context.Context, config Config) (*Report, error) {
	if err := config.Complete(); err != nil {
		return nil, err
	}
	t := config.Topology
	flows, err := flowcrash.NewLoad(flowcrash.LoadOptions{
		Seed: config.Seed, Workers: flowWorkers, Think: flowThink, Windows: windows, IdleTimeout: config.HealTimeout,
	})
	if err != nil {
		return nil, err
	}
	config.Dir, config.ServerArgs = filepath.Join(config.Dir, "chaos"), append(flows.Args(), config.ServerArgs...)
	began := time.Now()
	r := &run{config: config, flows: flows, sent: sent{}, stored: stored{next: make([]int64, t.Partitions)}, rng: rand.New(rand.NewPCG(config.Seed, 0))}
	r.report = Report{Seed: config.Seed, Nodes: t.Nodes, Brokers: t.Brokers, Faults: map[string]int{}}
	err = r.do(ctx)
	for _, c := range r.clients {
		c.Close()
	}
	if r.site != nil {
		err = errors.Join(err, r.site.close())
	}
	err = errors.Join(err, flows.Close())
	r.report.Elapsed = time.Since(began)
	if err != nil {
		return nil, fmt.Errorf("seed %d, %d brokers: %w", config.Seed, t.Brokers, err)
	}
	return &r.report, nil
}

type run struct {
	config    Config
	rng       *rand.Rand
	site      *site
	companies []server.Credentials
	clients   []*surface.Client // of the companies
	events    *crash.Load       // of the first company
	flows     *flowcrash.Load   // of the last
	probes    []*probes         // of each
	sent      sent
	stored    stored
	disturbed []flowcrash.Disturbance
	round     atomic.Int64
	ended     atomic.Int64 // nodes, by themselves
	report    Report
}

func (r *run) do(ctx context.Context) (err error) {
	if r.site, err = open(ctx, r.config); err != nil {
		return err
	}
	if err := r.site.Start(ctx); err != nil {
		return err
	}
	first, err := r.site.Credentials()
	if err != nil {
		return err
	}
	if err := r.setUp(ctx, first); err != nil {
		return fmt.Errorf("before the first round: %w", err)
	}
	if err := r.rounds(ctx); err != nil {
		return err
	}
	for _, n := range r.site.Nodes {
		if err := n.Stop(); err != nil {
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
		d := &deck{rng: r.rng, topology: r.config.Topology, only: r.config.Faults}
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

// companies is how many there are.
const companies = 2

func (r *run) setUp(ctx context.Context, first server.Credentials) (err error) {
	target := surface.Site{Credentials: first, Origin: anyOf(r.site.Origins(), r.config.Seed), Timeout: attempt, Pause: again}
	for i := range companies {
		if i > 0 {
			if target.Credentials, err = r.found(ctx, i); err != nil {
				return err
			}
		}
		c, err := surface.NewClient(target)
		if err != nil {
			return err
		}
		r.companies, r.clients = append(r.companies, target.Credentials), append(r.clients, c)
		if err := c.Open(ctx); err != nil {
			return err
		}
		p := newProbes(c, i, r.config.Seed)
		r.probes = append(r.probes, p)
		if err := p.setUp(ctx); err != nil {
			return err
		}
	}
	if err := r.flows.SetUp(ctx, r.clients[companies-1]); err != nil {
		return err
	}
	target.Credentials = first
	r.events = crash.NewLoad(crash.LoadOptions{Site: target, Workers: eventWorkers, Seed: r.config.Seed, Think: eventThink})
	return nil
}

// credits are those a company begins with: more than the flows' e-mails.
const credits = 1_000_000

// found makes a company whose account is of partition i, or of another if it
// has none.
func (r *run) found(ctx context.Context, i int) (c server.Credentials, err error) {
	partitions := uint64(r.config.Topology.Partitions)
	err = r.clients[0].CreateCompany(ctx, fmt.Sprintf("chaos-%d", i), credits, func(made server.Credentials) (bool, error) {
		account, err := made.Account()
		c = made
		return account%partitions == uint64(i)%partitions, err
	})
	return c, err
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

// ownersTimeout bounds how long partitions may go from hand to hand when all is
// well.
const ownersTimeout = 30 * time.Second

// oneRound is load, faults and, once all is quiet, the checks.
func (r *run) oneRound(ctx context.Context, faults []fault) error {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, ownersTimeout)
	owners, err := r.site.Owners(within)
	cancel()
	if err != nil {
		return err
	}
	said := []string{fmt.Sprintf("partitions are owned by %v", owners)}
	for i, f := range faults {
		if f.ofOwner {
			faults[i].target = owners[f.target].Number
		}
	}
	faults = apart(faults)
	for _, f := range faults {
		r.report.Faults[f.kind]++
		said = append(said, f.String())
	}
	r.config.Logf("round %d: %s", r.round.Load()+1, strings.Join(said, "; "))
	// Built while there are faults.
	if err := r.events.Define(ctx, r.companies[0]); err != nil {
		return err
	}
	disturbed, healed, err := r.disturb(ctx, faults)
	if err != nil {
		return err
	}
	within, cancel = context.WithTimeout(ctx, r.config.HealTimeout)
	defer cancel()
	if err := r.flows.AwaitIdle(within, r.site.Origins()...); err != nil {
		return err
	}
	quiet := time.Now()
	within, cancel = context.WithTimeout(ctx, 2*r.config.HealTimeout)
	defer cancel()
	if err := r.check(within, disturbed); err != nil {
		return err
	}
	r.report.Flows = r.flows.Work()
	r.report.Probes = ProbeWork{}
	for _, p := range r.probes {
		r.report.Probes.add(p.work)
	}
	r.config.Logf("round %d: all is answered %v after the faults, quiet after %v, checked in %v; %v in all",
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
	loads := []func(context.Context, <-chan struct{}) error{r.events.Run, r.flows.Run}
	for _, p := range r.probes {
		loads = append(loads, p.run)
	}
	for _, load := range loads {
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
	for _, p := range r.probes {
		if err == nil {
			err = p.repostUnanswered(ctx)
		}
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
	pause.For(ctx, time.Duration(rng.Int64N(int64(time.Second))))
	if r.round.Load() == 0 {
		if err := r.flows.PublishLast(ctx); err != nil {
			return err
		}
	}
	if err := r.flows.Toggle(ctx, rng); err != nil {
		return err
	}
	pause.For(ctx, time.Duration(rng.Int64N(int64(2*time.Second))))
	return r.flows.CheckPauses(ctx)
}

// pause lets the load run for a random time.
func (r *run) pause(ctx context.Context, least, most time.Duration) error {
	pause.For(ctx, least+time.Duration(r.rng.Int64N(int64(most-least)+1)))
	return ctx.Err()
}

// attend starts nodes again that have ended by right, until ctx ends.
func (r *run) attend(ctx context.Context) error {
	for {
		for _, n := range r.site.Nodes {
			ended, err := n.Revive(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case ended:
				r.config.Logf("round %d: %v ended, as another has taken over, and was started again", r.round.Load()+1, n)
				r.ended.Add(1)
			}
		}
		pause.For(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return nil
		}
	}
}
