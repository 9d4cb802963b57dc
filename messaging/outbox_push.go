package messaging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// push sends one push message to the devices of a profile and reports what became of it.
func (o *Outbox) push(account uint64, w *view.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	m, services, err := o.composePush(account, w)
	end, mine := o.begin(ctx, account, w, err)
	if !mine {
		return
	}
	defer end()
	got, err := services.deliver(ctx, m)
	if err != nil || ctx.Err() != nil && got.result != outbox.ResultSent {
		return // cut off by the stop: it continues at the next start
	}
	d := o.judge(account, w, outcomeOf(&got))
	d.Retired = got.retired
	o.finish(ctx, account, w, d)
}

// outcomeOf is what became of a message to several devices as that of a message to one
// address. A repeat reaches those that have it already, too, and replaces it there.
func outcomeOf(d *delivery) outcome.Result {
	switch {
	case d.result == outbox.ResultSent:
		return outcome.New(outcome.Accepted, "push", "")
	case d.handed: // whatever other devices say
		return outcome.New(outcome.Ambiguous, "push", d.reason)
	case d.result == outbox.ResultRefused:
		return outcome.New(outcome.Refused, "push", d.reason)
	case d.err != nil:
		return outcome.New(outcome.Temporary, "push", d.reason)
	}
	return outcome.New(outcome.Permanent, "push", d.reason)
}

// composePush makes the message of an item, and finds the services that it goes out by.
func (o *Outbox) composePush(account uint64, w *view.OutboxWork) (*outgoing, *pushMedium, error) {
	var in messages.Push
	if err := decode(w.Payload, &in); err != nil {
		return nil, nil, err
	}
	var p *view.Profile
	var key tracking.Key
	var list []credentials.Credential
	err := o.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if p, err = v.Profiles().Get(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		if err := maySend(v, p, compose.MediumPush); err != nil {
			return err
		}
		list = v.Credentials().Of(credentials.Push)
		key, err = compose.AccountKey(v, account)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	content := campaigns.Content{Subject: in.Title, Text: in.Body, Link: in.Link, Push: in.Options}
	if in.TrackLinks && compose.IsWebLink(in.Link) {
		content.Links, content.Link = []string{in.Link}, ""
	}
	c, err := compose.Compile(content)
	if err != nil {
		return nil, nil, err
	}
	m := &outgoing{
		content: c, profile: p, send: compose.SealSend(key, w.Send().On(w.Kind)), event: in.Event, at: time.UnixMilli(w.CreatedMs),
		links: compose.Links{Base: o.opts.PublicURL, Account: account, Key: key, Flow: w.Flow, Step: w.Step},
		try: func(ctx context.Context, attempt func(context.Context) outcome.Result) (outcome.Result, error) {
			return attempt(ctx), nil
		},
	}
	if err := c.CheckHoles(c.WithClicks(m.links, m.send, m.values())); err != nil {
		return nil, nil, err
	}
	if len(list) == 0 && o.opts.Capture == nil {
		return nil, nil, errors.New("no push credentials are set; set them with PUT /push-credentials/{kind} of the console")
	}
	services, err := o.pushes.of(account, list, o.opts)
	return m, services, err
}

// maxPushAccounts bounds the accounts whose push services are kept open.
const maxPushAccounts = 256

// pushServices are the open push services of accounts. They are kept since their tokens
// and connections serve for many messages. Closing one ends idle connections only: messages
// that are under way get their answers.
type pushServices struct {
	mu   sync.Mutex
	open map[uint64]*openPush
}

type openPush struct {
	list []credentials.Credential
	*pushMedium
}

// of finds the push services of an account, or opens them, which it does again when the
// account's credentials have changed.
func (x *pushServices) of(account uint64, list []credentials.Credential, opts OutboxOptions) (*pushMedium, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	same := func(a, b credentials.Credential) bool {
		return a.Name == b.Name && a.UpdatedMs == b.UpdatedMs && slices.Equal(a.Config, b.Config)
	}
	old := x.open[account]
	if old != nil && slices.EqualFunc(old.list, list, same) {
		return old.pushMedium, nil
	}
	m, err := newPushMedium(opts.Push, opts.Capture, list)
	if err != nil {
		return nil, err
	}
	switch {
	case old != nil:
		old.close()
	case len(x.open) >= maxPushAccounts:
		x.closeAll()
	}
	if x.open == nil {
		x.open = map[uint64]*openPush{}
	}
	x.open[account] = &openPush{list, m}
	return m, nil
}

func (x *pushServices) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closeAll()
}

func (x *pushServices) closeAll() {
	for _, s := range x.open {
		s.close()
	}
	clear(x.open)
}
