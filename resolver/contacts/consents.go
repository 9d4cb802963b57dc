package contacts

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment/engine"
)

// The types of the events of consents and suppressions.
const (
	EventSubscribed   = "subscribed"
	EventUnsubscribed = "unsubscribed"
	EventSuppressed   = "suppressed"
	EventUnsuppressed = "unsuppressed"
)

// The commands of consent.
const (
	CommandConsentSet     = "consent.set"
	CommandSuppressionSet = "block.set"
)

// ConsentSet records that a contact opted in or out of a channel.
type ConsentSet struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	Status  string `json:"status"` // subscribed or unsubscribed
	Source  string `json:"source"`
	// Confirm ends a double opt-in: it is for the link in the message.
	Confirm bool `json:"confirm,omitempty"`
	// Address is the e-mail that the link was sent to: its hash in hexadecimal. A
	// confirmation of one that is not the contact's newest is refused. Links of older builds
	// have none.
	Address string `json:"address,omitempty"`
	// Campaign is what led to it, if something did.
	Campaign string `json:"campaign,omitempty"`
}

// SuppressionSet suppresses a channel of a contact, or lifts its suppression.
type SuppressionSet struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// Reason is bounced, complained or suppressed; empty lifts the suppression.
	Reason string `json:"reason"`
	// Source says who decided: a provider, a person.
	Source string `json:"source"`
}

// SourceImport is the source of consents that a row of a file named.
const SourceImport = "import"

// MaxSourceBytes bounds the source of a consent.
const MaxSourceBytes = 100

var suppressionReasons = map[string]profile.SuppressionReason{"bounced": profile.SuppressionBounced, "complained": profile.SuppressionComplained, "suppressed": profile.SuppressionByAccount}

// ChannelOf is the number of a channel that a command names.
func ChannelOf(name string) (byte, *refuse.Refusal) {
	if i := slices.Index(profile.Channels, name); i >= 0 {
		return byte(i), nil
	}
	return 0, refuse.Invalid("channel", "channel Input should be %s", orList(profile.Channels))
}

// orList writes alternatives as a sentence has them.
func orList(values []string) string {
	n := len(values) - 1
	return strings.Join(values[:n], ", ") + " or " + values[n]
}

// Record records a channel's consent in a document; it returns whether that
// changed the status.
func Record(d *profile.Document, atMs int64, channel, status byte, source string) bool {
	for i := range d.Consents {
		c := &d.Consents[i]
		if c.Channel != channel {
			continue
		}
		if c.Status == status {
			return false
		}
		was := *c
		c.Status, c.SinceMs, c.Source = status, atMs, []byte(source)
		if status == profile.ConsentSubscribed {
			c.SubscribedMs = atMs
		}
		d.NoteConsent(profile.ConsentChange{Was: was, Now: *c})
		return true
	}
	c := profile.Consent{Channel: channel, Status: status, SinceMs: atMs, Source: []byte(source)}
	if status == profile.ConsentSubscribed {
		c.SubscribedMs = atMs
	}
	d.Consents = append(d.Consents, c)
	d.NoteConsent(profile.ConsentChange{Now: c})
	return true
}

// Assume subscribes a profile that has no consent for a channel, because an
// address of it was given or a device registered. An opt-out stays: only the person, or
// an explicit consent, lifts it. A complaint is an opt-out as well.
func Assume(d *profile.Document, atMs int64, channel byte, source string) bool {
	if d.ConsentOf(channel) != nil || d.GravestSuppression(channel) == profile.SuppressionComplained {
		return false
	}
	return Record(d, atMs, channel, profile.ConsentSubscribed, source)
}

// Say makes a subscription that was assumed one that was said. The date of the
// subscription stays.
func Say(d *profile.Document, atMs int64, channel byte, source string) bool {
	c := d.ConsentOf(channel)
	if c == nil || !c.Assumed() || source == profile.SourceManual || source == profile.SourceDevice {
		return false
	}
	was := *c
	c.SinceMs, c.Source = atMs, []byte(source)
	d.NoteConsent(profile.ConsentChange{Was: was, Now: *c})
	return true
}

// checkConsent reads a channel and what is said of it.
func checkConsent(channelName, statusName, source string) (channel, status byte, refusal *refuse.Refusal) {
	if channel, refusal = ChannelOf(channelName); refusal != nil {
		return 0, 0, refusal
	}
	status = byte(slices.Index(profile.ConsentStatuses, statusName))
	switch {
	case status != profile.ConsentSubscribed && status != profile.ConsentUnsubscribed:
		refusal = refuse.Invalid("status", "status Input should be subscribed or unsubscribed")
	case len(source) > MaxSourceBytes:
		refusal = refuse.Invalid("source", "source must have at most %d bytes", MaxSourceBytes)
	}
	return channel, status, refusal
}

func (s *State) setConsent(tx *feature.Tx, c ConsentSet) *refuse.Refusal {
	if _, _, refusal := checkConsent(c.Channel, c.Status, c.Source); refusal != nil {
		return refusal
	}
	o, d, refusal := s.host.Profile(c.ID)
	if refusal != nil {
		return refusal
	}
	if c.Address != "" && !s.isNewestEmail(d, c.Address) {
		return &refuse.Refusal{Code: "conflict", Field: "address", Message: "address: the contact has another e-mail by now, which is not confirmed"}
	}
	if c.Campaign != "" {
		d.Evidence = &profile.Evidence{Campaign: c.Campaign}
	}
	changed, said, events := s.decide(tx, o, d, &c)
	switch {
	case changed:
		s.host.Update(o, d, engine.FieldConsents, events...)
	case said:
		s.host.Save(o, d)
	}
	return nil
}

