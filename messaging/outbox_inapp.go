package messaging

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// inApp makes an in-app message of a flow and reports that it was sent, which puts it into the
// inbox.
func (o *Outbox) inApp(account uint64, w *view.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	m, err := o.composeInApp(account, w)
	var c card.Card
	if err == nil {
		c, err = m.card()
	}
	end, mine := o.begin(ctx, account, w, err)
	if !mine {
		return
	}
	defer end()
	o.finish(ctx, account, w, outbox.Done{Result: outbox.ResultSent, InApp: must.PlainJSON(c)})
}

// composeInApp makes the message of an item.
func (o *Outbox) composeInApp(account uint64, w *view.OutboxWork) (*outgoing, error) {
	var in messages.InApp
	if err := json.Unmarshal(w.Payload, &in); err != nil {
		return nil, errors.Join(errState, err)
	}
	var p *view.Profile
	var key tracking.Key
	err := o.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if p, err = v.Profiles().Get(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		if err := maySend(v, p, compose.MediumInApp); err != nil {
			return err
		}
		key, err = compose.AccountKey(v, account)
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := compose.Compile(campaigns.Content{Subject: in.Title, Text: in.Body, Link: in.Link, InApp: &in.Options})
	if err != nil {
		return nil, err
	}
	m := &outgoing{
		content: c, profile: p, send: compose.SealSend(key, w.Send().On(w.Kind)), event: in.Event,
		links: compose.Links{Base: o.opts.PublicURL, Account: account, Key: key, Flow: w.Flow, Step: w.Step},
	}
	return m, c.CheckHoles(m.values())
}
