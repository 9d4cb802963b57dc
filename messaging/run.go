package messaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// run is a campaign being sent.
type run struct {
	// What is sent, and under which lease. Set before the run's goroutine starts.
	d       *Dispatcher
	account uint64
	epoch   uint64 // under which it is sent, 0 when embedded
	number  int    // of the run; commands name it, so that those of an older run are refused
	resumed bool   // the run began before, here or elsewhere: messages without an outcome are sent first

	// The run as the node's state has it. The run's goroutine reads it again at its end.
	state campaigns.Run

	// The contents. The run's goroutine prepares them before the first batch, then workers
	// only read them.
	campaign campaigns.Campaign
	variants []*variant
	media    []medium // to be closed at the end
	links    compose.Links
	at       time.Time // when the run started; each message has this date, in every attempt

	// What workers find out about the provider.

	// failing counts messages that failed for a while, one after the other.
	failing atomic.Int64
	// handed is set once a message was handed over; fault is the last that kept one
	// from it for a while only.
	handed atomic.Bool
	fault  atomic.Pointer[error]

	// How the run is stopped.

	// last is set once the state has stopped the run as it claimed a batch, for want of
	// credits: what was claimed is paid and goes out.
	last atomic.Bool
	// claiming is held while a batch is claimed, until last is set: a message that is tried
	// again meanwhile must not take the end of the credits for a stop.
	claiming sync.RWMutex
	places   *places     // bounds the messages under way, and has their first fatal error
	stopped  atomic.Bool // the state says that the run is over

	// The end, for the dispatcher.
	ended chan struct{} // closed when no message is under way any more
	err   error         // set before ended is closed
}

// variant is one of the contents of a run, with the channel that it goes out on.
type variant struct {
	*compose.Compiled
	part     campaigns.Campaign // the campaign, of several channels the part of this one
	medium   medium
	counters channelCounters
}

func (r *run) over() bool { return r.stopped.Load() }

// awaitTurn waits until the run may be sent, and reports whether it may: it may not once the
// state says that the run is over, or ctx ends.
func (r *run) awaitTurn(ctx context.Context) bool {
	for {
		changed, campaigns := r.d.opts.Node.Changed(), r.d.opts.Node.CampaignChanged()
		if r.overInState() {
			r.conclude()
			return false
		}
		select {
		case r.d.semaphore <- struct{}{}:
			return true
		case <-changed: // another node may have ended the run before the partition came back
		case <-campaigns:
		case <-ctx.Done():
			r.err = errStopping
			return false
		}
	}
}

// overInState reports whether the state says that the run is over. Where the state cannot be
// read, the first command of the run says why.
func (r *run) overInState() (over bool) {
	err := r.d.opts.Node.Look(r.account, func(v *resolver.View) error {
		over = !v.Campaigns().Sending(r.state.ID, r.number)
		return nil
	})
	return err == nil && over
}

// send works until no recipient is left, the run is stopped, or ctx ends.
func (r *run) send(ctx context.Context) {
	err := r.prepare()
	defer func() {
		for _, m := range r.media {
			m.close()
		}
	}()
	if err == nil && r.resumed {
		err = r.resume(ctx)
	}
	for err == nil {
		var more bool
		if more, err = r.batch(ctx); !more {
			break
		}
	}
	r.places.all.Wait()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.err = errStopping
		return
	case r.moved(err):
		r.d.opts.Logger.Info("a campaign continues elsewhere or later", "campaign", r.state.ID, "reason", err)
		r.err = errMoved
		return
	}
	var refusal *resolver.Refusal
	if err != nil && !errors.Is(err, errWaits) && !errors.As(err, &refusal) {
		r.d.opts.Logger.Error("a campaign was stopped", "campaign", r.state.ID, "error", err)
		err = r.command(ctx, campaigns.CommandFinish, campaigns.Finish{ID: r.state.ID, Run: r.number, Epoch: r.epoch, Stopped: err.Error(), Anonymous: true}, nil)
		if r.moved(err) { // it is not on record that it was stopped, so it continues
			r.err = errMoved
			return
		}
	}
	r.conclude()
}

// conclude reads the run as it ended.
func (r *run) conclude() {
	r.stopped.Store(true)
	r.err = r.d.opts.Node.Look(r.account, func(v *resolver.View) error {
		r.state, _ = v.Campaigns().Run(r.state.ID)
		return nil
	})
	if r.moved(r.err) {
		r.err = errMoved
	}
}

// moved reports whether an error means that another node continues with the run, or this
// one when the log is back or has room. Embedded there is no other node, and a log that
// fails ends the process.
func (r *run) moved(err error) bool {
	return errors.Is(err, resolver.ErrOverloaded) || r.epoch != 0 && (resolver.IsSuperseded(err) || errors.Is(err, errMoved) ||
		errors.Is(err, resolver.ErrNotOwner) || errors.Is(err, resolver.ErrUnavailable))
}

