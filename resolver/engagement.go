package resolver

import (
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// CommandEngagement records what somebody did with a message, or what became of
// it later.
const CommandEngagement = "engagement.record.2"

// The kinds of engagement.
const (
	EngagementOpen         = "open"
	EngagementClick        = "click"
	EngagementDelivery     = "delivery"
	EngagementBounce       = "bounce"
	EngagementSoftBounce   = "soft_bounce"
	EngagementComplaint    = "complaint"
	EngagementUnsubscribed = "unsubscribe"
	EngagementSubscribed   = "subscribe" // a text that asks for messages again
	EngagementFailed       = "failure"   // a text that was handed over and not delivered
)

// Who opened or clicked, as far as can be told. What is no person's is an event,
// but counts for no rate, score or status.
const (
	AgentPerson   = "person"
	AgentProxy    = "proxy" // of a mail service, for a person
	AgentPrefetch = "prefetch"
	AgentMachine  = "machine"
)

// writtenPrecisionMs is how precisely providers say when a text was written.
const writtenPrecisionMs = 1000

// EngagementRecord says what a recipient did with a message.
type EngagementRecord struct {
	Send SendID `json:"send"`
	// Profile is whom it concerns when Send is zero.
	Profile string `json:"profile,omitempty"`
	Channel string `json:"channel"`
	Kind    string `json:"kind"`
	Link    int    `json:"link,omitempty"` // number of the link, for a click
	URL     string `json:"url,omitempty"`  // where it leads
	Agent   string `json:"agent,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Source  string `json:"source,omitempty"`
	// Hard says of a failure that the number gets no messages, ever.
	Hard bool `json:"hard,omitempty"`
	// Flow and Step say which step of which flow sent the message: its links carry
	// them, since nothing remembers it once it has gone out.
	Flow string `json:"flow,omitempty"`
	Step string `json:"step,omitempty"`
	// Key makes a repeat harmless: the provider's own id of the report.
	Key string `json:"key,omitempty"`
	// WrittenMs is when a text that asks for messages again was written (Unix ms), 0 if its
	// provider does not say. It is refused if the person unsubscribed after that.
	WrittenMs int64 `json:"written_ms,omitempty"`
}

var engagementTypes = map[string]string{
	EngagementOpen: "opened", EngagementClick: "clicked", EngagementDelivery: "delivered", EngagementBounce: "bounced",
	EngagementSoftBounce: "soft_bounced", EngagementComplaint: "complained", EngagementUnsubscribed: "unsubscribed",
	EngagementSubscribed: "subscribed", EngagementFailed: "failed",
}

// engagementFigures are what campaigns count of kinds of engagement.
var engagementFigures = map[string]string{
	EngagementOpen: campaigns.Opened, EngagementClick: campaigns.Clicked, EngagementDelivery: campaigns.Delivered, EngagementBounce: campaigns.Bounced,
	EngagementComplaint: campaigns.Complained, EngagementUnsubscribed: campaigns.Unsubscribed, EngagementFailed: campaigns.Bounced,
}

// recordEngagement counts, blocks and unsubscribes as the kind demands, and
// records an event.
func (m *Machine) recordEngagement(cmd *command, c EngagementRecord) *Refusal {
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
	if c.Kind == EngagementSubscribed && c.WrittenMs != 0 && c.Profile != "" {
		switch _, d, refusal := m.profileOf(a, c.Profile); {
		case refusal != nil:
			return refusal
		case unsubscribedAfter(d, channel, c.WrittenMs):
			return &Refusal{Code: "conflict", Field: "written_ms", Message: "the person unsubscribed after this text was written"}
		}
	}
	if c.Key != "" {
		h := a.hasher.HashIdempotencyKey([]byte("engagement\x00"+c.Key), &m.normal)
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
	if number, ordinal, v, ok := c.Send.Campaign(); ok && number < a.NextCampaign && ordinal < a.headers.Count {
		x, _ = a.campaigns.ByNumber(number)
		o, variant = a.root(ordinal), v
	}
	messageID := ""
	if origin, ordinal, ok := c.Send.Outbox(); ok && ordinal < a.headers.Count {
		o = a.root(ordinal)
		messageID = OutboxSend(origin, ordinal).Text(a.number)
	}
	if o == profile.NoOrdinal {
		if o, _, refusal = m.profileOf(a, c.Profile); refusal != nil {
			return refusal
		}
	} else if a.gone(o) {
		a.erasure.NoteRefused()
		return noProfile()
	} else if err := m.load(a, o, &m.doc); err != nil {
		panic(err)
	}
	d := &m.doc
	suspect := c.Agent == AgentPrefetch || c.Agent == AgentMachine
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
	case EngagementOpen:
		if suspect {
			break
		}
		d.SoftBounces = d.SoftBounces[:0]
		d.Engaged.Opened++
		d.Engaged.LastOpenMs = m.logTime
		fields |= engine.FieldEngagement
	case EngagementClick:
		if suspect {
			break
		}
		d.SoftBounces = d.SoftBounces[:0]
		d.Engaged.Clicked++
		d.Engaged.LastClickMs = m.logTime
		fields |= engine.FieldEngagement
	case EngagementBounce:
		if d.Block(profile.Block{Channel: channel, Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
		}
	case EngagementSoftBounce:
		if channel == profile.ChannelEmail && d.SoftBounce(m.logTime) && d.Block(profile.Block{Channel: channel, Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
			also = append(also, feature.NewEvent(contacts.EventSuppressed, feature.Properties{"channel": c.Channel, "reason": profile.BlockBounced.String(), "source": "soft bounces"}))
		}
	case EngagementComplaint:
		if d.Block(profile.Block{Channel: channel, Reason: profile.BlockComplained, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
		}
	case EngagementUnsubscribed:
		if contacts.Record(d, m.logTime, channel, profile.ConsentUnsubscribed, c.Source) {
			fields |= engine.FieldConsents
		}
		if d.Unblock(channel, profile.BlockPending) {
			fields |= engine.FieldConsents
		}
	case EngagementSubscribed:
		event = feature.NewEvent(contacts.EventSubscribed, feature.Properties{"channel": c.Channel, "source": c.Source})
		if !contacts.Record(d, m.logTime, channel, profile.ConsentSubscribed, c.Source) {
			if contacts.Say(d, m.logTime, channel, c.Source) {
				m.save(a, o, d)
			}
			return nil
		}
		fields |= engine.FieldConsents
	case EngagementFailed:
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
