package resolver

import (
	"maps"

	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
)

// hookNames are the webhook events that the service's own events are sent as.
var hookNames = map[string]string{
	"email_sent": webhookevent.EmailSent, "email_delivered": webhookevent.EmailDelivered,
	"email_opened": webhookevent.EmailOpened, "email_clicked": webhookevent.EmailClicked,
	"email_bounced": webhookevent.EmailBounced, "email_soft_bounced": webhookevent.EmailBounced,
	"email_complained": webhookevent.EmailComplained, "email_unsubscribed": webhookevent.EmailUnsubscribed,
	"email_failed": webhookevent.EmailFailed,
	"sms_sent":     webhookevent.SMSSent, "sms_delivered": webhookevent.SMSDelivered, "sms_failed": webhookevent.SMSFailed,
	"whatsapp_sent": webhookevent.WhatsAppSent, "whatsapp_delivered": webhookevent.WhatsAppDelivered, "whatsapp_failed": webhookevent.WhatsAppFailed,
	"push_sent": webhookevent.PushSent, "push_failed": webhookevent.PushFailed,
	contacts.EventListJoined: webhookevent.ListJoined, contacts.EventListLeft: webhookevent.ListLeft,
	contacts.EventSubscribed: webhookevent.ContactSubscribed, contacts.EventUnsubscribed: webhookevent.ContactUnsubscribed,
	automation.EventEntered: webhookevent.FlowEntered, automation.EventCompleted: webhookevent.FlowCompleted, automation.EventExited: webhookevent.FlowExited,
}

// notifyWebhooks queues an event of the service's own for the endpoints that subscribed to
// it. The profile's document is in [resolution.Work], as it is whenever a command
// records events.
func (m *Machine) notifyWebhooks(a *account.State, o uint32, x *feature.Event) {
	if !a.Outbox.Listening() {
		return
	}
	name, ok := hookNames[x.Type]
	if !ok || !a.Outbox.Listens(name) {
		return
	}
	data := make(feature.Properties, len(x.Properties)+3)
	maps.Copy(data, x.Properties)
	switch x.Type {
	case "email_bounced":
		data["hard"] = true
	case "email_soft_bounced":
		data["hard"] = false
	}
	m.notifyProfile(a, o, name, data)
}

// notifyContact queues the event that a contact was made or changed.
func (m *Machine) notifyContact(a *account.State, o uint32, name string) {
	if a.Outbox.Listens(name) {
		m.notifyProfile(a, o, name, feature.Properties{})
	}
}

// notifyProfile queues an event of a profile whose document is in [resolution.Work].
func (m *Machine) notifyProfile(a *account.State, o uint32, name string, data feature.Properties) {
	if email := m.tx.profiles.Doc.Newest(IdentityEmail); len(email) > 0 {
		data["email"] = string(email)
	}
	m.notify(a, o, name, data)
}

// notifyTransition queues the event that a profile entered or left a segment. A change of
// a definition queues none: no profile changed.
func (m *Machine) notifyTransition(a *account.State, t *query.Transition) {
	if !a.Outbox.Listening() || t.Cause == segment.CauseDefinition {
		return
	}
	name := webhookevent.SegmentExited
	if t.Entered {
		name = webhookevent.SegmentEntered
	}
	if !a.Outbox.Listens(name) {
		return
	}
	data := feature.Properties{"segment_id": t.Segment, "cause": t.Cause.String()}
	if s := a.Segments[t.Segment]; s != nil {
		data["segment_name"] = s.Name
	}
	m.notify(a, t.Ordinal, name, data)
}

// notify queues an event for each endpoint that subscribed to it.
func (m *Machine) notify(a *account.State, o uint32, name string, data feature.Properties) {
	if !a.Outbox.Listening() {
		return
	}
	if o != outbox.NoProfile {
		data["profile_id"] = a.Profiles.Headers.Get(o).ID.String()
	}
	a.Outbox.Notify(m.tx.on(a), o, name, data)
}

// deleteWebhook removes an endpoint. A task removes what waits for it.
func (m *Machine) deleteWebhook(tx *transaction, c outbox.WebhookRef) *Refusal {
	if len(m.tasks) >= maxPendingTasks {
		return atLimit("", "webhooks were deleted too often in a row; try again in a moment")
	}
	a := tx.account
	refusal := a.Outbox.DeleteWebhook(tx.on(a), c)
	if refusal == nil {
		m.enqueue(task{Account: a.Number, Endpoint: c.ID})
	}
	return refusal
}