func (r *run) command(ctx context.Context, name string, args, reply any) error {
	b, err := r.d.opts.Node.Command(ctx, r.account, name, args)
	if err != nil || reply == nil {
		return err
	}
	return decode(b, reply)
}

// prepare reads what is sent.
func (r *run) prepare() error {
	var contents []campaigns.Content
	var secret []byte
	r.at = time.UnixMilli(r.state.StartedMs)
	err := r.d.opts.Node.Look(r.account, func(v *resolver.View) error {
		r.campaign, _ = v.Campaigns().Campaign(r.state.ID)
		var err error
		if contents, err = v.Campaigns().Contents(r.state.ID); err != nil {
			return err
		}
		secret = v.Secret()
		return r.open(v, contents)
	})
	if err != nil {
		return err
	}
	key, err := tracking.DeriveKey(secret, r.account)
	if err != nil {
		return err
	}
	if len(contents) == 0 {
		return fmt.Errorf("campaign %s: its run is over, nothing is left to be sent", r.state.ID)
	}
	r.links = compose.Links{Base: r.d.opts.PublicURL, Account: r.account, Key: key}
	return nil
}

// open readies the contents of a run and the channels that they go out on.
func (r *run) open(v *resolver.View, contents []campaigns.Content) error {
	parts := r.campaign.Parts()
	for i, c := range contents {
		compiled, err := compose.Compile(c)
		if err != nil {
			return err
		}
		x := &variant{Compiled: compiled, part: parts[min(i, len(parts)-1)]}
		if i < len(parts) {
			if x.medium, err = r.d.medium(v, x.part.Medium(), contents); err != nil {
				return err
			}
			r.media = append(r.media, x.medium)
			x.counters = newChannelCounters(r.d.opts.Metrics, x.part.Medium())
		} else { // all of an A/B test go out on one channel
			x.medium, x.counters = r.variants[0].medium, r.variants[0].counters
		}
		r.variants = append(r.variants, x)
	}
	return nil
}

// claim is what claims recipients.
func (r *run) claim() campaigns.Batch {
	return campaigns.Batch{ID: r.state.ID, Run: r.number, Epoch: r.epoch}
}

// resume sends to those who were being sent to when the service stopped.
func (r *run) resume(ctx context.Context) error {
	var reply campaigns.BatchReply
	if err := r.command(ctx, campaigns.CommandResume, r.claim(), &reply); err != nil {
		return err
	}
	return r.deliver(ctx, reply.Recipients)
}

// batch sends to the next recipients; more is false when the run is over.
func (r *run) batch(ctx context.Context) (more bool, err error) {
	if err := r.places.failure(); err != nil {
		return false, err
	}
	outstanding := r.places.busy()
	reply, err := r.claimBatch(ctx)
	if err != nil {
		return false, err
	}
	if reply.WaitMs > 0 {
		if err := r.finishMessages(); err != nil {
			return false, err
		}
		return true, r.d.opts.Sleep(ctx, min(time.Duration(reply.WaitMs)*time.Millisecond, time.Second))
	}
	if reply.Waiting {
		return false, cmp.Or(r.places.drain(), errWaits)
	}
	if err := r.deliver(ctx, reply.Recipients); err != nil {
		return false, err
	}
	switch {
	case reply.PauseMs > 0:
		return true, r.d.opts.Sleep(ctx, time.Duration(reply.PauseMs)*time.Millisecond)
	case reply.Stopped != "":
		return false, r.places.drain()
	case reply.Left > 0:
		if len(reply.Recipients) == 0 {
			return true, nil // none of the piece may be sent to
		}
		return true, r.d.opts.Sleep(ctx, time.Duration(r.state.DelayMs)*time.Millisecond)
	}
	if err := r.finishMessages(); err != nil {
		return false, err
	}
	if len(r.state.Channels) > 0 && (outstanding || len(reply.Recipients) > 0) {
		return true, nil // quiet hours may hold a recipient's next channel: then one recipient remains
	}
	return false, r.command(ctx, campaigns.CommandFinish, campaigns.Finish{ID: r.state.ID, Run: r.number, Epoch: r.epoch}, nil)
}

// claimBatch claims the next recipients.
func (r *run) claimBatch(ctx context.Context) (reply campaigns.BatchReply, err error) {
	r.claiming.Lock()
	defer r.claiming.Unlock()
	if err := r.command(ctx, campaigns.CommandBatch, r.claim(), &reply); err != nil {
		return reply, err
	}
	r.last.Store(reply.Stopped != "")
	return reply, nil
}

