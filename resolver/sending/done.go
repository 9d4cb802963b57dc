package resolver

import (
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// maxErrorText bounds what is kept of why a message was not sent, in bytes.
const maxErrorText = 500

// doneOutbox removes an item, lets it wait, or makes it a dead letter. What is
// reported twice counts once.
func (m *Machine) doneOutbox(cmd *command, c outbox.Done) *Refusal {
	a := cmd.account
	it := a.outbox.Find(c.Seq, c.Ordinal, c.ItemName)
	if it == nil || it.Attempt != c.Attempt {
		return nil
	}
	if r := m.checkOutcome(c.Epoch, c.Result); r != nil {
		return r
	}
	if len(c.Reason) > maxErrorText {
		c.Reason = c.Reason[:maxErrorText]
	}
	if it.Kind == outbox.KindWebhook {
		return a.outbox.DoneWebhook(m.tx(a), it, &c)
	}
	switch c.Result {
	case outbox.ResultRetry:
		a.outbox.Retry(m.tx(a), it, c.DelayMs)
	case outbox.ResultSent, outbox.ResultFailed, outbox.ResultBounced, outbox.ResultRefused, outbox.ResultMoot:
		a.outbox.Remove(it)
		if c.Result != outbox.ResultSent && !c.Handed {
			m.giveBack(a, it.Kind, 1)
		}
		switch {
		case it.Kind == outbox.KindCall:
			a.flows.Answer(it.Flow, it.Ordinal, it.Seq, c.Result == outbox.ResultSent, c.Reason)
		case c.Result != outbox.ResultMoot && it.Ordinal != outbox.NoProfile:
			m.recordSend(cmd, it, &c)
		}
	default:
		return invalid("result", "result Input should be sent, failed, bounced, refused, retry or moot")
	}
	return nil
}

// recordSend records on its profile what became of a message.
func (m *Machine) recordSend(cmd *command, it *outbox.Item, c *outbox.Done) {
	a := cmd.account
	o := a.profiles.Root(it.Ordinal)
	if err := a.profiles.Load(o, &m.resolution.Doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	d := &m.resolution.Doc
	event := feature.Event{Properties: feature.Properties{"message_id": messages.OutboxSend(it.Origin, it.Ordinal).Text(a.number)}}
	if it.Ref == messages.RefConfirmation {
		event.Properties["purpose"] = it.Ref
	} else if it.Ref != "" {
		event.Properties["template_id"] = it.Ref
	}
	if it.Flow != "" {
		event.Properties["flow_id"], event.Properties["step_id"] = it.Flow, it.Step
	}
	cmd.noteDomain(event.Properties, it.Kind, d)
	if c.Result == outbox.ResultSent && c.ProviderID != "" {
		event.Properties["provider_id"] = c.ProviderID
	}
	fields := m.noteResult(d, &event, it.Kind, c.Result, c.Reason)
	m.updateProfile(cmd, o, d, fields, event)
}

// The events that sending records, by medium.
func sentType(medium string) string    { return medium + "_sent" }
func failedType(medium string) string  { return medium + "_failed" }
func bouncedType(medium string) string { return medium + "_bounced" }

// noteResult notes in a profile's document what became of a message to it, and completes
// the event that records it. Results are those of the outbox, and of campaigns, which are
// the same. It returns what changed of the profile.
func (m *Machine) noteResult(d *profile.Document, event *feature.Event, medium, result, reason string) (fields engine.Fields) {
	if result == outbox.ResultSent {
		d.Engaged.Sent++
		d.Engaged.LastSentMs = m.logTime
		event.Type = sentType(medium)
		return engine.FieldEngagement
	}
	event.Type = failedType(medium)
	event.Properties["reason"] = reason
	if result == outbox.ResultBounced {
		event.Type = bouncedType(medium)
		if channel, r := contacts.ChannelOf(medium); r == nil && d.Block(profile.Block{Channel: channel, Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields = engine.FieldConsents
		}
	}
	return fields
}

// giveBack returns the credit of a message that no relay has taken: a credit is
// for a message that went out, or may have.
func (m *Machine) giveBack(a *account, medium string, n uint64) {
	if medium == "email" && n > 0 {
		a.EmailCredits += int64(n)
		m.saveNumbers(a)
	}
}
