package resolver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Two sets for each channel say whom a message could be sent to: those who are
// subscribed, and on channels that do not need a subscription those who neither
// subscribed nor unsubscribed. Like the index of profiles they follow from the documents
// alone: a set changes with the document, [Machine.Hash] compares both, and a checkpoint
// without them gets them when it is loaded.

// reachVersion is the version of the rules by which the sets are made.
const reachVersion = 4

// reachPrefix is what the names of these sets begin with.
const reachPrefix = "reach/"

// reachChannels are the channels that campaigns and flows send on.
var reachChannels = [...]string{"email", "sms", "whatsapp", "im", mediumPush}

// reachSets are the sets of an account, by the place of the channel in reachChannels.
type reachSets [len(reachChannels)]struct {
	number     byte                // of the channel, as in profile.Channels
	subscribed *profile.OrdinalSet // those who subscribed
	open       *profile.OrdinalSet // nil where sending takes a subscription
	// doubtful are those with a number that another profile may have refused: it identifies
	// another, or is written without a plus sign. It is one set for all channels of
	// phones, nil but for SMS.
	doubtful *profile.OrdinalSet
}

// newReachSets are the sets among those of an account.
func newReachSets(a *account) (s reachSets) {
	for i, channel := range reachChannels {
		s[i].number = byte(slices.Index(profile.Channels, channel))
		s[i].subscribed = a.set(reachPrefix + channel + "/subscribed")
		if !alwaysOptIn(channel) {
			s[i].open = a.set(reachPrefix + channel + "/open")
		}
		if channel == "sms" {
			s[i].doubtful = a.set(reachPrefix + "phone/doubtful")
		}
	}
	return s
}

// alwaysOptIn reports whether a channel takes a subscription, whatever the account's
// settings.
func alwaysOptIn(channel string) bool { return channel != "email" && channel != mediumPush }

// reachOf says why nothing may be sent to a profile on a channel, "" for no reason, and
// whether it subscribed. Who did not may be sent to where no subscription is needed.
func reachOf(d *profile.Document, channel byte) (reason string, subscribed bool) {
	if b := d.Blocked(channel); b != 0 {
		return b.String(), false
	}
	if d.IsAnonymous() {
		return "anonymous", false
	}
	status := byte(0)
	for i := range d.Consents {
		if d.Consents[i].Channel == channel {
			status = d.Consents[i].Status
		}
	}
	switch name := profile.NameOf(profile.Channels, channel); {
	case status == profile.ConsentUnsubscribed:
		return "unsubscribed", false
	case name == "email" && !d.Has(IdentityEmail):
		return "no e-mail", false
	case name == mediumPush && len(d.Devices) == 0:
		return "no device", false
	case name != "email" && name != mediumPush && !d.Has(IdentityPhone):
		return "no phone", false
	}
	return "", status == profile.ConsentSubscribed
}

// whyUnreachable says why a profile may not be sent to on a channel, "" if it may.
func (a *account) whyUnreachable(d *profile.Document, medium string) string {
	reason, subscribed := reachOf(d, byte(slices.Index(profile.Channels, medium)))
	if reason == "" && !subscribed && (a.Settings.RequireOptIn || alwaysOptIn(medium)) {
		return "not subscribed"
	}
	return reason
}

// keep brings the sets in step with a profile's document.
func (s *reachSets) keep(ordinal uint32, d *profile.Document) {
	for i := range s {
		reason, subscribed := reachOf(d, s[i].number)
		s[i].subscribed.Put(ordinal, reason == "" && subscribed)
		if s[i].open != nil {
			s[i].open.Put(ordinal, reason == "" && !subscribed)
		}
		if s[i].doubtful != nil {
			s[i].doubtful.Put(ordinal, hasDoubtfulPhone(d))
		}
	}
}

// remove takes out a profile that is none any more.
func (s *reachSets) remove(ordinal uint32) {
	for i := range s {
		s[i].subscribed.Remove(ordinal)
		if s[i].open != nil {
			s[i].open.Remove(ordinal)
		}
		if s[i].doubtful != nil {
			s[i].doubtful.Remove(ordinal)
		}
	}
}

