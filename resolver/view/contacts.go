package view

import (
	"slices"

	"github.com/musterhq/muster/resolver/consentlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// ContactInfo is the contact part of a profile.
type ContactInfo struct {
	// IsContact says that the profile was made, or taken on, as a contact.
	IsContact    bool
	Lists        []string // ids, in the order they were joined
	Suppressions []Suppression
	Devices      []Device
	Engagement
}

// Suppression forbids sending on a channel, whatever the consent.
type Suppression struct {
	Channel string
	Reason  string // pending, bounced, complained or suppressed
	SinceMs int64
	// Pending says that a double opt-in was asked for and not confirmed, also where the
	// reason is graver.
	Pending bool
}

// Device is where push messages of a profile go.
type Device struct {
	ID      string
	Kind    string // webpush, fcm or apns
	Address string // a token, or the subscription as JSON
	AddedMs int64
}

// Engagement counts what a profile did with messages.
type Engagement struct {
	Sent, Opened, Clicked               uint64
	LastSentMs, LastOpenMs, LastClickMs int64
}

func (v *base) contactInfo(d *profile.Document) ContactInfo {
	x := ContactInfo{IsContact: d.IsContact, Engagement: Engagement{
		d.Engaged.Sent, d.Engaged.Opened, d.Engaged.Clicked, d.Engaged.LastSentMs, d.Engaged.LastOpenMs, d.Engaged.LastClickMs}}
	for _, n := range d.Lists {
		if id, ok := v.a.Contacts.ListIDs()[n]; ok {
			x.Lists = append(x.Lists, id)
		}
	}
	d.EachSuppression(func(b profile.Suppression) {
		x.Suppressions = append(x.Suppressions, Suppression{profile.Channels[b.Channel], b.Reason.String(), b.SinceMs, d.Pending(b.Channel)})
	})
	for _, y := range d.Devices {
		x.Devices = append(x.Devices, Device{string(y.ID), profile.DeviceKinds[y.Kind], string(y.Address), y.AddedMs})
	}
	return x
}

// Root is the profile that an ordinal stands for, through merges.
func (v Profiles) Root(ordinal uint32) uint32 { return v.a.Profiles.Root(ordinal) }

// Has reports whether an ordinal is that of a profile, neither merged into another nor
// erased.
func (v Profiles) Has(ordinal uint32) bool { return v.a.Engine.Universe().Contains(ordinal) }

// Consent is the profile's consent to a channel.
func (p *Profile) Consent(channel string) Consent {
	for _, c := range p.Consents {
		if c.Channel == channel {
			return c
		}
	}
	return Consent{Channel: channel, Status: profile.ConsentStatuses[0]}
}

// SuppressionReason is the reason of the suppression of a channel, "" if there is none.
func (p *Profile) SuppressionReason(channel string) string {
	for _, b := range p.Suppressions {
		if b.Channel == channel {
			return b.Reason
		}
	}
	return ""
}

// Pending reports whether a channel's double opt-in was asked for and not confirmed, also
// where something graver suppresses the channel.
func (p *Profile) Pending(channel string) bool {
	return slices.ContainsFunc(p.Suppressions, func(b Suppression) bool { return b.Channel == channel && b.Pending })
}

// Page lists profiles in the order in which they were made, from an
// ordinal on, limit at most. Anonymous ones are left out.
func (v Profiles) Page(from uint32, limit int) []uint32 {
	return profile.Page(v.identified(), from, limit)
}

// ConsentLog lists what a person said of channels and topics, the newest first.
func (v Profiles) ConsentLog(ordinal uint32) ([]consentlog.Entry, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, err
	}
	return v.a.ConsentLog.Entries(ordinal, &d)
}

// KnowsAll checks ordinals from history: a chunk with one that the state does
// not have could not be applied, now or ever again. The error wraps [account.ErrOtherHistory].
func (v Profiles) KnowsAll(ordinals []uint32) error {
	for _, o := range ordinals {
		if err := v.a.Knows(o); err != nil {
			return err
		}
	}
	return nil
}

// Person finds a profile by its id or, where that is "", by an e-mail. field says which
// of both it was found by, or not.
func (v Profiles) Person(profileID, email string) (ordinal uint32, field string, ok bool) {
	if email != "" {
		ordinal, ok = v.Find(identifier.Email, email)
		return ordinal, "email", ok
	}
	ordinal, ok = v.ResolveText(profileID)
	return ordinal, "profile_id", ok
}
