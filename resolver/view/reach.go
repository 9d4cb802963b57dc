package view

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/reach"
)

// Channels are the profiles that a message could be sent to now, by channel: those that
// no campaign would pass over. The answer is the caller's.
func (v Reach) Channels() map[string]*roaring.Bitmap {
	return v.a.Profiles.Reach.Reachable(v.a.Settings.RequireOptIn)
}

// SubscribedToEmail is how many profiles are subscribed to e-mail, confirmed and not
// suppressed, as `subscribed` says in segments.
func (v Reach) SubscribedToEmail() uint64 {
	return v.a.Profiles.Reach.WithStatus("email", StatusSubscribed).GetCardinality()
}

// DoubtfulPhones are by the channels that go to a phone and that some profile has opted out
// of. The answer is the caller's.
func (v Reach) DoubtfulPhones() map[string]reach.DoubtfulPhones {
	return v.a.Profiles.Reach.DoubtfulPhones()
}

// OtherSpellings calls fn for the profiles that a number of a profile identifies in another
// spelling (+49… or 0049… for 49…).
func (v Reach) OtherSpellings(ordinal uint32, fn func(ordinal uint32)) error {
	return reach.OtherSpellings(holders{v.base}, ordinal, fn)
}

// KeptFrom says why nothing is sent to an address on a channel, see [reach.KeptFrom].
func (v Reach) KeptFrom(channel, address string) (reason string, err error) {
	return reach.KeptFrom(holders{v.base}, channel, address)
}

// NumberRefused reports whether the number of a profile is another's who refused the
// channel, see [reach.NumberRefused].
func (v Reach) NumberRefused(ordinal uint32, channel string) (bool, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return false, err
	}
	return reach.NumberRefused(holders{v.base}, &d, ordinal, channel)
}

// holders are the profiles of an account, see [reach.People].
type holders struct{ v *base }

func (p holders) Holder(kind identifier.Kind, value string) (uint32, bool) {
	o, ok := Profiles{p.v}.Find(kind, value)
	if !ok {
		return 0, false
	}
	return p.v.a.Profiles.Root(o), true
}

func (p holders) Erased(kind identifier.Kind, value string) bool {
	return Profiles{p.v}.Erased(kind, value)
}

func (p holders) Decode(ordinal uint32, d *profile.Document) error { return p.v.decode(ordinal, d) }

// WhyUnreachable says why a profile gets no advertising on a channel, empty if it may.
func (v Reach) WhyUnreachable(ordinal uint32, channel string) (string, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return "", err
	}
	return v.a.WhyUnreachable(&d, channel), nil
}