// isNewestEmail reports whether the newest e-mail of a profile has a hash in hexadecimal.
func (s *State) isNewestEmail(d *profile.Document, hash string) bool {
	want, err := identifier.ParseHash(hash)
	if err != nil {
		return false
	}
	h, ok := s.hasher().HashIdentifier(identifier.Email, d.Newest(identifier.Email), &s.buf)
	return ok && h == want
}

// decide records a consent or an opt-out for a channel in a document. It returns whether that
// changed what may be sent, or made a subscription that was assumed one that was said, and
// the events of it.
func (s *State) decide(tx *feature.Tx, o uint32, d *profile.Document, c *ConsentSet) (changed, said bool, events []feature.Event) {
	channel, status, refusal := checkConsent(c.Channel, c.Status, c.Source)
	if refusal != nil {
		panic(refusal) // it was checked before
	}
	changed = Record(d, tx.AtMs, channel, status, c.Source)
	said = !changed && status == profile.ConsentSubscribed && Say(d, tx.AtMs, channel, c.Source)
	var failed []feature.Event
	switch {
	case status == profile.ConsentUnsubscribed:
		// A refusal ends the wait for a confirmation.
		changed = d.Unsuppress(channel, profile.SuppressionPending) || changed
	case c.Confirm:
		if d.Unsuppress(channel, profile.SuppressionPending) {
			noteConfirmed(d, tx.AtMs, channel, c.Source)
			changed = true
		}
	case changed && channel == profile.ChannelEmail && s.host.DoubleOptIn():
		if d.Suppress(profile.Suppression{Channel: channel, Reason: profile.SuppressionPending, SinceMs: tx.AtMs}, tx.Rules) && d.GravestSuppression(channel) == profile.SuppressionPending {
			failed = s.host.AskToConfirm(o, d)
		}
	}
	if !changed {
		return false, said, nil
	}
	x := feature.NewEvent(EventSubscribed, feature.Properties{"channel": c.Channel, "source": c.Source})
	if status == profile.ConsentUnsubscribed {
		x.Type = EventUnsubscribed
	}
	if c.Campaign != "" {
		x.Properties["campaign_id"] = c.Campaign
	}
	return true, said, append([]feature.Event{x}, failed...)
}

// noteConfirmed notes that a subscription was confirmed: the log has both, the consent stays
// as it was said.
func noteConfirmed(d *profile.Document, atMs int64, channel byte, source string) {
	if c := d.ConsentOf(channel); c != nil && c.SinceMs != atMs {
		d.NoteConsent(profile.ConsentChange{Was: *c, Now: profile.Consent{Channel: channel, Status: profile.ConsentSubscribed, SinceMs: atMs, Source: []byte(source)}})
	}
}

// GiveConsent subscribes a profile to a channel because the person said so and owns the
// address, so that a double opt-in which is pending there ends. Its document has the evidence.
func (s *State) GiveConsent(tx *feature.Tx, o uint32, d *profile.Document, channel, source string) (fields engine.Fields, events []feature.Event) {
	changed, said, events := s.decide(tx, o, d, &ConsentSet{Channel: channel, Status: profile.ConsentStatuses[profile.ConsentSubscribed], Source: source, Confirm: true})
	if changed || said {
		fields = engine.FieldConsents
	}
	return fields, events
}

func (s *State) setSuppression(tx *feature.Tx, c SuppressionSet) *refuse.Refusal {
	channel, refusal := ChannelOf(c.Channel)
	if refusal != nil {
		return refusal
	}
	reason := suppressionReasons[c.Reason]
	if c.Reason != "" && reason == 0 {
		return refuse.Invalid("reason", "reason Input should be bounced, complained or suppressed, or empty to lift the suppression")
	}
	if len(c.Source) > MaxSourceBytes {
		return refuse.Invalid("source", "source must have at most %d bytes", MaxSourceBytes)
	}
	o, d, refusal := s.host.Profile(c.ID)
	if refusal != nil {
		return refusal
	}
	was := d.GravestSuppression(channel)
	if reason == 0 {
		if !d.Unsuppress(channel, profile.SuppressionBounced, profile.SuppressionComplained, profile.SuppressionByAccount) {
			return nil
		}
		events := []feature.Event{feature.NewEvent(EventUnsuppressed, feature.Properties{"channel": c.Channel, "reason": was.String(), "source": c.Source})}
		if channel == profile.ChannelEmail && d.Pending(channel) && d.Subscribed(channel) {
			// The request may never have arrived, or never have gone out.
			events = append(events, s.host.AskToConfirm(o, d)...)
		}
		s.host.Update(o, d, engine.FieldConsents, events...)
		return nil
	}
	if d.Suppress(profile.Suppression{Channel: channel, Reason: reason, SinceMs: tx.AtMs}, tx.Rules) {
		s.host.Update(o, d, engine.FieldConsents, feature.NewEvent(EventSuppressed, feature.Properties{"channel": c.Channel, "reason": c.Reason, "source": c.Source}))
	}
	return nil
}
