package resolver

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// The commands of consent.
const (
	CommandConsentSet = "consent.set"
	CommandBlockSet   = "block.set"
)

// ConsentSet records that a contact opted in or out of a channel.
type ConsentSet struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	Status  string `json:"status"` // subscribed or unsubscribed
	Source  string `json:"source"`
	// Confirm ends a double opt-in: it is for the link in the message.
	Confirm bool `json:"confirm,omitempty"`
	// Campaign is what led to it, if something did.
	Campaign string `json:"campaign,omitempty"`
}

// BlockSet blocks a channel of a contact, or lifts a block.
type BlockSet struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// Reason is bounced, complained or suppressed; empty lifts the block.
	Reason string `json:"reason"`
	// Source says who decided: a provider, a person.
	Source string `json:"source"`
}

// SourceImport is the source of consents that a row of a file named.
const SourceImport = "import"

// maxSourceBytes bounds the source of a consent.
const maxSourceBytes = 100

var blockReasons = map[string]profile.BlockReason{"bounced": profile.BlockBounced, "complained": profile.BlockComplained, "suppressed": profile.BlockSuppressed}

func channelOf(name string) (byte, *Refusal) {
	if i := slices.Index(profile.Channels, name); i >= 0 {
		return byte(i), nil
	}
	return 0, invalid("channel", "channel Input should be %s", orList(profile.Channels))
}

// orList writes alternatives as a sentence has them.
func orList(values []string) string {
	n := len(values) - 1
	return strings.Join(values[:n], ", ") + " or " + values[n]
}

// consent records a channel's consent in a document; it returns whether that
// changed the status.
func (m *Machine) consent(d *profile.Document, channel, status byte, source string) bool {
	for i := range d.Consents {
		c := &d.Consents[i]
		if c.Channel != channel {
			continue
		}
		if c.Status == status {
			return false
		}
		c.Status, c.SinceMs, c.Source = status, m.logTime, []byte(source)
		if status == profile.ConsentSubscribed {
			c.SubscribedMs = m.logTime
		}
		return true
	}
	c := profile.Consent{Channel: channel, Status: status, SinceMs: m.logTime, Source: []byte(source)}
	if status == profile.ConsentSubscribed {
		c.SubscribedMs = m.logTime
	}
	d.Consents = append(d.Consents, c)
	return true
}

// assume subscribes somebody who has said nothing of a channel, because an
// address of it was given or a device registered. What the person said before
// stays: only the person, or an explicit consent, lifts a refusal. A complaint
// is one as well.
func (m *Machine) assume(d *profile.Document, channel byte, source string) bool {
	if d.ConsentOf(channel) != nil || d.Blocked(channel) == profile.BlockComplained {
		return false
	}
	return m.consent(d, channel, profile.ConsentSubscribed, source)
}

// said makes a subscription that was assumed one that was said. The date of the
// subscription stays.
func (m *Machine) said(d *profile.Document, channel byte, source string) bool {
	c := d.ConsentOf(channel)
	if c == nil || !c.Assumed() || source == profile.SourceManual || source == profile.SourceDevice {
		return false
	}
	c.SinceMs, c.Source = m.logTime, []byte(source)
	return true
}

// checkConsent reads a channel and what is said of it.
func checkConsent(channelName, statusName, source string) (channel, status byte, refusal *Refusal) {
	if channel, refusal = channelOf(channelName); refusal != nil {
		return 0, 0, refusal
	}
	status = byte(slices.Index(profile.ConsentStatuses, statusName))
	switch {
	case status != profile.ConsentSubscribed && status != profile.ConsentUnsubscribed:
		refusal = invalid("status", "status Input should be subscribed or unsubscribed")
	case len(source) > maxSourceBytes:
		refusal = invalid("source", "source must have at most %d bytes", maxSourceBytes)
	}
	return channel, status, refusal
}

func (m *Machine) setConsent(cmd *command, c ConsentSet) *Refusal {
	if _, _, refusal := checkConsent(c.Channel, c.Status, c.Source); refusal != nil {
		return refusal
	}
	o, d, refusal := m.profileOf(cmd.account, c.ID)
	if refusal != nil {
		return refusal
	}
	changed, said, events := m.decideConsent(cmd, o, d, &c)
	switch {
	case changed:
		m.updateProfile(cmd, o, d, engine.FieldConsents, events...)
	case said:
		m.save(cmd.account, o, d)
	}
	return nil
}

// decideConsent records in a document what somebody said of a channel. It returns
// whether that changed what may be sent, or made a subscription that was assumed one
// that was said, and the events of it.
func (m *Machine) decideConsent(cmd *command, o uint32, d *profile.Document, c *ConsentSet) (changed, said bool, events []feature.Event) {
	channel, status, refusal := checkConsent(c.Channel, c.Status, c.Source)
	if refusal != nil {
		panic(refusal) // it was checked before
	}
	changed = m.consent(d, channel, status, c.Source)
	said = !changed && status == profile.ConsentSubscribed && m.said(d, channel, c.Source)
	var failed []feature.Event
	switch {
	case status == profile.ConsentUnsubscribed:
		// Who refuses is not waited for any more.
		changed = d.Unblock(channel, profile.BlockPending) || changed
	case c.Confirm:
		changed = d.Unblock(channel, profile.BlockPending) || changed
	case changed && channel == profile.ChannelEmail && cmd.account.Settings.DoubleOptIn:
		if d.Block(profile.Block{Channel: channel, Reason: profile.BlockPending, SinceMs: m.logTime}) {
			failed = m.askToConfirm(cmd, o, d)
		}
	}
	if !changed {
		return false, said, nil
	}
	x := feature.NewEvent(typeSubscribed, feature.Properties{"channel": c.Channel, "source": c.Source})
	if status == profile.ConsentUnsubscribed {
		x.Type = typeUnsubscribed
	}
	if c.Campaign != "" {
		x.Properties["campaign_id"] = c.Campaign
	}
	return true, said, append([]feature.Event{x}, failed...)
}

func (m *Machine) setBlock(cmd *command, c BlockSet) *Refusal {
	channel, refusal := channelOf(c.Channel)
	if refusal != nil {
		return refusal
	}
	reason := blockReasons[c.Reason]
	if c.Reason != "" && reason == 0 {
		return invalid("reason", "reason Input should be bounced, complained or suppressed, or empty to lift the block")
	}
	if len(c.Source) > maxSourceBytes {
		return invalid("source", "source must have at most %d bytes", maxSourceBytes)
	}
	o, d, refusal := m.profileOf(cmd.account, c.ID)
	if refusal != nil {
		return refusal
	}
	was := d.Blocked(channel)
	if reason == 0 {
		if !d.Unblock(channel, profile.BlockBounced, profile.BlockComplained, profile.BlockSuppressed) {
			return nil
		}
		m.updateProfile(cmd, o, d, engine.FieldConsents, feature.NewEvent(typeUnsuppressed, feature.Properties{"channel": c.Channel, "reason": was.String(), "source": c.Source}))
		return nil
	}
	if d.Block(profile.Block{Channel: channel, Reason: reason, SinceMs: m.logTime}) {
		m.updateProfile(cmd, o, d, engine.FieldConsents, feature.NewEvent(typeSuppressed, feature.Properties{"channel": c.Channel, "reason": c.Reason, "source": c.Source}))
	}
	return nil
}
