package sending

import (
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/segment/engine"
)

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

// recordEngagement counts, suppresses and unsubscribes as the kind demands, and
// records an event.
func (s *State) recordEngagement(tx *feature.Tx, c messages.EngagementRecord) *refuse.Refusal {
	verb, known := engagementTypes[c.Kind]
	if !known {
		return refuse.Invalid("kind", "kind Input should be open, click, delivery, bounce, soft_bounce, complaint or unsubscribe")
	}
	channel, refusal := contacts.ChannelOf(c.Channel)
	if refusal != nil {
		return refusal
	}
	// Before the key: a repeat gets the same answer.
	if r := s.refuseOlder(tx, &c); r != nil {
		return r
	}
	end, repeated, refusal := s.ends(tx, &c)
	if refusal != nil || repeated {
		return refusal
	}
	if c.Key != "" {
		h := s.profiles.Hasher.HashReportKey(c.Key, &s.normal)
		switch v, ok, err := s.keys.Get(h); {
		case err != nil:
			panic(err) // the store is at fault; the record is named
		case ok && v.AtMs > s.host.KeysFromMs():
			return nil
		}
		// Whatever comes of it: a report that is refused is not looked at again either.
		defer s.keys.Put(h, dedup.Answer{AtMs: tx.AtMs})
	}
	var x campaigns.Campaign // none when it was deleted, or of another message
	o, variant := profile.NoOrdinal, 0
	if number, ordinal, v, ok := c.Send.Campaign(); ok && number < s.host.NextCampaign() && ordinal < s.profiles.Headers.Count {
		x, _ = s.campaigns.ByNumber(number)
		o, variant = s.profiles.Root(ordinal), v
	}
	messageID := ""
	if origin, ordinal, ok := c.Send.Outbox(); ok && ordinal < s.profiles.Headers.Count {
		o = s.profiles.Root(ordinal)
		messageID = messages.OutboxSend(origin, ordinal).Text(s.account)
	}
	if o == profile.NoOrdinal {
		if o, _, refusal = s.host.Profile(c.Profile); refusal != nil {
			return refusal
		}
	} else if s.profiles.Erased(o) {
		return s.host.ErasedProfile()
	} else if err := s.profiles.Load(o, &s.profiles.Doc); err != nil {
		panic(err)
	}
	s.noteEnd(tx, end)
	d := &s.profiles.Doc
	suspect := c.Agent == messages.AgentPrefetch || c.Agent == messages.AgentMachine
	event := feature.NewEvent(c.Channel+"_"+verb, feature.Properties{})
	for _, p := range [...]struct{ name, value string }{{"url", c.URL}, {"agent", c.Agent}, {"reason", c.Reason}, {"source", c.Source},
		{"message_id", messageID}, {"flow_id", c.Flow}, {"step_id", c.Step}} {
		if p.value != "" {
			event.Properties[p.name] = p.value
		}
	}
	s.NoteDomain(event.Properties, c.Channel, d)
	if s.campaigns.Started(x.ID) {
		event.Properties["campaign_id"], event.Properties["campaign_name"] = x.ID, x.Name
		if !suspect {
			s.campaigns.CountEngagement(x.ID, o, c.Channel, variant, engagementFigures[c.Kind], c.Link)
			if end.state == finalRead {
				s.campaigns.CountEngagement(x.ID, o, c.Channel, variant, campaigns.Delivered, c.Link)
			}
		}
	}
	if !suspect {
		s.noteTouch(o, &c, x.ID)
	}
	if c.Kind == messages.EngagementUnsubscribed || c.Kind == messages.EngagementSubscribed {
		campaign := ""
		if s.campaigns.Started(x.ID) {
			campaign = x.ID
		}
		evidence := Evidence(s.account, c.Send, campaign)
		evidence.Flow, evidence.Step = c.Flow, c.Step
		d.Evidence = &evidence
		s.noteWord(tx, o, d, &c)
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
		d.Engaged.LastOpenMs = tx.AtMs
		fields |= engine.FieldEngagement
	case messages.EngagementClick:
		if suspect {
			break
		}
		d.SoftBounces = d.SoftBounces[:0]
		d.Engaged.Clicked++
		d.Engaged.LastClickMs = tx.AtMs
		fields |= engine.FieldEngagement
	case messages.EngagementBounce:
		if d.Suppress(profile.Suppression{Channel: channel, Reason: profile.SuppressionBounced, SinceMs: tx.AtMs}, tx.Rules) {
			fields |= engine.FieldConsents
		}
	case messages.EngagementSoftBounce:
		if channel == profile.ChannelEmail && d.SoftBounce(tx.AtMs) && d.Suppress(profile.Suppression{Channel: channel, Reason: profile.SuppressionBounced, SinceMs: tx.AtMs}, tx.Rules) {
			fields |= engine.FieldConsents
			also = append(also, feature.NewEvent(contacts.EventSuppressed, feature.Properties{"channel": c.Channel, "reason": profile.SuppressionBounced.String(), "source": "soft bounces"}))
		}
	case messages.EngagementComplaint:
		if d.Suppress(profile.Suppression{Channel: channel, Reason: profile.SuppressionComplained, SinceMs: tx.AtMs}, tx.Rules) {
			fields |= engine.FieldConsents
		}
	case messages.EngagementUnsubscribed:
		if contacts.Record(d, tx.AtMs, channel, profile.ConsentUnsubscribed, c.Source) {
			fields |= engine.FieldConsents
		}
		if d.Unsuppress(channel, profile.SuppressionPending) {
			fields |= engine.FieldConsents
		}
	case messages.EngagementSubscribed:
		event = feature.NewEvent(contacts.EventSubscribed, feature.Properties{"channel": c.Channel, "source": c.Source})
		if !contacts.Record(d, tx.AtMs, channel, profile.ConsentSubscribed, c.Source) {
			if contacts.Say(d, tx.AtMs, channel, c.Source) {
				s.profiles.Save(o, d)
			}
			return nil
		}
		fields |= engine.FieldConsents
	case messages.EngagementFailed:
		if c.Hard && d.Suppress(profile.Suppression{Channel: channel, Reason: profile.SuppressionBounced, SinceMs: tx.AtMs}, tx.Rules) {
			fields |= engine.FieldConsents
		}
	}
	s.host.Update(o, d, fields, append([]feature.Event{event}, also...)...)
	return nil
}

// noteTouch notes a click or an open, for orders.
func (s *State) noteTouch(o uint32, c *messages.EngagementRecord, campaign string) {
	source := orders.Source{Channel: c.Channel, Flow: c.Flow, Step: c.Step}
	if s.campaigns.Started(campaign) {
		source = orders.Source{Channel: c.Channel, Campaign: campaign}
	}
	switch c.Kind {
	case messages.EngagementClick:
		s.host.Touched(o, orders.TouchClick, source)
	case messages.EngagementOpen:
		s.host.Touched(o, orders.TouchOpen, source)
	}
}

// Evidence is that of what a person said by a message; campaign is the one that sent it, ""
// for none.
func Evidence(account uint64, send messages.ID, campaign string) (e profile.Evidence) {
	if origin, ordinal, is := send.Outbox(); is {
		send = messages.OutboxSend(origin, ordinal) // as events and answers call it, without its seal
	}
	if _, is := send.Profile(); !is && send != (messages.ID{}) {
		e.Message = send.Text(account)
	}
	e.Campaign = campaign
	return e
}
