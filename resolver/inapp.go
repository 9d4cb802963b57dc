package resolver

import (
	"encoding/hex"
	"encoding/json"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// inAppHost is what in-app messages see of their account, see [inapp.Host].
type inAppHost struct {
	m *Machine
	a *account.State
}

func (h inAppHost) Expired(campaign string, ordinal uint32) {
	h.a.Campaigns.CountExpired(campaign, ordinal)
}

func (h inAppHost) DropSet(name string) { h.a.DropSet(h.m.store, name) }

// deliverInApp puts a message into the inbox of a profile, by the record that says that it was
// sent. raw is what the dispatcher made of it.
func (m *Machine) deliverInApp(a *account.State, ordinal uint32, id messages.ID, x inapp.Message, raw []byte) {
	if err := json.Unmarshal(raw, &x.Card); err != nil {
		return // what the dispatcher reports has a card; a record of another hand has none
	}
	x.ID = hex.EncodeToString(id[:])
	if x.Origin == "" {
		x.Origin = x.ID
	}
	a.InApp.Add(m.tx.on(a), ordinal, x)
}

// deliverInApp is [Machine.deliverInApp] of a campaign's message.
func (h campaignHost) deliverInApp(r *campaigns.Report) {
	id := messages.CampaignSend(r.Campaign.Number, r.Recipient, r.Variant).On(inapp.Channel)
	h.m.deliverInApp(h.a, r.Ordinal, id, inapp.Message{Origin: r.Campaign.ID, Campaign: r.Campaign.ID, Variant: r.Variant}, r.InApp)
}

func (h sendingHost) Deliver(it *outbox.Item, ordinal uint32, raw []byte) {
	h.m.deliverInApp(h.a, ordinal, messages.OutboxSend(it.Origin, it.Ordinal), inapp.Message{Flow: it.Flow, Step: it.Step}, raw)
}

// markInApp records what a person did with a message. A repeat changes nothing, and so does a
// message that is not in the inbox any more.
func (m *Machine) markInApp(tx *transaction, c inapp.MarkDeed) *Refusal {
	verbs := map[string]string{inapp.Seen: campaigns.Opened, inapp.Clicked: campaigns.Clicked, inapp.Dismissed: campaigns.Dismissed}
	if verbs[c.Deed] == "" {
		return invalid("deed", "deed must be seen, clicked or dismissed")
	}
	a := tx.account
	o, d, refusal := m.profileOf(a, c.Profile)
	if refusal != nil {
		return refusal
	}
	x, done, seen, ok := a.InApp.Mark(tx.on(a), o, c.Message, c.Deed)
	switch {
	case !ok:
		return notFound("message", "the inbox of this person has no message with this id; it may have ended")
	case !done:
		return nil
	}
	deeds := []string{c.Deed}
	if seen {
		deeds = []string{inapp.Seen, c.Deed}
	}
	campaign, known := a.Campaigns.Campaign(x.Campaign)
	known = known && a.Campaigns.Started(campaign.ID)
	source := orders.Source{Channel: inapp.Channel, Flow: x.Flow, Step: x.Step}
	if known {
		source = orders.Source{Channel: inapp.Channel, Campaign: campaign.ID}
	}
	var events []feature.Event
	for _, deed := range deeds {
		p := feature.Properties{"message_id": x.ID}
		if known {
			p["campaign_id"], p["campaign_name"] = campaign.ID, campaign.Name
			a.Campaigns.CountEngagement(campaign.ID, o, inapp.Channel, x.Variant, verbs[deed], -1)
		}
		if x.Flow != "" {
			p["flow_id"], p["step_id"] = x.Flow, x.Step
		}
		switch deed {
		case inapp.Seen:
			d.Engaged.Opened++
			d.Engaged.LastOpenMs = m.logTime
			m.noteTouch(a, o, orders.TouchOpen, source)
		case inapp.Clicked:
			if x.Link != "" {
				p["url"] = x.Link
			}
			d.Engaged.Clicked++
			d.Engaged.LastClickMs = m.logTime
			m.noteTouch(a, o, orders.TouchClick, source)
		}
		events = append(events, feature.NewEvent(inapp.Channel+"_"+deed, p))
	}
	fields := engine.FieldEngagement
	if c.Deed == inapp.Dismissed {
		fields = 0
	}
	m.updateProfile(tx, o, d, fields, events...)
	return nil
}
