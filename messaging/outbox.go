package messaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/internal/exchange"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// OutboxOptions configure an [Outbox]. Node, Mailer, Webhooks, PublicURL, Now,
// Rand and Metrics are required.
type OutboxOptions struct {
	Node     *node.Node
	Mailer   Mailer
	Webhooks *webhook.Client // the caller's to close, after the outbox
	// Capture takes the texts and push messages of accounts that have no provider for them;
	// nil has them fail.
	Capture Capture
	// Text and Push configure the senders to providers of texts and to push services; the
	// accounts' credentials are in the state.
	Text text.Options
	Push push.Options
	// PublicURL is where recipients reach the service, without a slash at the end.
	PublicURL string
	Now       func() time.Time
	// Sleep waits, less when ctx ends; it returns ctx's error then. Nil waits by
	// the clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Rand spreads retries: 64 uniform bits, safe for concurrent use.
	Rand    func() uint64
	Metrics *metrics.Set
	Logger  *slog.Logger // nil is silent

	Places
	// Poll is the pause between two looks at what is due (default 200 ms). What is
	// queued is seen at once.
	Poll time.Duration
}

// Places are how many items an [Outbox] carries out at once.
type Places struct {
	// Mails, Texts, Pushes, Hooks and Calls are how many e-mails, text messages, push
	// messages, webhooks and calls of flows are under way at once, which is how many a crash
	// may repeat (defaults 8, 16, 16, 64 and 64). Each kind has places of its own, so that
	// slow receivers of one hold back no other.
	Mails, Texts, Pushes, Hooks, Calls int
	// CallsPerHost is how many calls of an account are under way at once to one host
	// (default 8).
	CallsPerHost int
	// HooksPerEndpoint is how many webhooks are under way at once to one endpoint that
	// is not ordered (default 4), HooksPerAccount to all of an account (default half of
	// Hooks).
	HooksPerEndpoint, HooksPerAccount int
}

// withDefaults fills in what is not set.
func (p Places) withDefaults() Places {
	p.Mails, p.Texts, p.Pushes = cmp.Or(p.Mails, 8), cmp.Or(p.Texts, 16), cmp.Or(p.Pushes, 16)
	p.Hooks, p.Calls, p.CallsPerHost = cmp.Or(p.Hooks, 64), cmp.Or(p.Calls, 64), cmp.Or(p.CallsPerHost, 8)
	p.HooksPerEndpoint, p.HooksPerAccount = cmp.Or(p.HooksPerEndpoint, 4), cmp.Or(p.HooksPerAccount, max(1, p.Hooks/2))
	return p
}

// least is the smallest of them.
func (p Places) least() int {
	return min(p.Mails, p.Texts, p.Pushes, p.Hooks, p.Calls, p.CallsPerHost, p.HooksPerEndpoint, p.HooksPerAccount)
}

