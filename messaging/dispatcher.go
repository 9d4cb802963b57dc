package messaging

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/view"
)

// Options configure a [Dispatcher].
type Options struct {
	Node   *node.Node
	Mailer Mailer
	// Capture takes the messages of channels that an account has not set up; nil
	// has them fail.
	Capture Capture
	// Push and Text configure the senders to push services and to providers of
	// texts; the accounts' credentials are in the state.
	Push push.Options
	Text text.Options
	// CampaignRun reads the newest run of a campaign of an account that may be
	// another node's by now; nil where there are no other nodes.
	CampaignRun func(ctx context.Context, account uint64, campaign string) (campaigns.Run, error)
	// PublicURL is where recipients reach the service, without a slash at the
	// end: links of messages begin with it.
	PublicURL string
	Now       func() time.Time
	// Sleep waits, less when ctx ends; it returns ctx's error then. Nil waits by
	// the clock.
	Sleep   func(ctx context.Context, d time.Duration) error
	Metrics *metrics.Set
	Logger  *slog.Logger // nil is silent

	// Workers is how many messages of a campaign are under way at once, which
	// is how many a crash may repeat (default 8).
	Workers int
	// Runs is how many campaigns are sent at once; more wait (default 4).
	Runs int
}

func (o Options) withDefaults() (Options, error) {
	if o.Node == nil || o.Mailer == nil || o.Now == nil || o.Metrics == nil || o.PublicURL == "" {
		return o, errors.New("messaging: Node, Mailer, Now, Metrics and PublicURL must be set")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Sleep == nil {
		o.Sleep = pause.For
	}
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.Runs == 0 {
		o.Runs = 4
	}
	if o.Workers < 1 || o.Runs < 1 {
		return o, errors.New("messaging: Workers and Runs must be positive")
	}
	return o, nil
}

// Dispatcher carries out what is to be sent. It is safe for concurrent use.
type Dispatcher struct {
	opts      Options
	ctx       context.Context // ends when the dispatcher closes
	stop      context.CancelFunc
	done      sync.WaitGroup
	semaphore chan struct{} // one per campaign being sent

	again chan struct{} // a run ended before its end
	ended chan struct{} // a run ended: its campaign's schedule may have waited for that

	mu struct {
		sync.Mutex
		closed bool
		// Campaigns being sent here or about to be, so that none is begun twice.
		runs     map[runKey]*run
		starting map[runKey]int // commands under way that start a run
	}
}

// runKey names a campaign among all accounts.
type runKey struct {
	account  uint64
	campaign string
}

// New returns a dispatcher, and takes up the campaigns that were cut off. Where
// several nodes reach the log, it takes them up as partitions come.
func New(ctx context.Context, opts Options) (*Dispatcher, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{opts: o, semaphore: make(chan struct{}, o.Runs), again: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.mu.runs, d.mu.starting = map[runKey]*run{}, map[runKey]int{}
	newChannelCounters(o.Metrics, compose.MediumEmail) // they are there from the start
	o.Metrics.NewGauge("muster_campaigns_sending", func() float64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		return float64(len(d.mu.runs))
	})
	if o.Node.Clustered() {
		d.done.Go(d.watch) // partitions come and go
		d.done.Go(d.watchSchedules)
		return d, nil
	}
	if err := d.takeUp(); err != nil {
		d.Close()
		return nil, err
	}
	d.done.Go(d.watch) // runs that waited continue
	d.done.Go(d.watchSchedules)
	return d, nil
}

// Close stops sending and waits for the messages under way. What is left goes
// on at the next start.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	d.mu.closed = true
	d.mu.Unlock()
	d.stop()
	d.done.Wait()
}

// ErrSendContinues reports that a campaign was begun and continues, without the request that
// waited for it. Sending it again may send it twice.
var ErrSendContinues = errors.New("sending continues without this request")

// How a run ends that is not over in the state.
var (
	// errStopping reports that the service stops; what was begun continues at the next
	// start.
	errStopping = errors.New("the service is stopping")
	// errMoved reports that a campaign continues at another node, or at this one when
	// what it needs is back.
	errMoved = errors.New("another node continues with what was begun")
	// errWaits reports that the run waits until an instant: the state says when it continues.
	errWaits = errors.New("the run waits")
)

