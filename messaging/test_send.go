package messaging

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// testMark is what the subject of a test begins with, or its text where there is none.
const testMark = "[Test] "

// testHeader tells mail programs that a message is a test.
const testHeader = "X-Muster-Test"

// Tester hands over what a campaign would send, as a test.
type Tester struct {
	content campaigns.Content
	texts   compose.Rendered
	account uint64
	medium  medium
	// template is what is sent by WhatsApp in place of a text.
	template *whatsapp.Template
}

// NewTest prepares a test of what a campaign sends on its channel, rendered for a person,
// who may be a zero [view.Profile]. It must be closed. A fault of the content is a
// [*compose.ContentError], a channel that nothing can be sent on a *[resolver.Refusal].
func (d *Dispatcher) NewTest(v *resolver.View, account uint64, x *campaigns.Campaign, content campaigns.Content, p *view.Profile) (*Tester, error) {
	if x.Medium() == compose.MediumPush {
		return nil, &resolver.Refusal{Code: "conflict", Message: "a push message goes to devices and not to addresses: check it with POST /push/send and dryRun"}
	}
	if x.Medium() == compose.MediumInApp {
		return nil, &resolver.Refusal{Code: "conflict", Message: "an in-app message goes to an inbox and not to addresses: send the campaign to a list of test contacts"}
	}
	if _, err := compose.PrepareCampaign(x, content); err != nil {
		return nil, err
	}
	if x.Medium() == compose.MediumEmail {
		if err := v.Domains().MayBeSender(content.Sender); err != nil {
			return nil, err
		}
	} else {
		content.Sender = x.Sender // a number or a name
	}
	company := v.CompanyState().Name
	texts, err := compose.RenderCampaign(x, content, p, company)
	if err != nil {
		return nil, err
	}
	var template *whatsapp.Template
	if content.WhatsApp != nil {
		if template, err = compose.FillTemplate(content.WhatsApp, compose.SampleValues(p, company, nil)); err != nil {
			return nil, &compose.ContentError{Field: "whatsapp", Err: err}
		}
	}
	m, err := d.medium(v, x.Medium(), []campaigns.Content{content})
	if err != nil {
		return nil, &resolver.Refusal{Code: "conflict", Message: err.Error()}
	}
	return &Tester{content, texts, account, m, template}, nil
}

// Close ends the use of the channel's provider.
func (t *Tester) Close() { t.medium.close() }

// Rendered are the texts as they are sent, with the mark of a test. A template of WhatsApp
// has none: it is sent as it was approved.
func (t *Tester) Rendered() compose.Rendered {
	r := t.texts
	switch {
	case t.isEmail():
		r.Subject = testMark + r.Subject
	case t.template == nil:
		r.Text = testMark + r.Text
	}
	return r
}

func (t *Tester) isEmail() bool { _, is := t.medium.(*emailMedium); return is }

// Send hands the message over to one address, once; id is a [messages.TestSend]. Nothing
// is recorded: it counts nowhere, costs no credit, and its links are those of the author.
func (t *Tester) Send(ctx context.Context, id messages.ID, to string, at time.Time) (outcome.Result, error) {
	r := t.Rendered()
	name := compose.SendText(t.account, id)
	switch m := t.medium.(type) {
	case *emailMedium:
		msg := &email.Message{
			ID: compose.MessageID(t.account, hex.EncodeToString(id[:]), t.content.Sender), SendID: name, Date: at, From: email.Address{Name: r.SenderName, Addr: t.content.Sender},
			ReplyTo: email.Address{Addr: t.content.ReplyTo}, To: email.Address{Addr: to}, Subject: r.Subject, HTML: r.HTML, Text: r.Text,
			Headers: []email.Header{{Name: testHeader, Value: "1"}}, Keys: m.keys[t.content.Sender],
		}
		if err := msg.Validate(); err != nil {
			return outcome.Failed(outcome.Permanent, "invalid_message", err), nil
		}
		return m.mailer.Send(ctx, msg), nil
	case *textMedium:
		msg := &text.Message{To: compactPhone(to), From: TextSender(t.content.Sender), Body: r.Text, ID: name, Template: t.template}
		if m.sender == nil {
			return keep(m.capture, capture.Message{ID: msg.ID, Channel: m.channel, To: msg.To, From: msg.From, Body: msg.Shown(), SendID: name, At: at}), nil
		}
		if err := m.sender.Check(msg); err != nil {
			return outcome.Failed(outcome.Permanent, "invalid_message", err), nil
		}
		return m.sender.Send(ctx, msg), nil
	}
	return outcome.Result{}, fmt.Errorf("send a test: no such channel: %T", t.medium)
}
