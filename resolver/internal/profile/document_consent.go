package profile

import "slices"

// Numbers of channels and of consent statuses that the code names, see
// Channels and ConsentStatuses.
const (
	ChannelEmail    byte = 0
	ChannelSMS      byte = 1
	ChannelWhatsApp byte = 3
	ChannelIM       byte = 4

	ConsentSubscribed   byte = 1
	ConsentUnsubscribed byte = 2
)

// The sources of consents that were not said but assumed.
const (
	// SourceManual is the source of the consent that an address brings.
	SourceManual = "manual"
	// SourceDevice is the source of the consent that a device brings.
	SourceDevice = "device"
)

// Channels and ConsentStatuses are the names by the numbers on disk.
var (
	Channels        = []string{"email", "sms", "push", "whatsapp", "im", "in_app"}
	ConsentStatuses = []string{"never_subscribed", "subscribed", "unsubscribed"}
)

// Evidence is the evidence of a given or withdrawn consent, as far as it is known.
type Evidence struct {
	// Message is the id of the message whose link or answer it came by, Campaign, Flow and
	// Step are what sent that message.
	Message  string `json:"message_id,omitempty"`
	Campaign string `json:"campaign_id,omitempty"`
	Flow     string `json:"flow_id,omitempty"`
	Step     string `json:"step_id,omitempty"`
	// Client is the network from which the person answered, never a whole address.
	Client string `json:"client,omitempty"`
	// Wording is what the person read beside the choice.
	Wording string `json:"wording,omitempty"`
	// Form is the id of the form that it came by, SubmittedMs when that was sent where it was
	// confirmed later (Unix ms).
	Form        string `json:"form_id,omitempty"`
	SubmittedMs int64  `json:"submitted_ms,omitempty"`
}

// ConsentChange is a change of what a person said, on its way to the log of consents.
type ConsentChange struct {
	Was, Now Consent // a status of 0 is none
	// List is the id of the topic that it is about, Name the topic's; "" for a channel.
	List, Name string
	Evidence   Evidence
}

// NoteConsent notes a change for the log of consents, with the document's evidence.
func (d *Document) NoteConsent(c ConsentChange) {
	if d.Evidence != nil {
		c.Evidence = *d.Evidence
	}
	d.Changes = append(d.Changes, c)
}

// NameOf is the name at a place of Channels or ConsentStatuses, "unknown" where the list
// has none.
func NameOf(list []string, i byte) string {
	if int(i) < len(list) {
		return list[i]
	}
	return "unknown"
}

// ConsentOf is the consent to a channel, nil if there is none.
func (d *Document) ConsentOf(channel byte) *Consent {
	for i := range d.Consents {
		if c := &d.Consents[i]; c.Channel == channel && c.Status != 0 {
			return c
		}
	}
	return nil
}

// Subscribed reports whether a channel's consent is a subscription, suppressed or not.
func (d *Document) Subscribed(channel byte) bool {
	c := d.ConsentOf(channel)
	return c != nil && c.Status == ConsentSubscribed
}

// Unsubscribed reports whether the person has withdrawn a channel's consent.
func (d *Document) Unsubscribed(channel byte) bool {
	c := d.ConsentOf(channel)
	return c != nil && c.Status == ConsentUnsubscribed
}

// Assumed reports whether a subscription was not said but assumed: an address
// of the channel was given, or a device registered.
func (c *Consent) Assumed() bool {
	return c.Status == ConsentSubscribed && (string(c.Source) == SourceManual || string(c.Source) == SourceDevice)
}

// MergeConsents takes over the consents of a profile that became part of this
// one. What was assumed of one does not count where the other has complained: it
// would not have been assumed of both in one.
func (d *Document) MergeConsents(o *Document) {
	d.Consents = slices.DeleteFunc(d.Consents, func(c Consent) bool {
		goes := c.Assumed() && o.onlyComplained(c.Channel)
		if goes {
			d.NoteConsent(ConsentChange{Was: c})
		}
		return goes
	})
	for _, c := range o.Consents {
		if !c.Assumed() || !d.onlyComplained(c.Channel) {
			d.MergeConsent(c)
		}
	}
}

// onlyComplained reports whether a complaint is all that was said of a channel.
func (d *Document) onlyComplained(channel byte) bool {
	return d.GravestSuppression(channel) == SuppressionComplained && d.ConsentOf(channel) == nil
}

// MergeConsent takes over a channel's consent when it is newer; of two equally
// old ones the refusal stays. A refusal gives way to a newer subscription only if
// that was said: one that was assumed lifts none here either.
func (d *Document) MergeConsent(c Consent) {
	for i := range d.Consents {
		have := &d.Consents[i]
		if have.Channel != c.Channel {
			continue
		}
		subscribed := max(have.SubscribedMs, c.SubscribedMs)
		if c.over(have) {
			d.NoteConsent(ConsentChange{Was: *have, Now: c})
			*have = c
		} else {
			d.NoteConsent(ConsentChange{Was: c, Now: *have})
		}
		have.SubscribedMs = subscribed
		return
	}
	d.Consents = append(d.Consents, c)
}

// over reports whether c holds rather than o when two profiles become one.
func (c *Consent) over(o *Consent) bool {
	refused, other := c.Status == ConsentUnsubscribed, o.Status == ConsentUnsubscribed
	switch {
	case refused && o.Assumed():
		return true
	case other && c.Assumed():
		return false
	case c.SinceMs == o.SinceMs:
		return c.Status > o.Status
	}
	return c.SinceMs > o.SinceMs
}