// each calls fn for the sets.
func (s *reachSets) each(fn func(*profile.OrdinalSet)) {
	for i := range s {
		fn(s[i].subscribed)
		if s[i].open != nil {
			fn(s[i].open)
		}
		if s[i].doubtful != nil {
			fn(s[i].doubtful)
		}
	}
}

// hasDoubtfulPhone reports whether a phone of a profile identifies another one, or is written
// without a plus sign.
func hasDoubtfulPhone(d *profile.Document) bool {
	return slices.ContainsFunc(d.Identifiers, func(x profile.Identifier) bool {
		if x.Kind != IdentityPhone {
			return false
		}
		at := bytes.IndexAny(x.Value, "+0123456789")
		return x.Shared || at >= 0 && x.Value[at] != '+'
	})
}

// DoubtfulPhones are the profiles among which those are for which [View.NumberRefused] holds
// on a channel.
type DoubtfulPhones struct {
	// Shown are profiles with a number that identifies another one, or is written without a
	// plus sign.
	Shown *roaring.Bitmap
	// Refusing are those of them who are not to be sent to: the profiles that have their
	// numbers in other spellings may be among them, see [View.OtherSpellings].
	Refusing *roaring.Bitmap
}

// DoubtfulPhones are by the channels that go to a phone and that somebody refused. The
// answer is the caller's.
func (v *View) DoubtfulPhones() map[string]DoubtfulPhones {
	out := map[string]DoubtfulPhones{}
	all := v.a.reach[slices.Index(reachChannels[:], "sms")].doubtful.Bits
	for i, channel := range profile.Channels {
		if !slices.Contains(channelsOf[IdentityPhone], byte(i)) || all.IsEmpty() {
			continue
		}
		refusing := roaring.Or(v.a.status[i][standingUnsubscribed].Bits, v.a.status[i][standingBlocked].Bits)
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
func (v *View) OtherSpellings(ordinal uint32, fn func(ordinal uint32)) error {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return err
	}
	var buf []byte
	for _, x := range d.Identifiers {
		if x.Kind != IdentityPhone || x.Shared {
			continue
		}
		for _, phone := range identity.PhoneSpellings(string(x.Value)) {
			h, ok := v.a.hasher.HashIdentifier(IdentityPhone, []byte(phone), &buf)
			if !ok {
				continue
			}
			if o, ok := v.a.ids.Get(h); ok && v.a.root(o) != ordinal {
				fn(v.a.root(o))
			}
		}
	}
	return nil
}

// isReachSet reports whether a set follows from the documents.
func isReachSet(name string) bool { return strings.HasPrefix(name, reachPrefix) }

// makeReach makes the sets of a state that was just loaded and has none, or those of
// another version.
func (m *Machine) makeReach() error {
	for _, a := range m.byIndex {
		a.reach.each(func(s *profile.OrdinalSet) { s.Assign(roaring.New()) })
		a.status.each(func(s *profile.OrdinalSet) { s.Assign(roaring.New()) })
	}
	var d profile.Document
	err := m.store.Each(state.TableDocument, func(number uint64, rest, value []byte) error {
		a := m.accounts[number]
		if a == nil || len(rest) != 4 {
			return errors.New("document of an unknown account")
		}
		if err := d.Decode(value); err != nil {
			return err
		}
		a.reach.keep(binary.BigEndian.Uint32(rest), &d)
		a.status.keep(binary.BigEndian.Uint32(rest), &d)
		return nil
	})
	if err != nil {
		return fmt.Errorf("find out who can be sent to: %w", err)
	}
	return nil
}

// checkReach compares an account's sets with those made of its documents.
func (a *account) checkReach(want *reachSets, status statusSets) (err error) {
	check := func(s *profile.OrdinalSet) {
		if have := a.members(s.Name); err == nil && !have.Equals(s.Bits) {
			err = fmt.Errorf("state: set %q of account %016x has %d profiles that are not those of its documents, which are %d", s.Name, a.number, have.GetCardinality(), s.Bits.GetCardinality())
		}
	}
	want.each(check)
	status.each(check)
	return err
}

// Reachable are the profiles that a message could be sent to now, by channel: those that
// no campaign would pass over. The answer is the caller's.
func (v *View) Reachable() map[string]*roaring.Bitmap {
	out := make(map[string]*roaring.Bitmap, len(reachChannels))
	for i, channel := range reachChannels {
		s := &v.a.reach[i]
		if s.open == nil || v.a.Settings.RequireOptIn {
			out[channel] = s.subscribed.Bits.Clone()
		} else {
			out[channel] = roaring.Or(s.subscribed.Bits, s.open.Bits)
		}
	}
	return out
}

// KeptFrom says why nothing is sent to an address on a channel that its holder has not
// asked for: "erased", or what keeps campaigns from them but a missing subscription. It
// is "" for no reason, and for addresses of nobody.
func (v *View) KeptFrom(channel, address string) (reason string, err error) {
	kind := IdentityPhone
	if channel == "email" {
		kind = IdentityEmail
	}
	spellings := []string{address}
	if kind == IdentityPhone {
		spellings = identity.PhoneSpellings(address)
	}
	for _, address := range spellings {
		var buf []byte
		h, ok := v.a.hasher.HashIdentifier(kind, []byte(address), &buf)
		if !ok {
			continue
		}
		if v.a.erased(h) {
			return "erased", nil
		}
		o, ok := v.a.ids.Get(h)
		if !ok {
			continue
		}
		var d profile.Document
		if err := v.decode(v.a.root(o), &d); err != nil {
			return "", err
		}
		if reason, _ = reachOf(&d, byte(slices.Index(profile.Channels, channel))); reason != "" {
			return reason, nil
		}
	}
	return "", nil
}

// NumberRefused is why nothing is sent to a number that a profile shows, but that
// identifies another, who is not to be sent to on the channel.
const NumberRefused = "the number is another contact's, who refused it"

// NumberRefused reports whether the newest phone of a profile, in this or another spelling
// (0049… or 49… for +49…), identifies another profile that refused the channel, or must
// not be sent to on it. Then nothing may reach the
// number, whatever the profile itself said. The sets of who can be reached do not know:
// they follow from one document each.
func (v *View) NumberRefused(ordinal uint32, channel string) (bool, error) {
	if channel == "email" || channel == mediumPush {
		return false, nil
	}
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return false, err
	}
	return v.numberRefused(&d, ordinal, channel)
}

