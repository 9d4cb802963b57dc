package messaging

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

const mediumInApp = "in_app"

// inAppMedium makes in-app messages. There is no provider: the record that says that a message
// was sent has it, and puts it into the inbox.
type inAppMedium struct{}

func (inAppMedium) close() {}

func (inAppMedium) deliver(_ context.Context, m *outgoing) (delivery, error) {
	c, err := m.card()
	if err != nil {
		return delivery{result: outbox.ResultFailed, reason: err.Error()}, nil
	}
	return delivery{result: outbox.ResultSent, card: must.PlainJSON(c)}, nil
}

// card makes the message of one recipient.
func (m *outgoing) card() (c card.Card, err error) {
	if o := m.content.InApp; o != nil {
		c.Options = *o
	}
	values := m.values()
	if c.Title, err = m.content.subject.Render(values); err != nil {
		return c, err
	}
	if c.Body, err = m.content.text.Render(values); err != nil {
		return c, err
	}
	if c.Link, err = m.content.link.Render(values); err != nil {
		return c, err
	}
	if f := c.Check(); f != nil {
		return c, f
	}
	return c, nil
}

// PrepareInApp checks an in-app message: its title is the subject. A fault is a
// [*ContentError].
func PrepareInApp(c campaigns.Content) (campaigns.Content, error) {
	c.Sender, c.SenderName, c.ReplyTo = "", "", "" // of e-mails and texts
	if strings.TrimSpace(c.Subject) == "" {
		return c, &ContentError{"subject", fault("Field required")}
	}
	if err := checkText(c); err != nil {
		return c, err
	}
	// Merge tags become longer or shorter; each message is checked again.
	x := card.Card{Title: c.Subject, Body: c.Text, Link: c.Link}
	if c.InApp != nil {
		x.Options = *c.InApp
	}
	for _, text := range []*string{&x.Title, &x.Body, &x.Link} {
		if strings.Contains(*text, "{{") {
			*text = map[bool]string{true: "x"}[text == &x.Title]
		}
	}
	if f := x.Check(); f != nil {
		field := map[string]string{"title": "subject", "body": "text", "link": "link"}[f.Field]
		return c, &ContentError{cmp.Or(field, "in_app."+f.Field), fault("Input " + f.Text)}
	}
	return c, nil
}

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
	if err != nil {
		if d, known := o.unmade(ctx, account, w, err); known {
			o.others[w.Kind].count(d.Result)
			o.report(ctx, account, w, d)
		}
		return
	}
	end, mine := o.claim(ctx, account, w)
	if !mine {
		return
	}
	defer end()
	o.others[w.Kind].count(outbox.ResultSent)
	o.report(ctx, account, w, outbox.Done{Result: outbox.ResultSent, InApp: must.PlainJSON(c)})
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
		if p, err = v.Profile(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		if err := maySend(v, p, mediumInApp); err != nil {
			return err
		}
		key, err = AccountKey(v, account)
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := compile(campaigns.Content{Subject: in.Title, Text: in.Body, Link: in.Link, InApp: &in.Options})
	if err != nil {
		return nil, err
	}
	m := &outgoing{
		content: c, profile: p, send: SealSend(key, w.Send().On(w.Kind)), event: in.Event,
		links: Links{Base: o.opts.PublicURL, Account: account, Key: key, Flow: w.Flow, Step: w.Step},
	}
	return m, c.holes(m.values())
}
