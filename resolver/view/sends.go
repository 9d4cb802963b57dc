package view

import (
	"cmp"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
)

// Sent is the message of an id.
type Sent struct {
	Profile  uint32 // the recipient, through merges
	Channel  string
	Campaign string // "" for other messages, and for a campaign that was deleted
	// OfCampaign says that the message was of a campaign, deleted or not.
	OfCampaign bool
	// Variant is the one of the campaign's that was sent, see [campaigns.State.Links]; −1 for a
	// channel that its newest run does not have.
	Variant int
}

// Sent finds the message of an id. ok is false when it is none. Of a campaign that
// was deleted only the recipient and the channel are known.
func (v *View) Sent(id messages.ID) (s Sent, ok bool) {
	if o, is := id.Profile(); is {
		if o >= v.a.Profiles.Headers.Count {
			return s, false
		}
		return Sent{Profile: v.a.Profiles.Root(o), Channel: profile.Channels[profile.ChannelEmail]}, true
	}
	if _, ordinal, is := id.Outbox(); is && ordinal < v.a.Profiles.Headers.Count {
		return Sent{Profile: v.a.Profiles.Root(ordinal), Channel: cmp.Or(id.Medium(), profile.Channels[profile.ChannelEmail])}, true
	}
	number, ordinal, variant, ok := id.Campaign()
	if !ok || number >= v.a.NextCampaign || ordinal >= v.a.Profiles.Headers.Count {
		return s, false
	}
	s = Sent{Profile: v.a.Profiles.Root(ordinal), Channel: id.Medium(), OfCampaign: true}
	x, ok := v.a.Campaigns.ByNumber(number)
	if !ok {
		// The campaign was deleted. Its recipients may still unsubscribe.
		return s, s.Channel != ""
	}
	if x.Medium() != campaigns.MediumOmni {
		s.Channel = x.Medium() // ids of before they had it are answered, too
	}
	s.Campaign, s.Variant = x.ID, v.a.Campaigns.VariantOn(x.ID, s.Channel, variant)
	return s, v.a.Campaigns.Started(x.ID)
}
