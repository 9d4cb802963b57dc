package messaging

import (
	"context"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/outbox"
)

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
	if c.Title, err = m.content.SubjectTemplate.Render(values); err != nil {
		return c, err
	}
	if c.Body, err = m.content.TextTemplate.Render(values); err != nil {
		return c, err
	}
	if c.Link, err = m.content.LinkTemplate.Render(values); err != nil {
		return c, err
	}
	if f := c.Check(); f != nil {
		return c, f
	}
	return c, nil
}
