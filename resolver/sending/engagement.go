package resolver

import (
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/segment/engine"
)

// writtenPrecisionMs is how precisely providers say when a text was written.
const writtenPrecisionMs = 1000

var engagementTypes = map[string]string{
	messages.EngagementOpen: "opened", messages.EngagementClick: "clicked", messages.EngagementDelivery: "delivered", messages.EngagementBounce: "bounced",
	messages.EngagementSoftBounce: "soft_bounced", messages.EngagementComplaint: "complained", messages.EngagementUnsubscribed: "unsubscribed",
	messages.EngagementSubscribed: "subscribed", messages.EngagementFailed: "failed",
}

// engagementFigures are what campaigns count of kinds of engagement.
var engagementFigures = map[string]string{
	messages.EngagementOpen: campaigns.Opened, messages.EngagementClick: campaigns.Clicked, messages.EngagementDelivery: campaigns.Delivered, messages.EngagementBounce: campaigns.Bounced,
	messages.EngagementComplaint: campaigns.Complained, messages.EngagementUnsubscribed: campaigns.Unsubscribed, messages.EngagementFailed: campaigns.Bounced,
}

// recordEngagement counts, blocks and unsubscribes as the kind demands, and
// records an event.
func (m *Machine) recordEngagement(cmd *command, c messages.EngagementRecord) *Refusal {
	a := cmd.account
	verb, known := engagementTypes[c.Kind]
	if !known {
		return invalid("kind", "kind Input should be open, click, delivery, bounce, soft_bounce, complaint or unsubscribe")
	}
	channel, refusal := contacts.ChannelOf(c.Channel)
	if refusal != nil {
		return refusal
	}
	// Before the key: a repeat gets the same answer.
	if c.Kind == messages.EngagementSubscribed && c.WrittenMs != 0 && c.Profile != "" {
		switch _, d, refusal := m.profileOf(a, c.Profile); {
		case refusal != nil:
			return refusal
		case unsubscribedAfter(d, channel, c.WrittenMs):
			return &Refusal{Code: "conflict", Field: "written_ms", Message: "the person unsubscribed after this text was written"}
		}
	}
	if c.Key != "" {
		h := a.profiles.Hasher.HashIdempotencyKey([]byte("engagement\x00"+c.Key), &m.normal)
		switch v, ok, err := m.keys.Get(h); {
		case err != nil:
			panic(err) // the store is at fault; the record is named
		case ok && v.AtMs > a.keysFromMs(m.logTime):
			return nil
		}
		defer func() {
			if cmd.out.Refusal == nil {
				m.keys.Put(h, dedup.Answer{AtMs: m.logTime, Ordinal: 0})
			}
		}()
	}
	var x campaigns.Campaign // none when it was deleted, or of another message
	o, variant := profile.NoOrdinal, 0
	if number, ordinal, v, ok := c.Send.Campaign(); ok && number < a.NextCampaign && ordinal < a.profiles.Headers.Count {
		x, _ = a.campaigns.ByNumber(number)
		o, variant = a.profiles.Root(ordinal), v
	}
	messageID := ""
	if origin, ordinal, ok := c.Send.Outbox(); ok && ordinal < a.profiles.Headers.Count {
		o = a.profiles.Root(ordinal)
		messageID = messages.OutboxSend(origin, ordinal).Text(a.number)
	}
	if o == profile.NoOrdinal {
		if o, _, refusal = m.profileOf(a, c.Profile); refusal != nil {
			return refusal
		}
	} else if a.profiles.Gone(o) {
		a.erasure.NoteRefused()
		return noProfile()
	} else if err := a.profiles.Load(o, &m.resolution.Doc); err != nil {
		panic(err)
	}
	d := &m.resolution.Doc
	suspect := c.Agent == messages.AgentPrefetch || c.Agent == messages.AgentMachine
	event := feature.NewEvent(c.Channel+"_"+verb, feature.Properties{})
	for _, p := range [...]struct{ name, value string }{{"url", c.URL}, {"agent", c.Agent}, {"reason", c.Reason}, {"source", c.Source},
		{"message_id", messageID}, {"flow_id", c.Flow}, {"step_id", c.Step}} {
		if p.value != "" {
			event.Properties[p.name] = p.value
		}
	}
	cmd.noteDomain(event.Properties, c.Channel, d)
	if a.campaigns.Started(x.ID) {
		event.Properties["campaign_id"], event.Properties["campaign_name"] = x.ID, x.Name
		if !suspect {
			a.campaigns.CountEngagement(x.ID, o, variant, engagementFigures[c.Kind], c.Link)
		}
	}
	fields := engine.Fields(0)
	var also []feature.Event
	switch c.Kind {
	case messages.EngagementOpen:
		if suspect {
			break
		}
		d.SoftBounces = d.SoftBounces[:0]
		d.Engaged.Opened++
		d.Engaged.LastOpenMs = m.logTime
		fields |= engine.FieldEngagement
	case messages.EngagementClick:
		if suspect {
			break
		}
		d.SoftBounces = d.SoftBounces[:0]
		d.Engaged.Clicked++
		d.Engaged.LastClickMs = m.logTime
		fields |= engine.FieldEngagement
	case messages.EngagementBounce:
		if d.Block(profile.Block{Channel: channel, Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
		}
	case messages.EngagementSoftBounce:
		if channel == profile.ChannelEmail && d.SoftBounce(m.logTime) && d.Block(profile.Block{Channel: channel, Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
			also = append(also, feature.NewEvent(contacts.EventSuppressed, feature.Properties{"channel": c.Channel, "reason": profile.BlockBounced.String(), "source": "soft bounces"}))
		}
	case messages.EngagementComplaint:
		if d.Block(profile.Block{Channel: channel, Reason: profile.BlockComplained, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
		}
	case messages.EngagementUnsubscribed:
		if contacts.Record(d, m.logTime, channel, profile.ConsentUnsubscribed, c.Source) {
			fields |= engine.FieldConsents
		}
		if d.Unblock(channel, profile.BlockPending) {
			fields |= engine.FieldConsents
		}
	case messages.EngagementSubscribed:
		event = feature.NewEvent(contacts.EventSubscribed, feature.Properties{"channel": c.Channel, "source": c.Source})
		if !contacts.Record(d, m.logTime, channel, profile.ConsentSubscribed, c.Source) {
			if contacts.Say(d, m.logTime, channel, c.Source) {
				a.profiles.Save(o, d)
			}
			return nil
		}
		fields |= engine.FieldConsents
	case messages.EngagementFailed:
		if c.Hard && d.Block(profile.Block{Channel: channel, Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
		}
	}
	m.updateProfile(cmd, o, d, fields, append([]feature.Event{event}, also...)...)
	return nil
}

// unsubscribedAfter reports whether a person unsubscribed from a channel after a text was
// written.
func unsubscribedAfter(d *profile.Document, channel byte, writtenMs int64) bool {
	c := d.ConsentOf(channel)
	return c != nil && c.Status == profile.ConsentUnsubscribed && writtenMs+writtenPrecisionMs <= c.SinceMs
}
