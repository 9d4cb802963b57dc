package messaging

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// Capture keeps the messages of channels without a provider: a [*capture.Store].
type Capture interface {
	Add(m capture.Message) (attempts int, err error)
}

// medium sends a campaign's messages on one channel. It is used by several
// workers at once.
type medium interface {
	// deliver renders one message and hands it over, again while that fails for a
	// while only. An error means that nothing is known and the run ends.
	deliver(ctx context.Context, m *outgoing) (delivery, error)
	close()
}

// outgoing is one message to be made and sent.
type outgoing struct {
	content *compose.Compiled
	profile *view.Profile
	send    messages.ID
	links   compose.Links
	// campaign is the campaign's id, "" for messages of other kinds.
	campaign string
	// event is what started the flow that the message is of, a JSON object or empty.
	event json.RawMessage
	// at is the time it says it was sent, the same at every repeat.
	at time.Time
	// try repeats an attempt while that fails for a while only.
	try func(ctx context.Context, attempt func(context.Context) outcome.Result) (outcome.Result, error)
}

// delivery is the outcome of a message.
type delivery struct {
	result string // as of a campaigns.Result
	reason string
	// devices and accepted are numbers of devices, retired their dead addresses;
	// for push.
	devices, accepted uint64
	retired           []string
	// card is an in-app message that was made, as JSON.
	card []byte
	// optedOut: the provider says that the recipient wants nothing more.
	optedOut bool
	// handed: it failed, but went out in full and may have been taken.
	handed bool
	// err is the fault when it was for a while only.
	err error
}

// unreachable reports whether the message cannot reach the recipient on this channel, and has
// not gone out: another attempt, by whomever, would fail alike.
func (d *delivery) unreachable() bool {
	return d.result != outbox.ResultSent && d.result != outbox.ResultRefused && !d.handed && d.err == nil
}

// deliveryOf is the delivery of a message that goes to one address.
func deliveryOf(o outcome.Result) delivery {
	d := delivery{result: outbox.ResultFailed}
	if o.OK() {
		d.result = outbox.ResultSent
		return d
	}
	d.reason, d.optedOut, d.handed = o.Err().Error(), o.OptedOut, o.Class == outcome.Ambiguous
	switch {
	case o.Class == outcome.Refused:
		d.result = outbox.ResultRefused
	case o.Class == outcome.Permanent && o.Hard:
		d.result = outbox.ResultBounced
	case o.Class == outcome.Temporary:
		d.err = o.Err()
	}
	return d
}

// values answers the merge tags of a message: the recipient's links, and what is
// known of the profile.
func (m *outgoing) values() func(path []string) (string, bool) {
	return compose.EventValues(m.event, m.content.Values(m.links, m.profile, m.send))
}

// channelCounters count messages of one channel.
type channelCounters struct{ sent, failed, retried *metrics.Counter }

func newChannelCounters(set *metrics.Set, channel string) channelCounters {
	counter := func(format string) *metrics.Counter { return set.GetOrCreateCounter(fmt.Sprintf(format, channel)) }
	return channelCounters{
		counter(`muster_messages_total{channel=%q,result="sent"}`),
		counter(`muster_messages_total{channel=%q,result="failed"}`),
		counter(`muster_message_retries_total{channel=%q}`),
	}
}

// count counts a message by what became of it.
func (c *channelCounters) count(result string) {
	switch result {
	case outbox.ResultSent:
		c.sent.Inc()
	case outbox.ResultRetry:
		c.retried.Inc()
	case outbox.ResultMoot:
	default:
		c.failed.Inc()
	}
}

// medium opens the medium of a campaign.
func (d *Dispatcher) medium(v *resolver.View, name string, contents []campaigns.Content) (medium, error) {
	switch name {
	case compose.MediumEmail:
		return newEmailMedium(d.opts.Mailer, v, contents)
	case compose.MediumPush:
		return newPushMedium(d.opts.Push, d.opts.Capture, v.Credentials().Of(credentials.Push))
	case compose.MediumInApp:
		return inAppMedium{}, nil
	}
	return newTextMedium(d.opts, v, name)
}
