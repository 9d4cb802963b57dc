package messaging

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/view"
)

// maxPushSamples is for how many devices a dry run asks a push service: what is wrong with
// credentials or a message shows at the first, and merge tags differ from one to another.
const maxPushSamples = 5

// pushSample is a device that a dry run asks its service about.
type pushSample struct {
	profile uint32
	device  view.Device
}

// ValidatePush has push services check a message for devices of a plan, without
// delivering it, where they can: FCM. A device that the service calls dead is no fault of
// the message, and stays. A refusal is a *[resolver.Refusal].
func (d *Dispatcher) ValidatePush(ctx context.Context, account uint64, plan PushPlan, content campaigns.Content) error {
	if len(plan.samples) == 0 {
		return nil
	}
	c, err := compose.Compile(content)
	if err != nil {
		return err
	}
	var m *pushMedium
	messages := make([]*outgoing, 0, len(plan.samples))
	err = d.opts.Node.Read(ctx, account, func(v *resolver.View) error {
		key, err := compose.AccountKey(v, account)
		if err != nil {
			return err
		}
		for _, s := range plan.samples {
			p, err := v.Profiles().Get(v.Profiles().Root(s.profile))
			if err != nil {
				return err
			}
			messages = append(messages, &outgoing{content: c, profile: p, links: compose.Links{Base: d.opts.PublicURL, Account: account, Key: key}})
		}
		m, err = newPushMedium(d.opts.Push, d.opts.Capture, v.Credentials().Of(credentials.Push))
		return err
	})
	if err != nil {
		return err
	}
	defer m.close()
	for i, s := range plan.samples {
		validator, can := m.senders[s.device.Kind].(push.Validator)
		if !can {
			continue
		}
		n, err := messages[i].notification()
		if err != nil {
			return err
		}
		switch r := validator.Validate(ctx, s.device.Address, n); r.Class {
		case outcome.Accepted, outcome.Retired:
		default:
			return &resolver.Refusal{Code: "conflict", Message: fmt.Sprintf("%s does not take the message: %s", s.device.Kind, r.Err())}
		}
	}
	return nil
}
