package flowcrash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/internal/pause"
)

// LoadOptions say how a load acts. The zero value of a field but Workers means
// its default.
type LoadOptions struct {
	// Seed makes what is done repeatable, as far as the machine is.
	Seed uint64
	// Workers act at the same time.
	Workers int
	// Think bounds the random pause between two acts of a worker. Default 12 ms.
	Think time.Duration
	// Windows of the segments that flows look at. Defaults 3 s, 4 s and 1.5 s.
	Windows Windows
	// MailFaults has the SMTP server fail some messages at the first attempt. They
	// are tried again after 7.5 s and more, which makes that wait longer.
	MailFaults bool
	// IdleTimeout bounds [Load.AwaitIdle]. Default 2 min.
	IdleTimeout time.Duration
}

// Load is people who act and run through flows, the receivers of what the flows
// send, and the oracle of what must have come of it. Its methods but Close are
// called one at a time.
type Load struct {
	options LoadOptions
	hooks   *hooks
	relay   *relay
	client  *surface.Client
	world   *world
	pauses  []*pauses
	workers []*worker
	work    Work
	// past is what was checked, by name of flow; credits is what was left then, and
	// rounds how often.
	past    map[string]*passed
	credits int
	rounds  int
}

// NewLoad opens the receivers of webhooks and e-mails.
func NewLoad(o LoadOptions) (*Load, error) {
	o.Windows, o.IdleTimeout, o.Think = cmp.Or(o.Windows, usualWindows), cmp.Or(o.IdleTimeout, 2*time.Minute), cmp.Or(o.Think, think)
	l := &Load{options: o, past: map[string]*passed{}}
	var err error
	if l.hooks, err = newHooks(o.Seed); err != nil {
		return nil, err
	}
	if l.relay, err = newRelay(o.Seed, o.MailFaults); err != nil {
		return nil, errors.Join(err, l.hooks.close())
	}
	l.work.ByFlow = map[string]int{}
	return l, nil
}

// Args are the arguments of muster serve by which it finds the receivers.
func (l *Load) Args() []string {
	return []string{"--smtp", l.relay.Addr, "--smtp-tls", "none", "--allow-private-webhooks"}
}

// Close ends the receivers. The server has ended before.
func (l *Load) Close() error { return errors.Join(l.relay.Close(), l.hooks.close()) }

// SetUp makes segments, a list and the flows through a client that is signed in.
func (l *Load) SetUp(ctx context.Context, c *surface.Client) (err error) {
	l.client = c
	if l.credits, err = l.readCredits(ctx); err != nil {
		return err
	}
	if l.world, err = setUp(ctx, c, l.hooks, l.options.Windows); err != nil {
		return err
	}
	for _, f := range l.world.flows {
		l.past[f.name] = f.nothingPassed()
	}
	for _, name := range pausable {
		l.pauses = append(l.pauses, &pauses{flow: l.world.flow(name), client: c})
	}
	l.others()
	return nil
}

// others has other people act from now on.
func (l *Load) others() {
	l.workers = nil
	for i := range l.options.Workers {
		n := l.rounds*l.options.Workers + i
		l.workers = append(l.workers, &worker{
			rng: rand.New(rand.NewPCG(l.options.Seed, uint64(n)+1)), client: l.client, world: l.world,
			book: book{worker: n}, think: l.options.Think,
		})
	}
	l.rounds++
}

// Run lets the workers act until finish is closed, and until nothing is open.
func (l *Load) Run(ctx context.Context, finish <-chan struct{}) error {
	return gate.All(ctx, finish, l.workers, (*worker).run)
}

// PublishLast publishes the flow that is to be published in the middle of a run.
// It may be called while Run continues.
func (l *Load) PublishLast(ctx context.Context) error {
	return publish(ctx, l.client, l.world.flow(flowGold))
}

// Toggle pauses or resumes some flows. It may be called while Run continues.
func (l *Load) Toggle(ctx context.Context, rng *rand.Rand) error {
	for _, p := range l.pauses {
		if rng.IntN(2) == 0 {
			if err := p.toggle(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckPauses checks that nothing moves in flows that are paused. It may be called
// while Run continues.
func (l *Load) CheckPauses(ctx context.Context) error {
	for _, p := range l.pauses {
		if err := p.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Work is what was done until the last check.
func (l *Load) Work() Work {
	w := l.work
	w.Requests, w.Retried = l.client.Counts()
	for _, p := range l.pauses {
		w.Pauses += len(p.mu.times)
	}
	return w
}

// Keys visits the events of the people of the present workers, by idempotency key.
// No worker may act meanwhile.
func (l *Load) Keys(visit func(key string, e *ledger.Event)) {
	for _, w := range l.workers {
		for n, e := range w.book.events {
			visit(w.book.eventKey(n), &e.Event)
		}
	}
}

func (l *Load) readCredits(ctx context.Context) (int, error) {
	var c struct {
		EmailCredits int `json:"email_credits"`
	}
	err := l.client.Console(ctx, "GET", "/credits", nil, &c)
	return c.EmailCredits, err
}

// AwaitIdle resumes what is paused and waits until nothing runs any more: windows
// have run out, enrolments have ended, the outboxes of the nodes, given by their
// origins, are empty. No origin is that of the load's own client.
func (l *Load) AwaitIdle(ctx context.Context, nodes ...string) error {
	for _, p := range l.pauses {
		if p.isPaused() {
			if err := p.toggle(ctx); err != nil {
				return err
			}
		}
	}
	deadline := time.Now().Add(l.options.IdleTimeout)
	// Events of the last moment may still be to come through windows.
	pause.For(ctx, time.Duration(max(l.options.Windows.Cart, l.options.Windows.Browse)+200)*time.Millisecond)
	asked := []*surface.Client{l.client}
	if len(nodes) > 0 {
		asked = nil
		for _, origin := range nodes {
			asked = append(asked, l.client.At(origin))
		}
	}
	return pause.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		open, err := l.open(ctx, asked)
		if err == nil && open != "" && time.Now().After(deadline) {
			err = fmt.Errorf("after %v nothing should run any more: %s", l.options.IdleTimeout, open)
		}
		return open == "", err
	})
}

// open says what still runs.
func (l *Load) open(ctx context.Context, nodes []*surface.Client) (string, error) {
	for _, f := range l.world.flows {
		s, err := l.client.Flow(ctx, f.id)
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
	for _, c := range nodes {
		n, err := outboxItems(ctx, c)
		switch {
		case err != nil:
			return "", err
		case n > 0:
			return fmt.Sprintf("%v items in the outbox", n), nil
		}
	}
	return "", nil
}

func outboxItems(ctx context.Context, c *surface.Client) (float64, error) {
	text, err := c.Once(ctx, surface.BySession, "GET", "/metrics", nil)
	if err != nil {
		return 0, err
	}
	items, err := server.Metric(text, "muster_outbox_items")
	if err != nil {
		return 0, err
	}
	if n, ok := items[""]; ok {
		return n, nil
	}
	return 0, errors.New("the metrics do not say how many items are in the outbox")
}
