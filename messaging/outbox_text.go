package messaging

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// text sends one SMS, WhatsApp message or instant message and reports what became of it.
func (o *Outbox) text(account uint64, w *view.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	m, sender, err := o.composeText(account, w)
	end, mine := o.begin(ctx, account, w, err)
	if !mine {
		return
	}
	defer end()
	r := o.sendText(ctx, m, sender, w)
	if ctx.Err() != nil && !r.OK() {
		return // cut off by the stop: it continues at the next start
	}
	d := o.judgeText(account, w, r)
	if r.OptedOut {
		e := messages.EngagementRecord{Send: w.Send(), Channel: w.Kind, Reason: d.Reason, Flow: w.Flow, Step: w.Step}
		if err := optOut(ctx, o.opts.Node, o.opts.Sleep, account, e); err != nil {
			o.unrecorded(account, w, err)
			return
		}
	}
	o.finish(ctx, account, w, d)
}

// sendText hands a text to the account's provider, or keeps it when there is
// none.
func (o *Outbox) sendText(ctx context.Context, m *text.Message, sender *text.Sender, w *view.OutboxWork) outcome.Result {
	if sender != nil {
		return sender.Send(ctx, m)
	}
	return keep(o.opts.Capture, capture.Message{
		ID: m.ID, Channel: w.Kind, To: m.To, From: m.From, Body: m.Shown(), SendID: m.ID, At: time.UnixMilli(w.CreatedMs),
	})
}

// judgeText decides what follows from an attempt. Unlike mail servers, most
// providers of texts tell repeats of a message from new ones by nothing, so that
// one whose answer was lost is repeated a few times only.
func (o *Outbox) judgeText(account uint64, w *view.OutboxWork, r outcome.Result) outbox.Done {
	if r.Class == outcome.Ambiguous && w.Attempt+1 >= attempts {
		return outbox.Done{Result: outbox.ResultFailed, Reason: r.Err().Error(), Handed: true}
	}
	return o.judge(account, w, r)
}

// composeText makes the message of an item. The sender is nil when the account
// has no provider and texts are captured.
func (o *Outbox) composeText(account uint64, w *view.OutboxWork) (*text.Message, *text.Sender, error) {
	var in messages.Text
	if err := decode(w.Payload, &in); err != nil {
		return nil, nil, err
	}
	var p *view.Profile
	var key tracking.Key
	var provider credentials.Credential
	var set, reports bool
	err := o.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if p, err = v.Profiles().Get(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		if in.Answer && !in.Start {
			// Mobile networks want STOP and HELP answered, also to who has unsubscribed.
			if reason := p.SuppressionReason(w.Kind); reason != "" {
				return errSuppressed(reason)
			}
		} else if err := maySend(v, p, w.Kind); err != nil {
			return err
		}
		if w.Kind == outbox.KindWhatsApp && in.Template == nil && !v.Reach().MayWriteFreely(p.Ordinal, p.Newest(resolver.IdentityPhone), o.opts.Now().UnixMilli()) {
			return compose.Refused("not sent by whatsapp: " + view.NotInConversation)
		}
		provider, set = v.Credentials().Get(credentials.Message, w.Kind)
		reports = hasReports(v)
		key, err = compose.AccountKey(v, account)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	links := compose.Links{Base: o.opts.PublicURL, Account: account, Key: key, Flow: w.Flow, Step: w.Step}
	content := campaigns.Content{Text: in.Text}
	if in.TrackLinks {
		if content, err = compose.TakeTextLinks(content); err != nil {
			return nil, nil, err
		}
	}
	c, err := compose.Compile(content)
	if err != nil {
		return nil, nil, err
	}
	inLinks := compose.SealSend(key, w.Send().On(w.Kind))
	values := c.WithClicks(links, inLinks, compose.EventValues(in.Event, c.Values(links, p, inLinks)))
	m := &text.Message{To: compactPhone(p.Newest(resolver.IdentityPhone)), ID: compose.SendText(account, compose.SealSend(key, w.Send()))}
	if err := c.CheckHoles(values); err != nil {
		return nil, nil, err
	}
	if m.Body, err = c.TextTemplate.Render(values); err != nil {
		return nil, nil, err
	}
	if in.Template != nil {
		if m.Template, err = compose.FillTemplate(in.Template, values); err != nil {
			return nil, nil, err
		}
	}
	if reports {
		m.Vars = statusVars(o.opts.PublicURL, account, m.ID)
	}
	if !set {
		if o.opts.Capture == nil {
			return nil, nil, fmt.Errorf("no provider is set for %s; set one with PUT /message-providers/%s of the console", w.Kind, w.Kind)
		}
		return m, nil, nil
	}
	sender, err := o.textSender(provider)
	if err == nil {
		err = sender.Check(m)
	}
	return m, sender, err
}

// textSender is a sender to a provider. Connections are those of all senders, so
// that making one for each message costs none.
func (o *Outbox) textSender(c credentials.Credential) (*text.Sender, error) {
	config, err := text.ParseConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("the provider of %s: %w", c.Name, err)
	}
	s, err := text.New(config, o.opts.Text)
	if err != nil {
		return nil, fmt.Errorf("the provider of %s: %w", c.Name, err)
	}
	return s, nil
}
