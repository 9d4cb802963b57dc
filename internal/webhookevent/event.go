package webhookevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Names of the events of outbound webhooks.
const (
	EmailSent         = "email.sent"         // handed to the mail server
	EmailDelivered    = "email.delivered"    // the receiving server took it
	EmailOpened       = "email.opened"       // the open pixel was fetched
	EmailClicked      = "email.clicked"      // a tracked link was followed
	EmailBounced      = "email.bounced"      // refused or returned; data.hard says whether for good
	EmailComplained   = "email.complained"   // the recipient called it spam
	EmailUnsubscribed = "email.unsubscribed" // unsubscribed by a link or a mail of a message
	EmailFailed       = "email.failed"       // not handed over, for good

	SMSSent      = "sms.sent"      // handed to the provider
	SMSDelivered = "sms.delivered" // the provider reports it delivered
	SMSFailed    = "sms.failed"    // refused or not deliverable

	WhatsAppSent      = "whatsapp.sent"      // handed to the provider
	WhatsAppDelivered = "whatsapp.delivered" // the provider reports it delivered
	WhatsAppFailed    = "whatsapp.failed"    // refused or not deliverable

	PushSent   = "push.sent"   // the push service took it
	PushFailed = "push.failed" // refused, or the device is gone

	ContactCreated      = "contact.created"      // a contact was created
	ContactUpdated      = "contact.updated"      // fields of a contact changed
	ContactSubscribed   = "contact.subscribed"   // consent to a channel was given
	ContactUnsubscribed = "contact.unsubscribed" // a channel's consent was withdrawn
	ContactErased       = "contact.erased"       // a contact was erased

	ListJoined = "list.joined" // a contact was put on a list
	ListLeft   = "list.left"   // a contact was taken off a list

	SegmentEntered = "segment.entered" // a profile became a member
	SegmentExited  = "segment.exited"  // a profile ceased to be one

	CampaignSent = "campaign.sent" // all messages of a campaign were handed over

	FlowEntered   = "flow.entered"   // a profile was enrolled
	FlowCompleted = "flow.completed" // a profile reached the end
	FlowExited    = "flow.exited"    // a profile left before the end; data.reason tells why

	AnalyticsDaily = "analytics.daily" // the totals of a day that has ended

	EndpointTest = "webhook.test" // sent on request, to try an endpoint
)

// MaxDataBytes bounds the data of a payload.
const MaxDataBytes = 128 << 10

// TypeInfo describes a name of an event.
type TypeInfo struct {
	Name string
	Doc  string // one sentence for users
}

var types = []TypeInfo{
	{EmailSent, "An email was handed to the mail server."},
	{EmailDelivered, "The receiving server took an email."},
	{EmailOpened, "The open pixel of an email was fetched."},
	{EmailClicked, "A tracked link of an email was followed."},
	{EmailBounced, "An email was refused or returned."},
	{EmailComplained, "A recipient reported an email as spam."},
	{EmailUnsubscribed, "A recipient unsubscribed through an email."},
	{EmailFailed, "An email could not be handed over."},
	{SMSSent, "A text message was handed to the provider."},
	{SMSDelivered, "The provider reports a text message as delivered."},
	{SMSFailed, "A text message could not be delivered."},
	{WhatsAppSent, "A WhatsApp message was handed to the provider."},
	{WhatsAppDelivered, "The provider reports a WhatsApp message as delivered."},
	{WhatsAppFailed, "A WhatsApp message could not be delivered."},
	{PushSent, "A push service took a notification."},
	{PushFailed, "A notification was refused or its device is gone."},
	{ContactCreated, "A contact was created."},
	{ContactUpdated, "Fields of a contact changed."},
	{ContactSubscribed, "A contact gave consent to a channel."},
	{ContactUnsubscribed, "A contact withdrew consent on a channel."},
	{ContactErased, "A contact was erased."},
	{ListJoined, "A contact was put on a list."},
	{ListLeft, "A contact was taken off a list."},
	{SegmentEntered, "A profile entered a segment."},
	{SegmentExited, "A profile left a segment."},
	{CampaignSent, "All messages of a campaign were handed over."},
	{FlowEntered, "A profile was enrolled in a flow."},
	{FlowCompleted, "A profile reached the end of a flow."},
	{FlowExited, "A profile left a flow before its end."},
	{AnalyticsDaily, "The totals of a day that has ended."},
	{EndpointTest, "Sent on request, to try an endpoint."},
}

// Types lists all names of events, in the order of the documentation.
func Types() []TypeInfo { return append([]TypeInfo(nil), types...) }

// Known reports whether name is a name of an event.
func Known(name string) bool {
	for _, t := range types {
		if t.Name == name {
			return true
		}
	}
	return false
}

// CheckSubscription judges one entry of an endpoint's list of events: a name, a
// group such as email.*, or * for all. The error names the field.
func CheckSubscription(entry string) error {
	if entry == "*" || Known(entry) {
		return nil
	}
	if group, ok := strings.CutSuffix(entry, ".*"); ok {
		for _, t := range types {
			if strings.HasPrefix(t.Name, group+".") {
				return nil
			}
		}
	}
	return fmt.Errorf("events: %.100q is no event; use a name such as %s, a group such as email.* or *", entry, EmailOpened)
}

// Subscribed reports whether any entry covers the event's name. A test is always
// covered.
func Subscribed(entries []string, name string) bool {
	if name == EndpointTest {
		return true
	}
	for _, e := range entries {
		if e == "*" || e == name {
			return true
		}
		if group, ok := strings.CutSuffix(e, "*"); ok && strings.HasSuffix(group, ".") && strings.HasPrefix(name, group) {
			return true
		}
	}
	return false
}

// Payload is the body of an outbound webhook: {"type", "timestamp", "data"}, always
// the same bytes for the same arguments. at is when the event happened (not when
// it is sent) and is written in RFC 3339, UTC, to the millisecond. data must be a
// JSON object.
func Payload(name string, at time.Time, data json.RawMessage) ([]byte, error) {
	if !Known(name) {
		return nil, fmt.Errorf("webhookevent: payload: unknown event %.100q", name)
	}
	if y := at.UTC().Year(); y < 1 || y > 9999 {
		return nil, fmt.Errorf("webhookevent: payload: a time in the year %d", y)
	}
	if len(data) > MaxDataBytes {
		return nil, fmt.Errorf("webhookevent: payload: data has %d bytes of at most %d", len(data), MaxDataBytes)
	}
	var b bytes.Buffer
	b.Grow(len(data) + 96)
	b.WriteString(`{"type":"`)
	b.WriteString(name)
	b.WriteString(`","timestamp":"`)
	b.WriteString(at.UTC().Format("2006-01-02T15:04:05.000Z"))
	b.WriteString(`","data":`)
	start := b.Len()
	if err := json.Compact(&b, data); err != nil {
		return nil, fmt.Errorf("webhookevent: payload: data: %w", err)
	}
	if b.Len() == start || b.Bytes()[start] != '{' {
		return nil, errors.New("webhookevent: payload: data must be a JSON object")
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