// Send starts a campaign and waits until it has been sent, at whichever node, or until its run
// has to wait itself: for quiet hours, or for its rate. When
// ctx ends before, sending continues, and so it does after a stop of the service; the
// error is [ErrSendContinues] then. A refusal of the state machine is a
// *[resolver.Refusal]. by is who starts it, for the audit log.
func (d *Dispatcher) Send(ctx context.Context, account uint64, start campaigns.Start, by audit.Author) (campaigns.Run, error) {
	state, r, err := d.start(ctx, account, start, by)
	if err != nil {
		return campaigns.Run{}, err
	}
	if r != nil {
		select {
		case <-r.ended:
			switch {
			case r.err == nil:
				return r.state, nil
			case errors.Is(r.err, errStopping):
				return campaigns.Run{}, ErrSendContinues
			case !errors.Is(r.err, errMoved):
				return campaigns.Run{}, r.err
			}
		case <-ctx.Done():
			return campaigns.Run{}, ErrSendContinues
		}
	}
	return d.follow(ctx, account, state)
}

// Start starts a campaign and returns at once. by is who starts it, for the audit log;
// empty where its schedule does.
func (d *Dispatcher) Start(ctx context.Context, account uint64, start campaigns.Start, by audit.Author) error {
	_, _, err := d.start(ctx, account, start, by)
	return err
}

// start puts the start of a campaign on record and runs it. The run is nil when it
// is another node's to run.
func (d *Dispatcher) start(ctx context.Context, account uint64, start campaigns.Start, by audit.Author) (state campaigns.Run, r *run, err error) {
	d.mu.Lock()
	old := d.mu.runs[runKey{account, start.ID}]
	d.mu.Unlock()
	if old != nil && (old.over() || !d.busy(account, start.ID)) {
		// The state refuses a second run; one that is over in the state, because it was
		// cancelled, may still have messages under way here.
		select {
		case <-old.ended:
		case <-ctx.Done():
			return state, nil, ctx.Err()
		}
	}
	defer d.startsNow(runKey{account, start.ID})()
	reply, err := d.opts.Node.CommandBy(ctx, account, campaigns.CommandStart, start, by)
	if err != nil {
		return state, nil, err
	}
	if err := decode(reply, &state); err != nil {
		return state, nil, err
	}
	return state, d.begin(account, state, false), nil
}

// busy reports whether a campaign is being sent as far as the state says.
func (d *Dispatcher) busy(account uint64, campaign string) (busy bool) {
	err := d.opts.Node.Look(account, func(v *view.View) error {
		r, ok := v.Campaigns().Run(campaign)
		busy = ok && r.Busy()
		return nil
	})
	return busy || err != nil // then the command says what is wrong
}

// followPause is the pause between two looks at a run of another node.
const followPause = 500 * time.Millisecond

// follow waits until the run that was begun here is over at the node that continues
// with it.
func (d *Dispatcher) follow(ctx context.Context, account uint64, begun campaigns.Run) (campaigns.Run, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	for d.opts.CampaignRun != nil && ctx.Err() == nil {
		state, err := d.opts.CampaignRun(ctx, account, begun.ID)
		switch {
		case err != nil: // the account has no owner at present
		case state.Run != begun.Run: // it was deleted, or begun again
			return campaigns.Run{}, ErrSendContinues
		case !state.Busy() || state.Status == campaigns.RunWaiting:
			return state, nil
		}
		_ = d.opts.Sleep(ctx, followPause)
	}
	return campaigns.Run{}, ErrSendContinues
}

// begin runs a campaign whose start is on record. It returns nil when it is not to
// run here now: it is for the node that owns the account, or for this one at
// its next start.
func (d *Dispatcher) begin(account uint64, state campaigns.Run, resumed bool) *run {
	epoch, leads := d.opts.Node.Lease(account)
	if !leads {
		return nil // the node that leads the account takes it up
	}
	r := &run{d: d, account: account, epoch: epoch, number: state.Run, state: state, resumed: resumed, places: newPlaces(d.opts.Workers), ended: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return nil
	}
	key := runKey{account, state.ID}
	d.mu.runs[key] = r
	d.done.Go(func() {
		defer close(r.ended)
		if r.awaitTurn(d.ctx) {
			r.send(d.ctx)
			<-d.semaphore
		}
		d.mu.Lock()
		if d.mu.runs[key] == r {
			delete(d.mu.runs, key)
		}
		d.mu.Unlock()
		signal(d.ended)
		if errors.Is(r.err, errMoved) || r.err == nil && r.state.Status == campaigns.RunWaiting {
			signal(d.again) // what it waited for may have come meanwhile
		}
	})
	return r
}

// signal wakes the reader of a channel with room for one, now or when it looks next.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