func (o OutboxOptions) withDefaults() (OutboxOptions, error) {
	if o.Node == nil || o.Mailer == nil || o.Webhooks == nil || o.PublicURL == "" || o.Now == nil || o.Rand == nil || o.Metrics == nil {
		return o, errors.New("messaging: Node, Mailer, Webhooks, PublicURL, Now, Rand and Metrics of the outbox must be set")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Sleep == nil {
		o.Sleep = pause.For
	}
	o.Places = o.Places.withDefaults()
	o.Poll = cmp.Or(o.Poll, 200*time.Millisecond)
	if o.least() < 1 || o.Poll < 0 {
		return o, errors.New("messaging: Mails, Texts, Pushes, Hooks, Calls, CallsPerHost, HooksPerEndpoint, HooksPerAccount and Poll of the outbox must be positive")
	}
	if o.Text.Now == nil {
		o.Text.Now = o.Now
	}
	return o, nil
}

// Outbox carries out what is queued in the state: single e-mails, text and push
// messages, webhooks, and calls of flows, of the accounts that the node owns.
// Where several nodes reach the log, an item is claimed first, see claims.go.
// What became of an item is on record before its place is given to another; after
// a crash the items under way are carried out again under the same ids.
type Outbox struct {
	opts    OutboxOptions
	ctx     context.Context // ends when the outbox closes
	stop    context.CancelFunc
	done    sync.WaitGroup
	turns   *hookTurns
	claims  *claims
	hosts   *callHosts
	clients *http.Client // to providers of texts
	keys    keyRing
	pushes  pushServices
	freed   chan struct{} // a place has become free

	mu struct {
		sync.Mutex
		// What is under way, so that no item is begun twice and kinds and accounts share
		// the places.
		flying map[flight]struct{}
		busy   map[string]int // places taken, by kind
		hooks  map[uint64]int // webhooks under way, by account
		last   uint64         // the account served last
	}

	kinds        []kind
	mails        channelCounters
	others       map[string]*channelCounters // by kind, of messages other than e-mails
	hooks, calls map[string]*metrics.Counter // by result
}

// kind is one kind of items.
type kind struct {
	name   string
	places int
	carry  func(account uint64, w *view.OutboxWork)
}

// flight names an item under way.
type flight struct{ account, seq uint64 }

// NewOutbox returns an outbox that works until it is closed.
func NewOutbox(opts OutboxOptions) (*Outbox, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	o := &Outbox{opts: opts, turns: newHookTurns(opts.HooksPerEndpoint, opts.Rand), hosts: newCallHosts(opts.CallsPerHost), clients: opts.Text.Client, freed: make(chan struct{}, 1)}
	if o.clients == nil {
		o.clients = exchange.NewClient(exchange.TransportOptions{AllowPrivate: opts.Text.AllowPrivate, MaxConns: opts.Texts})
	}
	o.opts.Text.Client = o.clients
	o.kinds = []kind{
		{outbox.KindEmail, opts.Mails, o.mail}, {outbox.KindSMS, opts.Texts, o.text}, {outbox.KindWhatsApp, opts.Texts, o.text}, {outbox.KindIM, opts.Texts, o.text},
		{outbox.KindPush, opts.Pushes, o.push}, {outbox.KindInApp, opts.Pushes, o.inApp},
		{outbox.KindWebhook, opts.Hooks, o.hook}, {outbox.KindCall, opts.Calls, o.call},
	}
	o.ctx, o.stop = context.WithCancel(context.Background())
	o.mu.flying, o.mu.busy, o.mu.hooks = map[flight]struct{}{}, map[string]int{}, map[uint64]int{}
	o.claims = newClaims(o.ctx, opts.Node, &o.done, opts.Metrics)
	o.mails = newChannelCounters(opts.Metrics, compose.MediumEmail)
	o.others = map[string]*channelCounters{}
	for _, kind := range []string{outbox.KindSMS, outbox.KindWhatsApp, outbox.KindIM, outbox.KindPush, outbox.KindInApp} {
		counters := newChannelCounters(opts.Metrics, kind)
		o.others[kind] = &counters
	}
	o.hooks, o.calls = map[string]*metrics.Counter{}, map[string]*metrics.Counter{}
	for _, result := range []string{outbox.ResultSent, outbox.ResultRetry, outbox.ResultFailed, outbox.ResultGone, outbox.ResultMoot} {
		o.hooks[result] = opts.Metrics.NewCounter(fmt.Sprintf(`muster_webhook_deliveries_total{result=%q}`, result))
	}
	for _, result := range []string{outbox.ResultSent, outbox.ResultRetry, outbox.ResultFailed} {
		o.calls[result] = opts.Metrics.NewCounter(fmt.Sprintf(`muster_flow_calls_total{result=%q}`, result))
	}
	opts.Metrics.NewGauge("muster_outbox_items", func() float64 {
		_, waiting := opts.Node.OutboxAccounts(0)
		return float64(waiting)
	})
	o.done.Go(o.loop)
	return o, nil
}

// Close stops and waits for what is under way. The rest continues at the next
// start.
func (o *Outbox) Close() {
	o.stop()
	o.done.Wait()
	o.clients.CloseIdleConnections()
	o.pushes.close()
}

// loop starts what is due, until the outbox closes.
func (o *Outbox) loop() {
	t := time.NewTimer(o.opts.Poll)
	defer t.Stop()
	for o.ctx.Err() == nil {
		// Taken before the look: what is queued after it wakes.
		queued := o.opts.Node.OutboxQueued()
		o.pass()
		t.Reset(o.opts.Poll)
		select {
		case <-queued:
		case <-o.freed:
		case <-t.C:
		case <-o.ctx.Done():
		}
	}
}

// pass looks at all accounts once, the one served last after the others.
func (o *Outbox) pass() {
	now := o.opts.Now().UnixMilli()
	due, _ := o.opts.Node.OutboxAccounts(now)
	o.mu.Lock()
	last := o.mu.last
	o.mu.Unlock()
	for i, account := range due {
		if account == last {
			due = append(append([]uint64{}, due[i+1:]...), due[:i+1]...)
			break
		}
	}
	for _, account := range due {
		for _, k := range o.kinds {
			share := max(1, k.places/len(due))
			n := min(share, k.places-o.busy(k.name))
			switch k.name {
			case outbox.KindCall:
				n = min(n, o.hosts.room(account))
			case outbox.KindWebhook:
				n = min(n, o.roomForHooks(account))
			}
			if err := o.take(account, k.name, n, now, k.carry); err != nil {
				// The account is gone, or the node has failed and says so itself.
				o.opts.Logger.Debug("the outbox cannot be read", "account", resolver.AccountID(account), "error", err)
			}
		}
		o.mu.Lock()
		o.mu.last = account
		o.mu.Unlock()
	}
}

// roomForHooks is how many more webhooks of an account may begin: slow endpoints of
// one do not take the places of all.
func (o *Outbox) roomForHooks(account uint64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.opts.HooksPerAccount - o.mu.hooks[account]
}

func (o *Outbox) busy(kind string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.busy[kind]
}

// take starts up to n items of an account.
func (o *Outbox) take(account uint64, kind string, n int, nowMs int64, carry func(uint64, *view.OutboxWork)) error {
	if n <= 0 {
		return nil
	}
	var list []view.OutboxWork
	err := o.opts.Node.Look(account, func(v *resolver.View) (err error) {
		skip := func(seq uint64) bool {
			f := flight{account, seq}
			o.mu.Lock()
			_, flying := o.mu.flying[f]
			o.mu.Unlock()
			return flying || o.hosts.waits(f)
		}
		if kind == outbox.KindWebhook {
			list, err = v.WebhooksDue(nowMs, n, func(e *outbox.Endpoint) int {
				return o.turns.room(hookTarget{account, e.ID}, !e.Unordered, nowMs)
			}, skip)
			return err
		}
		list, err = v.OutboxDue(kind, nowMs, n, skip)
		return err
	})
	if err != nil {
		return err
	}
	for i := range list {
		w := &list[i]
		f := flight{account, w.Seq}
		o.mu.Lock()
		o.mu.flying[f] = struct{}{}
		o.mu.busy[kind]++
		if kind == outbox.KindWebhook {
			o.mu.hooks[account]++
			o.turns.begin(hookTarget{account, w.Endpoint})
		}
		o.mu.Unlock()
		o.done.Go(func() {
			if w.Moot == "" {
				carry(account, w)
			} else {
				o.drop(account, w)
			}
			o.mu.Lock()
			delete(o.mu.flying, f)
			o.mu.busy[kind]--
			if kind == outbox.KindWebhook {
				if o.mu.hooks[account]--; o.mu.hooks[account] == 0 {
					delete(o.mu.hooks, account)
				}
				o.turns.leave(hookTarget{account, w.Endpoint})
			}
			o.mu.Unlock()
			select {
			case o.freed <- struct{}{}:
			default:
			}
		})
	}
	return nil
}

// begin claims an item whose message was made, so that it may be sent: the caller ends the
// claim. Where none could be made because of err, it reports that, and mine is false.
func (o *Outbox) begin(ctx context.Context, account uint64, w *view.OutboxWork, err error) (end func(), mine bool) {
	if err == nil {
		return o.claim(ctx, account, w)
	}
	if d, known := o.unmade(ctx, account, w, err); known {
		o.finish(ctx, account, w, d)
	}
	return nil, false
}

// finish counts and reports what became of a message on a channel other than e-mail.
func (o *Outbox) finish(ctx context.Context, account uint64, w *view.OutboxWork, d outbox.Done) {
	o.others[w.Kind].count(d.Result)
	o.report(ctx, account, w, d)
}

// drop reports an item that there is no reason any more to carry out.
func (o *Outbox) drop(account uint64, w *view.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	o.report(ctx, account, w, outbox.Done{Result: outbox.ResultMoot, Reason: w.Moot})
}

// report puts an outcome on record. The state may be too busy for a moment. What
// cannot be recorded is carried out again, after a pause.
func (o *Outbox) report(ctx context.Context, account uint64, w *view.OutboxWork, d outbox.Done) {
	d.Seq, d.Attempt, d.Epoch = w.Seq, w.Attempt, w.Epoch
	d.Ordinal, d.ItemName = w.Ordinal, w.ItemName
	_, err := record(ctx, o.opts.Node, o.opts.Sleep, account, messages.CommandOutboxDone, d)
	switch {
	case resolver.IsSuperseded(err):
		o.opts.Logger.Debug("another node carries out the item", "account", resolver.AccountID(account), "item", w.Seq)
	case err != nil:
		o.unrecorded(account, w, err)
	}
}

// unrecorded waits before an item is carried out again whose outcome could not be
// put on record.
func (o *Outbox) unrecorded(account uint64, w *view.OutboxWork, err error) {
	if o.ctx.Err() == nil {
		o.opts.Logger.Error("the outcome of a message is not on record; it will be repeated", "account", resolver.AccountID(account), "item", w.Seq, "error", err)
		_ = o.opts.Sleep(o.ctx, maxPause)
	}
}