// numberRefused is [View.NumberRefused] of a profile whose document is at hand; it may
// change the document.
func (v *View) numberRefused(d *profile.Document, ordinal uint32, channel string) (bool, error) {
	if channel == "email" || channel == mediumPush {
		return false, nil
	}
	var buf []byte
	for _, phone := range identity.PhoneSpellings(string(d.Newest(IdentityPhone))) {
		h, ok := v.a.hasher.HashIdentifier(IdentityPhone, []byte(phone), &buf)
		if !ok {
			continue
		}
		o, ok := v.a.ids.Get(h)
		if !ok || v.a.root(o) == ordinal {
			continue
		}
		if err := v.decode(v.a.root(o), d); err != nil {
			return false, err
		}
		if reason, _ := reachOf(d, byte(slices.Index(profile.Channels, channel))); reason != "" {
			return true, nil
		}
	}
	return false, nil
}

// Person finds a profile by its id or, where that is "", by an e-mail. field says which
// of both it was found by, or not.
func (v *View) Person(profileID, email string) (ordinal uint32, field string, ok bool) {
	if email != "" {
		ordinal, ok = v.Find(IdentityEmail, email)
		return ordinal, "email", ok
	}
	ordinal, ok = v.ResolveText(profileID)
	return ordinal, "profile_id", ok
}
