package reach

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// AddressedBy are the channels whose messages go to an identifier of a kind. They must not
// be changed.
var AddressedBy = [identifier.Kinds][]byte{
	identifier.Email: {profile.ChannelEmail},
	identifier.Phone: {profile.ChannelSMS, profile.ChannelWhatsApp, profile.ChannelIM},
}

// People are the profiles of an account.
type People interface {
	// Holder finds the profile that an identifier leads to, through merges.
	Holder(kind identifier.Kind, value string) (ordinal uint32, ok bool)
	// Erased reports whether an identifier was an erased person's, and is kept out.
	Erased(kind identifier.Kind, value string) bool
	// Decode reads a profile's document.
	Decode(ordinal uint32, d *profile.Document) error
}

// DoubtfulPhones are the profiles among which those are for which [NumberRefused] holds
// on a channel.
type DoubtfulPhones struct {
	// Shown are profiles with a number that identifies another one, or is written without a
	// plus sign.
	Shown *roaring.Bitmap
	// Refusing are those of them who are not to be sent to: the profiles that have their
	// numbers in other spellings may be among them, see [OtherSpellings].
	Refusing *roaring.Bitmap
}

// DoubtfulPhones are those of the channels that go to a phone and that a contact
// refused, by channel. The caller may change the result.
func (s *Sets) DoubtfulPhones() map[string]DoubtfulPhones {
	out := map[string]DoubtfulPhones{}
	all := s.channels[slices.Index(Channels[:], "sms")].doubtful.Bits
	for i, channel := range profile.Channels {
		if !slices.Contains(AddressedBy[identifier.Phone], byte(i)) || all.IsEmpty() {
			continue
		}
		refusing := roaring.Or(s.statuses[i][standingUnsubscribed].Bits, s.statuses[i][standingSuppressed].Bits)
		if refusing.IsEmpty() {
			continue
		}
		refusing.And(all)
		out[channel] = DoubtfulPhones{Shown: all.Clone(), Refusing: refusing}
	}
	return out
}

// OtherSpellings calls fn for the profiles that a number of a profile identifies in another
// spelling (+49… or 0049… for 49…).
func OtherSpellings(p People, ordinal uint32, fn func(ordinal uint32)) error {
	var d profile.Document
	if err := p.Decode(ordinal, &d); err != nil {
		return err
	}
	for _, x := range d.Identifiers {
		if x.Kind != identifier.Phone || x.Shared {
			continue
		}
		for _, phone := range identity.PhoneSpellings(string(x.Value)) {
			if o, ok := p.Holder(identifier.Phone, phone); ok && o != ordinal {
				fn(o)
			}
		}
	}
	return nil
}

// KeptFrom says why nothing is sent to an address on a channel that its holder has not
// asked for: "erased", or what keeps campaigns from them but a missing subscription. It
// is "" for no reason, and for addresses that no profile has.
func KeptFrom(p People, channel, address string) (reason string, err error) {
	kind, spellings := identifier.Email, []string{address}
	if channel != "email" {
		kind, spellings = identifier.Phone, identity.PhoneSpellings(address)
	}
	for _, address := range spellings {
		if p.Erased(kind, address) {
			return "erased", nil
		}
		o, ok := p.Holder(kind, address)
		if !ok {
			continue
		}
		var d profile.Document
		if err := p.Decode(o, &d); err != nil {
			return "", err
		}
		if reason, _ = Of(&d, byte(slices.Index(profile.Channels, channel))); reason != "" {
			return reason, nil
		}
	}
	return "", nil
}

// ReasonNumberRefused is the reason not to send to a number that identifies another profile,
// which has opted out of the channel or is suppressed there.
const ReasonNumberRefused = "the number is another contact's, who refused it"

// NumberRefused reports whether the newest phone of a profile, in this or another spelling
// (0049… or 49… for +49…), identifies another profile that refused the channel, or must
// not be sent to on it. Then nothing may reach the number, whatever the profile itself
// said. [Sets] do not know: they follow from one document each. The profile's document is
// in d, which may change.
func NumberRefused(p People, d *profile.Document, ordinal uint32, channel string) (bool, error) {
	if channel == "email" || channel == push || channel == inApp {
		return false, nil
	}
	for _, phone := range identity.PhoneSpellings(string(d.Newest(identifier.Phone))) {
		o, ok := p.Holder(identifier.Phone, phone)
		if !ok || o == ordinal {
			continue
		}
		if err := p.Decode(o, d); err != nil {
			return false, err
		}
		if reason, _ := Of(d, byte(slices.Index(profile.Channels, channel))); reason != "" {
			return true, nil
		}
	}
	return false, nil
}
