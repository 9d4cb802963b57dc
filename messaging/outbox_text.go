package messaging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/outbox"
)

// text sends one text message and reports what became of it.
func (o *Outbox) text(account uint64, w *resolver.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	m, sender, err := o.composeText(account, w)
	if err != nil {
		if d, known := o.unmade(ctx, w, err); known {
			o.texts.count(d.Result)
			o.report(ctx, account, w, d)
		}
		return
	}
	end, mine := o.claim(ctx, account, w)
	if !mine {
		return
	}
	defer end()
	r := o.sendText(ctx, m, sender, w)
	if ctx.Err() != nil && !r.OK() {
		return // cut off by the stop: it goes on at the next start
	}
	d := o.judgeText(w, r)
	if r.OptedOut {
		e := resolver.EngagementRecord{Send: w.Send(), Channel: mediumSMS, Reason: d.Reason, Flow: w.Flow, Step: w.Step}
		if err := optOut(ctx, o.opts.Node, o.opts.Sleep, account, e); err != nil {
			o.unrecorded(account, w, err)
			return
		}
	}
	o.texts.count(d.Result)
	o.report(ctx, account, w, d)
}

// sendText hands a text to the account's provider, or keeps it when there is
// none.
func (o *Outbox) sendText(ctx context.Context, m *text.Message, sender *text.Sender, w *resolver.OutboxWork) outcome.Result {
	if sender != nil {
		return sender.Send(ctx, m)
	}
	return keep(o.opts.Capture, capture.Message{
		ID: m.ID, Channel: mediumSMS, To: m.To, From: m.From, Body: m.Body, SendID: m.ID, At: time.UnixMilli(w.CreatedMs),
	})
}

// judgeText is what follows from an attempt. Unlike mail servers, most providers
// of texts tell repeats of a message from new ones by nothing, so that one whose
// answer was lost is repeated a few times only.
func (o *Outbox) judgeText(w *resolver.OutboxWork, r outcome.Result) outbox.Done {
	if r.Class == outcome.Ambiguous && w.Attempt+1 >= attempts {
		return outbox.Done{Result: outbox.ResultFailed, Reason: r.Err().Error()}
	}
	return o.judge(w, r)
}

// composeText makes the message of an item. The sender is nil when the account
// has no provider and texts are captured.
func (o *Outbox) composeText(account uint64, w *resolver.OutboxWork) (*text.Message, *text.Sender, error) {
	var in resolver.OutboxText
	if err := decode(w.Payload, &in); err != nil {
		return nil, nil, err
	}
	var p *resolver.Profile
	var key tracking.Key
	var provider credentials.Credential
	var set bool
	err := o.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if p, err = v.Profile(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		if err := maySend(v, p, mediumSMS); err != nil {
			return err
		}
		provider, set = v.Credentials().Get(credentials.Message, mediumSMS)
		key, err = AccountKey(v, account)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	t, err := merge.Parse(in.Text, merge.Text)
	if err != nil {
		return nil, nil, err
	}
	links := Links{Base: o.opts.PublicURL, Account: account, Key: key, Flow: w.Flow, Step: w.Step}
	send := SealSend(key, w.Send())
	profile := ProfileValues(p)
	values := eventValues(in.Event, func(path []string) (string, bool) {
		if len(path) == 1 && path[0] == TagUnsubscribe {
			return links.url(tracking.Unsubscribe, send, unsubscribeSMS), true
		}
		return profile(path)
	})
	if tag := t.Missing(values); tag != "" {
		return nil, nil, errMissing(tag)
	}
	body, err := t.Render(values)
	if err != nil {
		return nil, nil, err
	}
	m := &text.Message{To: compactPhone(p.Newest(resolver.IdentityPhone)), Body: body, ID: SendText(account, send)}
	if !set {
		if o.opts.Capture == nil {
			return nil, nil, errors.New("no provider is set for sms; set one with PUT /message-providers/sms of the console")
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
		return nil, fmt.Errorf("the provider of sms: %w", err)
	}
	s, err := text.New(config, o.opts.Text)
	if err != nil {
		return nil, fmt.Errorf("the provider of sms: %w", err)
	}
	return s, nil
}
