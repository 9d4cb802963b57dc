package flowcrash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/victim"
)

// Run does a whole run. The error says what went wrong; the server's files are
// left in the installation's directory.
func Run(ctx context.Context, config Config) (report Report, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return Report{}, err
	}
	r := &run{config: config}
	if r.hooks, err = newHooks(config.Seed); err != nil {
		return Report{}, err
	}
	if r.relay, err = newRelay(config.Seed, config.MailFaults); err != nil {
		return Report{}, errors.Join(err, r.hooks.close())
	}
	installation := *config.Installation
	installation.Args = append(slices.Clip(installation.Args), "--smtp", r.relay.addr, "--smtp-tls", "none", "--allow-private-webhooks")
	r.victim = victim.Victim{
		Installation: &installation, Variants: config.Variants, StartTimeout: config.StartTimeout,
		Rng: rand.New(rand.NewPCG(config.Seed, 0)), Gate: gate.New(),
	}
	began := time.Now()
	err = errors.Join(r.do(ctx), r.victim.Close())
	if r.client != nil {
		r.client.close()
	}
	err = errors.Join(err, r.relay.close(), r.hooks.close())
	r.report.Elapsed = time.Since(began)
	if err != nil {
		return r.report, fmt.Errorf("seed %d: %w", config.Seed, err)
	}
	return r.report, nil
}

type run struct {
	config  Config
	victim  victim.Victim
	hooks   *hooks
	relay   *relay
	client  *client
	world   *world
	pauses  []*pauses
	workers []*worker
	report  Report
}

func (r *run) do(ctx context.Context) error {
	if err := r.victim.Start(ctx); err != nil {
		return fmt.Errorf("first start: %w", err)
	}
	r.victim.Gate.Lift()
	var err error
	if r.client, err = newClient(r.victim.Server.Credentials, r.victim.Gate); err != nil {
		return err
	}
	if err := r.client.open(ctx); err != nil {
		return err
	}
	credits, err := r.credits(ctx)
	if err != nil {
		return err
	}
	if r.world, err = setUp(ctx, r.client, r.hooks); err != nil {
		return err
	}
	for _, name := range pausable {
		r.pauses = append(r.pauses, &pauses{flow: r.world.flow(name), client: r.client})
	}
	for i := range r.config.Workers {
		r.workers = append(r.workers, &worker{
			rng: rand.New(rand.NewPCG(r.config.Seed, uint64(i)+1)), client: r.client, world: r.world, ledger: ledger{worker: i},
		})
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.check(ctx, credits)
}

func (r *run) credits(ctx context.Context) (int, error) {
	var c struct {
		EmailCredits int `json:"email_credits"`
	}
	err := r.client.console(ctx, "GET", "/credits", nil, &c)
	return c.EmailCredits, err
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
		late = append(late, func() { group.Go(func() error { return publish(ctx, r.client, r.world.flow(flowGold)) }) })
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
	for _, p := range r.pauses {
		if err := p.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lateHeadStart is how long before a kill something may begin that the kill is to
// come in between.
const lateHeadStart = 10 * time.Millisecond

// wait lets the load run for a random time.
func (r *run) wait(ctx context.Context) error {
	return r.victim.Wait(ctx, r.config.MinLoad, r.config.MaxLoad)
}

// settle resumes what is paused and waits until nothing goes on any more: windows
// have run out, ways have ended, the outbox is empty.
func (r *run) settle(ctx context.Context) error {
	for _, p := range r.pauses {
		if p.isPaused() {
			if err := p.toggle(ctx); err != nil {
				return err
			}
		}
		r.report.Pauses += len(p.mu.times)
	}
	deadline := time.Now().Add(r.config.SettleTimeout)
	// Events of the last moment may still be to come through windows.
	victim.Wait(ctx, (max(cartWindow, browseWindow)+200)*time.Millisecond)
	for {
		open, err := r.open(ctx)
		switch {
		case err != nil:
			return err
		case open == "":
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("after %v nothing should go on any more: %s", r.config.SettleTimeout, open)
		}
		victim.Wait(ctx, 100*time.Millisecond)
	}
}

// open says what still goes on.
func (r *run) open(ctx context.Context) (string, error) {
	for _, f := range r.world.flows {
		s, err := f.state(ctx, r.client)
		if err != nil {
			return "", err
		}
		if s.Status != "live" {
			return "", fmt.Errorf("flow %s is %s", f.name, s.Status)
		}
		if n := s.Counts.InProgress + s.Counts.Pending; n > 0 {
			return fmt.Sprintf("flow %s has %d in progress and pending", f.name, n), nil
		}
	}
	text, err := r.client.once(ctx, bySession, "GET", "/metrics", nil)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "muster_outbox_items "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			switch {
			case err != nil:
				return "", err
			case n > 0:
				return fmt.Sprintf("%v items in the outbox", n), nil
			}
			return "", nil
		}
	}
	return "", errors.New("the metrics do not say how many items are in the outbox")
}