// finishMessages waits for the messages of the run, and reports what keeps it from continuing: a
// failure, or that none of them was handed over.
func (r *run) finishMessages() error {
	return cmp.Or(r.places.drain(), r.nothingHanded())
}

// nothingHanded is the fault that kept every message of the run from being handed
// over: the relay is down, also for an audience too small for maxFailing.
// Recipients who were not reached are sent to when the campaign is sent again.
func (r *run) nothingHanded() error {
	if fault := r.fault.Load(); fault != nil && !r.handed.Load() && r.state.Sent == 0 {
		return fmt.Errorf("no message could be handed over; the last: %w", *fault)
	}
	return nil
}

// message is one recipient with what is known of it as the message goes out.
type message struct {
	campaigns.Recipient
	profile *view.Profile // nil where refused is not ""
	refused string        // why it is not sent after all, "" where it is
}

// deliver sends to recipients, several at once. It returns when each message has its outcome
// on record, or has given its place up until it is tried again. With a rate, which says itself
// when the next may go out, it does not wait for that: a provider that answers slowly would
// hold them up.
func (r *run) deliver(ctx context.Context, list []campaigns.Recipient) error {
	var placed sync.WaitGroup
	for _, x := range list {
		p, err := r.places.take(ctx)
		if err != nil {
			break
		}
		placed.Add(1)
		p.left = sync.OnceFunc(placed.Done)
		r.places.all.Go(func() {
			defer p.end()
			if r.places.failure() != nil || ctx.Err() != nil {
				return
			}
			if err := r.one(ctx, p, x); err != nil {
				r.places.fail(err)
			}
		})
	}
	if r.campaign.Rate == nil {
		placed.Wait()
	}
	return cmp.Or(r.places.failure(), ctx.Err())
}

// load reads the recipient of a message right before it goes out: since the batch was
// claimed, which may be minutes ago, the person may have unsubscribed, or been merged or
// erased.
func (r *run) load(x campaigns.Recipient, part *campaigns.Campaign) (message, error) {
	r.claiming.RLock()
	defer r.claiming.RUnlock()
	m := message{Recipient: x}
	err := r.d.opts.Node.Look(r.account, func(v *resolver.View) (err error) {
		if !r.last.Load() && !v.Campaigns().Sending(r.state.ID, r.number) {
			return errOver
		}
		o := v.Profiles().Root(x.Ordinal)
		switch {
		case !v.Profiles().Has(o):
			m.refused = erased
			return nil
		case v.Campaigns().WasSent(&r.campaign, o): // merged since with another profile of the batch
			m.refused = campaigns.AlreadySent
			return nil
		}
		if m.refused, err = v.PassedOver(part, o, r.d.opts.Now().UnixMilli()); err != nil || m.refused != "" {
			return err
		}
		m.profile, err = v.Profiles().Get(o)
		return err
	})
	return m, err
}

// errOver reports that the run was stopped or cancelled since the batch was claimed. What is
// left of the batch is not sent, and costs nothing; another send of the campaign reaches it.
var errOver = errors.New("the run was stopped")

// again judges once more a message that has been tried before: seconds or minutes may have passed.
// It returns what ends the attempts, nil for nothing, and why the recipient may not be sent to
// any more, "" where that is not it.
func (r *run) again(x campaigns.Recipient, part *campaigns.Campaign) (ended *outcome.Result, refused string, err error) {
	m, err := r.load(x, part)
	switch {
	case errors.Is(err, errOver):
		o := outcome.New(outcome.Permanent, "stopped", errOver.Error())
		return &o, "", nil
	case err != nil:
		o := outcome.Failed(outcome.Permanent, "unknown", err)
		return &o, "", err
	case m.refused != "":
		o := outcome.New(outcome.Permanent, "refused", m.refused)
		return &o, m.refused, nil
	}
	return nil, "", nil
}

// erased is why nothing is sent to a recipient that was erased after the claim. The state
// has forgotten the recipient, and counts the message neither as sent nor as skipped.
const erased = "erased"

// onEveryChannel reports whether a message that is refused for a reason would be so on every
// channel.
func onEveryChannel(refused string) bool {
	return refused == erased || refused == campaigns.AlreadySent || refused == view.LeftTopics || refused == errOver.Error()
}

// one sends one message and reports what became of it. Where a campaign of several channels
// does not reach the person on one of them, it continues to the next: but not from a channel
// on which the message may have gone out before a stop of the service, since the person
// would get two.
func (r *run) one(ctx context.Context, p *place, x campaigns.Recipient) error {
	for next := &x; next != nil; {
		var err error
		if next, err = r.attempt(ctx, p, *next); err != nil {
			return err
		}
	}
	return nil
}

