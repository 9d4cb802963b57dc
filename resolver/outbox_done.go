package resolver

import (
	"encoding/hex"
	"fmt"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// CommandOutboxDone reports what became of an item of the outbox.
const CommandOutboxDone = "outbox.done.2"

// Further results of an attempt, beside those of campaigns.
const (
	// ResultRetry: it did not work this time; the item is due again after DelayMs.
	ResultRetry = "retry"
	// ResultGone: the receiver of a webhook wants no more; the endpoint rests.
	ResultGone = "gone"
	// ResultMoot: there is no reason any more to carry it out. Nothing is
	// recorded, and what it cost is given back.
	ResultMoot = "moot"
)

// OutboxDone reports one attempt.
type OutboxDone struct {
	Seq uint64 `json:"seq"`
	// Attempt is the item's when the attempt began: what reports another one
	// changes nothing.
	Attempt int    `json:"attempt"`
	Result  string `json:"result"`
	Reason  string `json:"reason,omitempty"`
	// Handed says that a message that failed went out in full and may have been
	// taken: the answer was lost.
	Handed bool `json:"handed,omitempty"`
	// DelayMs is how long to wait before the next attempt. The dispatcher draws
	// it: Apply has no randomness.
	DelayMs int64 `json:"delay_ms,omitempty"`
	// ProviderID is the provider's own id of the message.
	ProviderID string `json:"provider_id,omitempty"`
	// Epoch is the one under which the item was claimed. When it is over, only that
	// something was sent is taken note of.
	Epoch uint64 `json:"epoch,omitempty"`
	// Ordinal and ItemName are the item's. They say which it is where its number is
	// another's in a replay.
	Ordinal uint32 `json:"ordinal,omitempty"`
	ItemName
	// Log is what the log of deliveries keeps of the attempt, nil for nothing.
	Log *DeliveryAnswer `json:"log,omitempty"`
}

// doneOutbox removes an item, lets it wait, or makes it a dead letter. What is
// reported twice counts once.
func (m *Machine) doneOutbox(cmd *command, c OutboxDone) *Refusal {
	a := cmd.account
	it := a.outbox.item(c.Seq, c.Ordinal, c.ItemName)
	if it == nil || it.Attempt != c.Attempt {
		return nil
	}
	if r := m.checkOutcome(c.Epoch, c.Result); r != nil {
		return r
	}
	if len(c.Reason) > maxErrorText {
		c.Reason = c.Reason[:maxErrorText]
	}
	if it.Kind == OutboxWebhook {
		return m.doneWebhook(a, it, &c)
	}
	switch c.Result {
	case ResultRetry:
		m.retryItem(a, it, c.DelayMs)
	case ResultSent, ResultFailed, ResultBounced, ResultRefused, ResultMoot:
		m.unqueue(a, it, false)
		if c.Result != ResultSent && !c.Handed {
			m.giveBack(a, it.Kind, 1)
		}
		switch {
		case it.Kind == OutboxCall:
			m.answerFlow(cmd, it, c.Result == ResultSent, c.Reason)
		case c.Result != ResultMoot && it.Ordinal != NoProfile:
			m.recordSend(cmd, it, &c)
		}
	default:
		return invalid("result", "result Input should be sent, failed, bounced, refused, retry or moot")
	}
	return nil
}

func (m *Machine) retryItem(a *account, it *OutboxItem, delayMs int64) {
	it.Attempt++
	a.outbox.postpone(it, m.logTime+min(max(delayMs, 0), maxOutboxDelay))
	m.saveItem(a, it)
}

// recordSend records on its profile what became of a message.
func (m *Machine) recordSend(cmd *command, it *OutboxItem, c *OutboxDone) {
	a := cmd.account
	o := a.root(it.Ordinal)
	if err := m.load(a, o, &m.doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	d := &m.doc
	event := ownEvent{failedType(it.Kind), properties{"message_id": it.Send().Text(a.number)}}
	if it.Ref == RefConfirmation {
		event.properties["purpose"] = it.Ref
	} else if it.Ref != "" {
		event.properties["template_id"] = it.Ref
	}
	if it.Flow != "" {
		event.properties["flow_id"], event.properties["step_id"] = it.Flow, it.Step
	}
	cmd.noteDomain(event.properties, it.Kind, d)
	fields := engine.Fields(0)
	switch c.Result {
	case ResultSent:
		d.Engaged.Sent++
		d.Engaged.LastSentMs = m.logTime
		fields |= engine.FieldEngagement
		event.typ = sentType(it.Kind)
		if c.ProviderID != "" {
			event.properties["provider_id"] = c.ProviderID
		}
	case ResultBounced:
		event.typ = bouncedType(it.Kind)
		event.properties["reason"] = c.Reason
		if channel, r := channelOf(it.Kind); r == nil && d.Block(profile.Block{Channel: channel, Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
		}
	default:
		event.properties["reason"] = c.Reason
	}
	m.updateProfile(cmd, o, d, fields, event)
}

// doneWebhook notes how an endpoint does.
func (m *Machine) doneWebhook(a *account, it *OutboxItem, c *OutboxDone) *Refusal {
	e := a.endpoints[it.Endpoint]
	if e == nil {
		m.unqueue(a, it, false) // the endpoint was deleted meanwhile
		return nil
	}
	switch c.Result {
	case ResultSent:
		m.unqueue(a, it, m.logDelivery(a, it, c, DeliveryDelivered, 0))
		e.Delivered++
		e.Failing, e.LastError, e.LastDeliveredMs = 0, "", m.logTime
		m.touchEndpoint(a, e)
		return nil
	case ResultMoot:
		m.unqueue(a, it, false)
		if x := a.outbox.line(it.Endpoint, it.Origin); x != nil {
			m.forgetDelivery(a, it.Endpoint, x, true)
		}
		return nil
	case ResultRetry:
		m.retryItem(a, it, c.DelayMs)
		m.logDelivery(a, it, c, DeliveryWaiting, 0)
	case ResultFailed, ResultRefused:
		m.logDelivery(a, it, c, DeliveryFailed, m.die(a, it, c.Reason))
	case ResultGone:
		m.logDelivery(a, it, c, DeliveryFailed, m.die(a, it, c.Reason))
		e.Status = EndpointGone
		a.outbox.setLane(e)
		m.refreshHooks(a)
	default:
		return invalid("result", "result Input should be sent, failed, refused, gone, retry or moot")
	}
	e.Failures++
	e.Failing++
	e.LastError, e.LastFailedMs = c.Reason, m.logTime
	m.touchEndpoint(a, e)
	return nil
}

// Text is the id as headers, providers and clients carry it.
func (id SendID) Text(account uint64) string {
	return fmt.Sprintf("%016x-%s", account, hex.EncodeToString(id[:]))
}
