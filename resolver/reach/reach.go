package reach

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// Version is the version of the rules by which the sets are made.
const Version = 5

// prefix is what the names of the sets begin with.
const prefix = "reach/"

// push is the channel of devices.
const push = "push"

// inApp is the channel of in-app messages. They are part of the site that the person uses, so
// they take no subscription; people who unsubscribed get none.
const inApp = "in_app"

// Channels are the channels that campaigns and flows send on.
var Channels = [...]string{"email", "sms", "whatsapp", "im", push, inApp}

// Sets are the sets of an account. Two for each channel say whom a message could be sent
// to: those who are subscribed, and on channels that do not need a subscription those who
// neither subscribed nor unsubscribed.
type Sets struct {
	channels [len(Channels)]channelSets // by the place of the channel in Channels
	statuses statusSets
}

type channelSets struct {
	number     byte                // of the channel, as in profile.Channels
	subscribed *profile.OrdinalSet // those who subscribed
	open       *profile.OrdinalSet // nil where sending takes a subscription
	// doubtful are those with a number that another profile may have refused: it identifies
	// another, or is written without a plus sign. It is one set for all channels of
	// phones, nil but for SMS.
	doubtful *profile.OrdinalSet
}

// NewSets returns the sets among those of an account.
func NewSets(of *profile.OrdinalSets) *Sets {
	s := &Sets{statuses: newStatusSets(of)}
	for i, channel := range Channels {
		c := &s.channels[i]
		c.number = byte(slices.Index(profile.Channels, channel))
		c.subscribed = of.Set(prefix + channel + "/subscribed")
		if !alwaysOptIn(channel) {
			c.open = of.Set(prefix + channel + "/open")
		}
		if channel == "sms" {
			c.doubtful = of.Set(prefix + "phone/doubtful")
		}
	}
	return s
}

// IsSet reports whether a set of an account is one of those that follow from the documents.
func IsSet(name string) bool { return strings.HasPrefix(name, prefix) }

// Clear empties the sets: those of a state that was just loaded and has none, or those of
// another version.
func (s *Sets) Clear() {
	s.each(func(x *profile.OrdinalSet) { x.Assign(roaring.New()) })
}

// Keep brings the sets in step with a profile's document.
func (s *Sets) Keep(ordinal uint32, d *profile.Document) {
	s.decide(d, func(x *profile.OrdinalSet, in bool) { x.Put(ordinal, in) })
}

// Add is Keep for a profile that is in no set.
func (s *Sets) Add(ordinal uint32, d *profile.Document) {
	s.decide(d, func(x *profile.OrdinalSet, in bool) {
		if in {
			x.Add(ordinal)
		}
	})
}

// decide calls fn for each set with whether the profile of a document is in it.
func (s *Sets) decide(d *profile.Document, fn func(x *profile.OrdinalSet, in bool)) {
	for i := range s.channels {
		c := &s.channels[i]
		reason, subscribed := Of(d, c.number)
		fn(c.subscribed, reason == "" && subscribed)
		if c.open != nil {
			fn(c.open, reason == "" && !subscribed)
		}
		if c.doubtful != nil {
			fn(c.doubtful, hasDoubtfulPhone(d))
		}
	}
	s.statuses.decide(d, fn)
}

// Remove takes out a profile that is none any more.
func (s *Sets) Remove(ordinal uint32) {
	s.each(func(x *profile.OrdinalSet) { x.Remove(ordinal) })
}

// each calls fn for the sets.
func (s *Sets) each(fn func(*profile.OrdinalSet)) {
	for i := range s.channels {
		c := &s.channels[i]
		fn(c.subscribed)
		if c.open != nil {
			fn(c.open)
		}
		if c.doubtful != nil {
			fn(c.doubtful)
		}
	}
	s.statuses.each(fn)
}

// Differ says how the sets differ from those that were made of an account's documents, nil
// for not at all.
func (s *Sets) Differ(made *Sets) (err error) {
	have := map[string]*roaring.Bitmap{}
	s.each(func(x *profile.OrdinalSet) { have[x.Name] = x.Bits })
	made.each(func(x *profile.OrdinalSet) {
		if h := have[x.Name]; err == nil && !h.Equals(x.Bits) {
			err = fmt.Errorf("state: set %q has %d profiles that are not those of the account's documents, which are %d", x.Name, h.GetCardinality(), x.Bits.GetCardinality())
		}
	})
	return err
}

// Reachable are the profiles that a message could be sent to now, by channel: those that no
// campaign would pass over. optIn says that e-mail and push take a subscription, too. The
// answer is the caller's.
func (s *Sets) Reachable(optIn bool) map[string]*roaring.Bitmap {
	out := make(map[string]*roaring.Bitmap, len(Channels))
	for i, channel := range Channels {
		c := &s.channels[i]
		if TakesSubscription(channel, optIn) {
			out[channel] = c.subscribed.Bits.Clone()
		} else {
			out[channel] = roaring.Or(c.subscribed.Bits, c.open.Bits)
		}
	}
	return out
}

// alwaysOptIn reports whether a channel takes a subscription, whatever the account's
// settings.
func alwaysOptIn(channel string) bool {
	return channel != "email" && channel != push && channel != inApp
}

// TakesSubscription reports whether messages on a channel go only to people who subscribed;
// optIn says that e-mail and push take a subscription, too; in-app messages never do.
func TakesSubscription(channel string, optIn bool) bool {
	return optIn && channel != inApp || alwaysOptIn(channel)
}

// Of says why nothing may be sent to a profile on a channel, "" for no reason, and
// whether it subscribed. A profile without a subscription may be sent to where none
// is needed.
func Of(d *profile.Document, channel byte) (reason string, subscribed bool) {
	if b := d.GravestSuppression(channel); b != 0 {
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
	case name == "email" && !d.Has(identifier.Email):
		return "no e-mail", false
	case name == push && len(d.Devices) == 0:
		return "no device", false
	case name == inApp && !d.Has(identifier.Email) && !d.Has(identifier.ExternalID):
		return "no e-mail and no external_id", false
	case name != "email" && name != push && name != inApp && !d.Has(identifier.Phone):
		return "no phone", false
	}
	return "", status == profile.ConsentSubscribed
}

// Why says why a profile may not be sent to on a channel, "" if it may. optIn says that
// e-mail and push take a subscription, too.
func Why(d *profile.Document, channel string, optIn bool) string {
	reason, subscribed := Of(d, byte(slices.Index(profile.Channels, channel)))
	if reason == "" && !subscribed && TakesSubscription(channel, optIn) {
		return "not subscribed"
	}
	return reason
}

// hasDoubtfulPhone reports whether a phone of a profile identifies another one, or is written
// without a plus sign.
func hasDoubtfulPhone(d *profile.Document) bool {
	return slices.ContainsFunc(d.Identifiers, func(x profile.Identifier) bool {
		if x.Kind != identifier.Phone {
			return false
		}
		at := bytes.IndexAny(x.Value, "+0123456789")
		return x.Shared || at >= 0 && x.Value[at] != '+'
	})
}
