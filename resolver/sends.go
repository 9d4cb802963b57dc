package resolver

import (
	"encoding/binary"

	"github.com/musterhq/muster/resolver/internal/profile"
)

// sendOfProfile begins the ids of links that concern a profile and no message
// on record: the confirmation of a subscription.
const sendOfProfile = 0x70

// ProfileSend is the id of a link that concerns a profile.
func ProfileSend(ordinal uint32) (id SendID) {
	id[0] = sendOfProfile
	binary.BigEndian.PutUint32(id[1:], ordinal)
	return id
}

// Seal is where the part of an id begins that means nothing to the state: it may
// be used to make ids that cannot be guessed.
func (id SendID) Seal() int {
	switch id[0] {
	case sendOfCampaign:
		return 10 // behind campaign, ordinal and variant
	case sendOfProfile:
		return 5
	}
	return 13 // behind what ids of the outbox hold
}

// Sent is what a message's id leads to.
type Sent struct {
	Profile  uint32 // the recipient, through merges
	Channel  string
	Campaign string // "" for other messages, and for a campaign that was deleted
	// OfCampaign says that the message was of a campaign, deleted or not.
	OfCampaign bool
	// Variant is the one of the campaign's that was sent, see [campaigns.State.Links].
	Variant int
}

// Sent finds the message of an id. ok is false when it is none. Of a campaign that
// was deleted only the recipient and the channel are known.
func (v *View) Sent(id SendID) (s Sent, ok bool) {
	if id[0] == sendOfProfile {
		o := binary.BigEndian.Uint32(id[1:])
		if o >= v.a.headers.Count {
			return s, false
		}
		return Sent{Profile: v.a.root(o), Channel: profile.Channels[profile.ChannelEmail]}, true
	}
	if _, ordinal, is := id.Outbox(); is && ordinal < v.a.headers.Count {
		return Sent{Profile: v.a.root(ordinal), Channel: profile.Channels[profile.ChannelEmail]}, true
	}
	number, ordinal, variant, ok := id.Campaign()
	if !ok || number >= v.a.NextCampaign || ordinal >= v.a.headers.Count {
		return s, false
	}
	s = Sent{Profile: v.a.root(ordinal), Channel: id.Medium(), OfCampaign: true}
	x, ok := v.a.campaigns.ByNumber(number)
	if !ok {
		// The campaign was deleted. Whoever was sent it may still say no.
		return s, s.Channel != ""
	}
	s.Channel, s.Campaign, s.Variant = x.Medium(), x.ID, variant
	return s, v.a.campaigns.Started(x.ID)
}
