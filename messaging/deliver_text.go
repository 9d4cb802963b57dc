package messaging

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/inbound"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/outbox"
)

// textMedium sends short texts: SMS, WhatsApp, instant messages.
type textMedium struct {
	channel string
	sender  *text.Sender // nil captures
	capture Capture
	// statusAt is where the service is reached, for reports of Twilio; "" where the account
	// takes none.
	statusAt string
}

// newTextMedium opens the account's provider for a channel; without one, texts
// are captured.
func newTextMedium(o Options, v *resolver.View, channel string) (medium, error) {
	m := &textMedium{channel: channel, capture: o.Capture}
	if hasReports(v) {
		m.statusAt = o.PublicURL
	}
	c, ok := v.Credentials().Get(credentials.Message, channel)
	switch {
	case !ok && o.Capture == nil:
		return nil, fmt.Errorf("no provider is set for %s; set one with PUT /message-providers/%s of the console", channel, channel)
	case !ok:
		return m, nil
	}
	config, err := text.ParseConfig(c.Config)
	if err == nil {
		m.sender, err = text.New(config, o.Text)
	}
	if err != nil {
		return nil, fmt.Errorf("the provider of %s: %w", channel, err)
	}
	return m, nil
}

func (x *textMedium) close() {
	if x.sender != nil {
		x.sender.Close()
	}
}

func (x *textMedium) deliver(ctx context.Context, m *outgoing) (delivery, error) {
	body, err := m.content.TextTemplate.Render(m.values())
	if err != nil {
		return delivery{result: outbox.ResultFailed, reason: err.Error()}, nil
	}
	msg := &text.Message{To: compactPhone(m.profile.Newest(resolver.IdentityPhone)), From: TextSender(m.content.Sender), Body: body, ID: compose.SendText(m.links.Account, m.send)}
	if t := m.content.WhatsApp; t != nil {
		if msg.Template, err = compose.FillTemplate(t, m.values()); err != nil {
			return delivery{result: outbox.ResultFailed, reason: err.Error()}, nil
		}
	}
	if x.statusAt != "" {
		msg.Vars = statusVars(x.statusAt, m.links.Account, msg.ID)
	}
	if x.sender == nil {
		kept := capture.Message{ID: msg.ID, Channel: x.channel, To: msg.To, From: msg.From, Body: msg.Shown(), SendID: msg.ID, At: m.at}
		o, err := m.try(ctx, func(context.Context) outcome.Result { return keep(x.capture, kept) })
		return deliveryOf(o), err
	}
	if err := x.sender.Check(msg); err != nil {
		return delivery{result: outbox.ResultFailed, reason: err.Error()}, nil
	}
	o, err := m.try(ctx, func(ctx context.Context) outcome.Result { return x.sender.Send(ctx, msg) })
	return deliveryOf(o), err
}

// compactPhone writes a number as providers take it: people write them with
// spaces and brackets.
func compactPhone(s string) string {
	plus := strings.HasPrefix(strings.TrimSpace(s), "+")
	s = strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
	if plus {
		return "+" + s
	}
	return s
}

// keep captures a message in place of sending it.
func keep(c Capture, m capture.Message) outcome.Result {
	if _, err := c.Add(m); err != nil {
		return outcome.Failed(outcome.Temporary, "capture", err)
	}
	return outcome.New(outcome.Accepted, "captured", "")
}

// CheckProvider reports what is wrong with the configuration of a provider of
// texts, in JSON.
func CheckProvider(config json.RawMessage, o text.Options) error {
	c, err := text.ParseConfig(config)
	if err != nil {
		return err
	}
	s, err := text.New(c, o)
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

// The dispatcher's data for providers, and the providers' names.
const (
	varStatusURL   = "status_url" // where Twilio reports what became of the message
	providerTwilio = "twilio"
)

// hasReports reports whether an account takes Twilio's reports on messages.
func hasReports(v *resolver.View) bool {
	_, ok := v.Credentials().Get(credentials.Inbound, providerTwilio)
	return ok
}

// statusVars tell Twilio where to report what became of a message; publicURL is where the
// service is reached.
func statusVars(publicURL string, account uint64, id string) map[string]string {
	return map[string]string{varStatusURL: publicURL + "/inbound/" + resolver.AccountID(account) + "/" + providerTwilio + "?" + inbound.SendIDParameter + "=" + id}
}

// TextSender is the sender that a text names, of the sender of its campaign: none, so that it
// is the provider's own, where that is an e-mail address. Campaigns of all channels have the field.
func TextSender(sender string) string {
	if strings.Contains(sender, "@") {
		return ""
	}
	return sender
}
