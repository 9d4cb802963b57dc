package messaging

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/outbox"
)

// emailMedium sends e-mails.
type emailMedium struct {
	mailer Mailer
	keys   map[string][]*email.Key // by sender
}

func newEmailMedium(mailer Mailer, v *resolver.View, contents []campaigns.Content) (medium, error) {
	m := &emailMedium{mailer, map[string][]*email.Key{}}
	for _, c := range contents {
		if d, ok := v.Domains().Get(compose.DomainOf(c.Sender)); ok && d.PrivateKey != "" {
			key, err := email.ParseKey(d.Name, d.Selector, []byte(d.PrivateKey))
			if err != nil {
				return nil, fmt.Errorf("the key of the sender domain %s: %w", d.Name, err)
			}
			m.keys[c.Sender] = []*email.Key{key}
		}
	}
	return m, nil
}

func (x *emailMedium) close() {}

func (x *emailMedium) deliver(ctx context.Context, m *outgoing) (delivery, error) {
	msg, err := m.content.Email(m.links, m.profile, m.send, m.campaign, m.at, x.keys[m.content.Sender])
	if err == nil {
		err = msg.Validate()
	}
	if err != nil {
		// What one recipient's values made of the message is no reason to stop.
		d := delivery{result: outbox.ResultFailed, reason: err.Error()}
		if email.Invalid(err).Hard {
			d.result = outbox.ResultBounced
		}
		return d, nil
	}
	o, err := m.try(ctx, func(ctx context.Context) outcome.Result { return x.mailer.Send(ctx, msg) })
	return deliveryOf(o), err
}