// attempt sends one message on one channel, and returns the message that the person is to be
// sent in its place, nil for none.
func (r *run) attempt(ctx context.Context, p *place, x campaigns.Recipient) (next *campaigns.Recipient, err error) {
	end, mine := r.d.opts.Node.Effect(r.account, r.epoch)
	if !mine {
		return nil, errMoved
	}
	defer end()
	ctx, cancel := graceful(ctx)
	defer cancel()
	v := r.variants[min(x.Variant, len(r.variants)-1)]
	channel := v.part.Medium()
	m, err := r.load(x, &v.part)
	switch {
	case errors.Is(err, errOver) && x.Again:
		return nil, nil // it stays pending on its channel: it may have gone out before
	case errors.Is(err, errOver):
		m.refused = errOver.Error()
	case err != nil:
		return nil, err
	}
	variant := m.Variant
	if len(r.state.Channels) > 0 {
		variant = 0 // the channel says it, in whatever order the campaign's channels are
	}
	send := compose.SealSend(r.links.Key, messages.CampaignSend(r.campaign.Number, m.Ordinal, variant).On(channel))
	lost := false // the answer to some attempt, so that it may have been taken
	tried, refused := false, ""
	var unknown error // whether the recipient may still be sent to
	out := &outgoing{
		content: v.Compiled, profile: m.profile, send: send, links: r.links,
		campaign: r.campaign.ID, at: r.at, try: func(ctx context.Context, attempt func(context.Context) outcome.Result) (outcome.Result, error) {
			return r.try(ctx, p, v.counters.retried, func(ctx context.Context) outcome.Result {
				if tried {
					var ended *outcome.Result
					if ended, refused, unknown = r.again(x, &v.part); ended != nil {
						return *ended
					}
				}
				tried = true
				o := attempt(ctx)
				lost = lost || o.Class == outcome.Ambiguous
				return o
			})
		},
	}
	if m.refused == "" {
		if tag := out.content.HoleOn(channel, out.values()); tag != "" {
			m.refused = compose.Missing(tag)
		}
	}
	got := delivery{result: campaigns.ResultSkipped, reason: m.refused}
	if m.refused == "" {
		if got, err = v.medium.deliver(ctx, out); err != nil || unknown != nil {
			return nil, cmp.Or(err, unknown)
		}
		if refused != "" && !lost && got.result != outbox.ResultSent {
			// It was tried, did not go out, and must not any more.
			m.refused, got = refused, delivery{result: campaigns.ResultSkipped, reason: refused}
		}
	}
	got.handed = got.handed || lost && got.result != outbox.ResultSent
	if got.result != campaigns.ResultSkipped {
		got.reason = nameless(got.reason, m.profile)
		if got.err != nil { // it may be what stops the run
			got.err = errors.New(nameless(got.err.Error(), m.profile))
		}
	}
	switch got.result {
	case outbox.ResultSent:
		r.failing.Store(0)
		r.handed.Store(true)
		r.places.handed()
		v.counters.sent.Inc()
	case campaigns.ResultSkipped:
	default:
		v.counters.failed.Inc()
	}
	if got.optedOut {
		if err := optOut(ctx, r.d.opts.Node, r.d.opts.Sleep, r.account, messages.EngagementRecord{Send: send, Channel: channel, Reason: got.reason}); err != nil {
			return nil, err
		}
	}
	next, err = r.report(ctx, campaigns.Result{
		ID: r.state.ID, Run: r.number, Epoch: r.epoch, Ordinal: m.Ordinal, Variant: m.Variant, Result: got.result, Reason: got.reason, Anonymous: got.reason != "", Handed: got.handed,
		Devices: got.devices, Accepted: got.accepted, Retired: got.retired, InApp: got.card, Unreachable: !x.Again && !onEveryChannel(m.refused) && got.unreachable(),
	})
	if err != nil {
		return nil, err
	}
	if got.err != nil {
		r.fault.Store(&got.err)
	}
	if got.err != nil && r.failing.Add(1) >= maxFailing {
		return nil, fmt.Errorf("%d messages in a row could not be handed over; the last: %w", maxFailing, got.err)
	}
	return next, nil
}

// report puts an outcome on record, and returns the message that the person is to be sent in
// place of this one, nil for none. The state may be too busy for a moment; the message has
// gone out, so the report is not given up.
func (r *run) report(ctx context.Context, result campaigns.Result) (*campaigns.Recipient, error) {
	b, err := record(ctx, r.d.opts.Node, r.d.opts.Sleep, r.account, campaigns.CommandResult, result)
	var reply campaigns.ResultReply
	if err == nil && len(r.state.Channels) > 0 && len(b) > 0 {
		err = decode(b, &reply)
	}
	return reply.Next, err
}
