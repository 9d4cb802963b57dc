package resolver

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/segment/engine"
)

// savePreferences carries out what a person chose on the preference page. What is as the
// person wants it already stays as it is, so a repeat changes nothing.
func (m *Machine) savePreferences(tx *transaction, c messages.Preferences) *Refusal {
	a := tx.account
	if r := c.Check(); r != nil {
		return r
	}
	o, d, refusal := m.profileOf(a, c.Profile)
	if refusal != nil {
		return refusal
	}
	topics, refusal := topicChoices(a, d, c.Topics)
	if refusal != nil {
		return refusal
	}
	m.beginConsentLog(a)
	from := m.sentFrom(a, o, c.Send)
	evidence := sending.Evidence(a.Number, c.Send, from.started())
	evidence.Flow, evidence.Step, evidence.Client = c.Flow, c.Step, c.Client
	said := func(wording string) {
		e := evidence
		e.Wording = wording
		d.Evidence = &e
	}
	reply := messages.PreferencesReply{Channels: []string{}, Topics: []string{}}
	fields := engine.Fields(0)
	var events []feature.Event
	for i := range c.Channels {
		x := &c.Channels[i]
		said(x.Wording)
		changed, more := a.Contacts.ChangeConsents(tx.on(a), o, d, []contacts.ConsentChange{x.Change(evidence.Campaign)})
		if changed == 0 {
			continue
		}
		fields, events = fields|changed, append(events, more...)
		reply.Channels = append(reply.Channels, x.Channel)
		if from.sent && from.channel == x.Channel && x.Status == profile.ConsentStatuses[profile.ConsentUnsubscribed] {
			a.Campaigns.CountEngagement(from.campaign.ID, o, from.channel, from.variant, campaigns.Unsubscribed, 0)
		}
	}
	for _, x := range topics {
		l := a.Contacts.List(x.ListID)
		said(x.Wording)
		before := len(d.Changes)
		var more []feature.Event
		if x.Joins {
			if more, refusal = a.Contacts.JoinTopic(m.logTime, o, d, l, messages.SourcePreferences); refusal != nil {
				panic(refusal) // it was judged above
			}
		} else {
			more = a.Contacts.LeaveTopic(m.logTime, o, d, l, messages.SourcePreferences)
		}
		if len(more) > 0 {
			fields |= engine.FieldLists
		}
		if len(d.Changes) > before {
			reply.Topics = append(reply.Topics, l.ID)
		}
		events = append(events, more...)
	}
	if len(d.Changes) > 0 || fields != 0 {
		m.updateProfile(tx, o, d, fields, events...)
	}
	tx.reply(reply)
	return nil
}

// topicChoices are the choices that can be carried out, each list once: those left before those
// joined, since they make room. Topics that went while the person read the page are left out.
// It refuses what leads to more lists than a profile can be on.
func topicChoices(a *account.State, d *profile.Document, given []messages.TopicChoice) (leaves []messages.TopicChoice, refusal *Refusal) {
	var joins []messages.TopicChoice
	seen, lists := map[string]bool{}, a.Contacts.Live(d)
	for _, x := range given {
		l := a.Contacts.List(x.ListID)
		if l == nil || l.Topic == nil || x.Joins && !l.Public || seen[x.ListID] {
			continue
		}
		seen[x.ListID] = true
		switch member := slices.Contains(d.Lists, l.Number); {
		case !x.Joins:
			leaves = append(leaves, x)
			if member {
				lists--
			}
		default:
			joins = append(joins, x)
			if !member {
				lists++
			}
		}
	}
	if len(joins) > 0 && lists > contacts.MaxProfileLists {
		return nil, contacts.FullLists()
	}
	return append(leaves, joins...), nil
}

// sender is the campaign that a message was of, if it was sent by one that is on record.
type sender struct {
	campaign campaigns.Campaign
	channel  string // of the message
	variant  int
	sent     bool
}

// started is the campaign's id, "" where it sent nothing.
func (s *sender) started() string {
	if s.sent {
		return s.campaign.ID
	}
	return ""
}

// sentFrom finds what sent a message to a profile.
func (m *Machine) sentFrom(a *account.State, o uint32, send messages.ID) (s sender) {
	number, ordinal, variant, ok := send.Campaign()
	if !ok || number >= a.NextCampaign || ordinal >= a.Profiles.Headers.Count || a.Profiles.Root(ordinal) != o {
		return s
	}
	s.variant = variant
	if s.campaign, ok = a.Campaigns.ByNumber(number); ok {
		s.channel = cmp.Or(send.Medium(), s.campaign.Medium())
		s.sent = a.Campaigns.Started(s.campaign.ID)
	}
	return s
}
