package sending

import (
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// maxErrorText bounds what is kept of why a message was not sent, in bytes.
const maxErrorText = 500

// doneOutbox removes an item, lets it wait, or makes it a dead letter. What is
// reported twice counts once.
func (s *State) doneOutbox(tx *feature.Tx, c outbox.Done) *refuse.Refusal {
	s.host.NoteOutcome(c.Ordinal) // also where its item is gone, as an erased profile's is
	it := s.outbox.Find(c.Seq, c.Ordinal, c.ItemName)
	if it == nil || it.Attempt != c.Attempt {
		return nil
	}
	if r := s.host.CheckOutcome(c.Epoch, c.Result); r != nil {
		return r
	}
	if len(c.Reason) > maxErrorText {
		c.Reason = c.Reason[:maxErrorText]
	}
	if it.Kind == outbox.KindWebhook {
		return s.outbox.DoneWebhook(tx, it, &c)
	}
	switch c.Result {
	case outbox.ResultRetry:
		s.outbox.Retry(tx, it, &c)
	case outbox.ResultSent, outbox.ResultFailed, outbox.ResultBounced, outbox.ResultRefused, outbox.ResultMoot:
		payload := s.payloadOfFlow(it, &c)
		s.outbox.Remove(it)
		if c.Result != outbox.ResultSent && !c.Handed && !it.Handed {
			s.host.GiveBack(it.Kind, 1)
			s.host.Uncount(it)
		}
		switch {
		case it.Kind == outbox.KindCall:
			s.host.Answer(it, c.Result == outbox.ResultSent, c.Reason)
		case c.Result != outbox.ResultMoot && it.Ordinal != outbox.NoProfile:
			s.recordSend(tx, it, &c)
			switch {
			case payload != nil:
				s.host.NextChannel(it, payload)
			case it.Flow != "" && c.Result != outbox.ResultSent:
				s.host.MessageFailed(it)
			}
		}
	default:
		return refuse.Invalid("result", "result Input should be sent, failed, bounced, refused, retry or moot")
	}
	return nil
}

// payloadOfFlow is the payload of a message of a flow that another channel may take the
// place of, nil of any other.
func (s *State) payloadOfFlow(it *outbox.Item, c *outbox.Done) []byte {
	if it.Flow == "" || it.Handed || c.Handed || !c.Unreachable || c.Result == outbox.ResultSent {
		return nil
	}
	payload, err := s.outbox.Payload(it.Origin)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return payload
}

// recordSend records on its profile what became of a message.
func (s *State) recordSend(tx *feature.Tx, it *outbox.Item, c *outbox.Done) {
	o := s.profiles.Root(it.Ordinal)
	if err := s.profiles.Load(o, &s.profiles.Doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	d := &s.profiles.Doc
	event := feature.Event{Properties: feature.Properties{"message_id": messages.OutboxSend(it.Origin, it.Ordinal).Text(s.account)}}
	if it.Ref == messages.RefConfirmation {
		event.Properties["purpose"] = it.Ref
	} else if it.Ref != "" {
		event.Properties["template_id"] = it.Ref
	}
	if it.Flow != "" {
		event.Properties["flow_id"], event.Properties["step_id"] = it.Flow, it.Step
	}
	s.NoteDomain(event.Properties, it.Kind, d)
	if c.Result == outbox.ResultSent && c.ProviderID != "" {
		event.Properties["provider_id"] = c.ProviderID
	}
	if c.Result == outbox.ResultSent && it.Kind == outbox.KindInApp {
		s.host.Deliver(it, o, c.InApp)
	}
	fields := s.NoteResult(tx, d, &event, it.Kind, c.Result, c.Reason)
	retired := s.host.DropDevices(o, d, c.Retired)
	if len(retired) > 0 {
		fields |= engine.FieldDevices
	}
	s.host.Update(o, d, fields, append([]feature.Event{event}, retired...)...)
}

// The events that sending records, by medium.
func sentType(medium string) string    { return medium + "_sent" }
func failedType(medium string) string  { return medium + "_failed" }
func bouncedType(medium string) string { return medium + "_bounced" }

// NoteResult notes in a profile's document what became of a message to it, and completes
// the event that records it. Results are those of the outbox, and of campaigns, which are
// the same. It returns what changed of the profile.
func (s *State) NoteResult(tx *feature.Tx, d *profile.Document, event *feature.Event, medium, result, reason string) (fields engine.Fields) {
	if result == outbox.ResultSent {
		d.Engaged.Sent++
		d.Engaged.LastSentMs = tx.AtMs
		event.Type = sentType(medium)
		return engine.FieldEngagement
	}
	event.Type = failedType(medium)
	event.Properties["reason"] = reason
	if result == outbox.ResultBounced {
		event.Type = bouncedType(medium)
		if channel, r := contacts.ChannelOf(medium); r == nil && d.Suppress(profile.Suppression{Channel: channel, Reason: profile.SuppressionBounced, SinceMs: tx.AtMs}, tx.Rules) {
			fields = engine.FieldConsents
		}
	}
	return fields
}
