package view

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/reach"
)

// Reachable are the profiles that a message could be sent to now, by channel: those that
// no campaign would pass over. The answer is the caller's.
func (v *View) Reachable() map[string]*roaring.Bitmap {
	return v.a.Profiles.Reach.Reachable(v.a.Settings.RequireOptIn)
}

// SubscribedToEmail is how many profiles are subscribed to e-mail, confirmed and not
// suppressed, as `subscribed` says in segments.
func (v *View) SubscribedToEmail() uint64 {
	return v.a.Profiles.Reach.WithStatus("email", StatusSubscribed).GetCardinality()
}

// DoubtfulPhones are by the channels that go to a phone and that some profile has opted out
// of. The answer is the caller's.
func (v *View) DoubtfulPhones() map[string]reach.DoubtfulPhones {
	return v.a.Profiles.Reach.DoubtfulPhones()
}

// OtherSpellings calls fn for the profiles that a number of a profile identifies in another
// spelling (+49… or 0049… for 49…).
func (v *View) OtherSpellings(ordinal uint32, fn func(ordinal uint32)) error {
	return reach.OtherSpellings(holders{v}, ordinal, fn)
}

// KeptFrom says why nothing is sent to an address on a channel, see [reach.KeptFrom].
func (v *View) KeptFrom(channel, address string) (reason string, err error) {
	return reach.KeptFrom(holders{v}, channel, address)
}

// NumberRefused reports whether the number of a profile is another's who refused the
// channel, see [reach.NumberRefused].
func (v *View) NumberRefused(ordinal uint32, channel string) (bool, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return false, err
	}
	return reach.NumberRefused(holders{v}, &d, ordinal, channel)
}

// Person finds a profile by its id or, where that is "", by an e-mail. field says which
// of both it was found by, or not.
func (v *View) Person(profileID, email string) (ordinal uint32, field string, ok bool) {
	if email != "" {
		ordinal, ok = v.Find(identifier.Email, email)
		return ordinal, "email", ok
	}
	ordinal, ok = v.ResolveText(profileID)
	return ordinal, "profile_id", ok
}

// holders are the profiles of an account, see [reach.People].
type holders struct{ v *View }

func (p holders) Holder(kind identifier.Kind, value string) (uint32, bool) {
	o, ok := p.v.Find(kind, value)
	if !ok {
		return 0, false
	}
	return p.v.a.Profiles.Root(o), true
}

func (p holders) Erased(kind identifier.Kind, value string) bool {
	return p.v.Erased(kind, value)
}

func (p holders) Decode(ordinal uint32, d *profile.Document) error { return p.v.decode(ordinal, d) }
