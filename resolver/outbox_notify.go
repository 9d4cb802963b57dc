package resolver

import (
	"maps"
	"time"

	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// hookNames are the webhook events that the service's own events are told as.
var hookNames = map[string]string{
	"email_sent": webhookevent.EmailSent, "email_delivered": webhookevent.EmailDelivered,
	"email_opened": webhookevent.EmailOpened, "email_clicked": webhookevent.EmailClicked,
	"email_bounced": webhookevent.EmailBounced, "email_soft_bounced": webhookevent.EmailBounced,
	"email_complained": webhookevent.EmailComplained, "email_unsubscribed": webhookevent.EmailUnsubscribed,
	"email_failed": webhookevent.EmailFailed,
	"sms_sent":     webhookevent.SMSSent, "sms_delivered": webhookevent.SMSDelivered, "sms_failed": webhookevent.SMSFailed,
	"whatsapp_sent": webhookevent.WhatsAppSent, "whatsapp_delivered": webhookevent.WhatsAppDelivered, "whatsapp_failed": webhookevent.WhatsAppFailed,
	"push_sent": webhookevent.PushSent, "push_failed": webhookevent.PushFailed,
	typeListJoined: webhookevent.ListJoined, typeListLeft: webhookevent.ListLeft,
	typeSubscribed: webhookevent.ContactSubscribed, typeUnsubscribed: webhookevent.ContactUnsubscribed,
	typeFlowEntered: webhookevent.FlowEntered, typeFlowCompleted: webhookevent.FlowCompleted, typeFlowExited: webhookevent.FlowExited,
}

// notifyWebhooks queues an event of the service's own for the endpoints that subscribed to
// it. The profile's document is in [Machine.doc], as it is whenever a command
// records events.
func (m *Machine) notifyWebhooks(a *account, o uint32, x *ownEvent) {
	if len(a.hooks) == 0 {
		return
	}
	name, ok := hookNames[x.typ]
	if !ok || !a.listens(name) {
		return
	}
	data := make(properties, len(x.properties)+3)
	maps.Copy(data, x.properties)
	switch x.typ {
	case "email_bounced":
		data["hard"] = true
	case "email_soft_bounced":
		data["hard"] = false
	}
	m.notifyProfile(a, o, name, data)
}

// notifyContact tells that a contact was made or changed.
func (m *Machine) notifyContact(a *account, o uint32, name string) {
	if a.listens(name) {
		m.notifyProfile(a, o, name, properties{})
	}
}

// notifyProfile tells of a profile whose document is in [Machine.doc].
func (m *Machine) notifyProfile(a *account, o uint32, name string, data properties) {
	if email := m.doc.Newest(IdentityEmail); len(email) > 0 {
		data["email"] = string(email)
	}
	m.notify(a, o, name, data)
}

// notifyTransition tells that a profile entered or left a segment. Those that a
// definition brings about are not told: nobody did anything.
func (m *Machine) notifyTransition(a *account, t *query.Transition) {
	if len(a.hooks) == 0 || t.Cause == segment.CauseDefinition {
		return
	}
	name := webhookevent.SegmentExited
	if t.Entered {
		name = webhookevent.SegmentEntered
	}
	if !a.listens(name) {
		return
	}
	data := properties{"segment_id": t.Segment, "cause": t.Cause.String()}
	if s := a.segments[t.Segment]; s != nil {
		data["segment_name"] = s.Name
	}
	m.notify(a, t.Ordinal, name, data)
}

// listens tells whether some endpoint subscribed to an event.
func (a *account) listens(name string) bool {
	for _, e := range a.hooks {
		if webhookevent.Subscribed(e.Events, name) {
			return true
		}
	}
	return false
}

// notify queues an event for each endpoint that subscribed to it. Where there is
// no room the endpoint counts what it misses.
func (m *Machine) notify(a *account, o uint32, name string, data properties) {
	if o != NoProfile {
		data["profile_id"] = a.headers.Get(o).ID.String()
	}
	var payload []byte
	for _, e := range a.hooks {
		if !webhookevent.Subscribed(e.Events, name) {
			continue
		}
		if payload == nil {
			payload = m.webhookPayload(name, data)
		}
		full := a.outbox.queued(e.ID) >= maxLane
		if !full {
			_, refusal := m.queue(a, OutboxItem{Kind: OutboxWebhook, Ordinal: o, Endpoint: e.ID, Ref: name}, payload)
			full = refusal != nil
		}
		if full {
			e.Dropped++
			m.counters.WebhooksDropped++
			m.touchEndpoint(a, e)
		}
	}
}

// webhookPayload is the body of a webhook. It is stamped with the log time.
func (m *Machine) webhookPayload(name string, data properties) []byte {
	b := data.encode()
	if b == nil {
		b = []byte("{}")
	}
	out, err := webhookevent.Payload(name, time.UnixMilli(m.logTime), b)
	if err != nil {
		// Our own names and data; too much of it is cut to what identifies it.
		out, err = webhookevent.Payload(name, time.UnixMilli(m.logTime), properties{"profile_id": data["profile_id"], "truncated": true}.encode())
	}
	if err != nil {
		panic(err)
	}
	return out
}
