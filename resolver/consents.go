package resolver

import (
	"slices"
	"strings"

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

// Channels and statuses by their number, see consentChannels.
const (
	channelEmail byte = 0
	channelSMS   byte = 1

	consentSubscribed   byte = 1
	consentUnsubscribed byte = 2

	sourceManual = "manual"

	maxSourceBytes = 100
)

var blockReasons = map[string]blockReason{"bounced": blockBounced, "complained": blockComplained, "suppressed": blockSuppressed}

// String is the reason's name.
func (r blockReason) String() string {
	switch r {
	case blockPending:
		return "pending"
	case blockBounced:
		return "bounced"
	case blockComplained:
		return "complained"
	case blockSuppressed:
		return "suppressed"
	}
	return ""
}

func channelOf(name string) (byte, *Refusal) {
	if i := slices.Index(consentChannels, name); i >= 0 {
		return byte(i), nil
	}
	return 0, invalid("channel", "channel Input should be %s", orList(consentChannels))
}

// orList writes alternatives as a sentence has them.
func orList(values []string) string {
	n := len(values) - 1
	return strings.Join(values[:n], ", ") + " or " + values[n]
}

// consent records a channel's consent in a document; it returns whether that
// changed the status.
func (m *Machine) consent(d *document, channel, status byte, source string) bool {
	for i := range d.consents {
		c := &d.consents[i]
		if c.channel != channel {
			continue
		}
		if c.status == status {
			return false
		}
		c.status, c.sinceMs, c.source = status, m.logTime, []byte(source)
		if status == consentSubscribed {
			c.subscribedMs = m.logTime
		}
		return true
	}
	c := consentState{channel: channel, status: status, sinceMs: m.logTime, source: []byte(source)}
	if status == consentSubscribed {
		c.subscribedMs = m.logTime
	}
	d.consents = append(d.consents, c)
	return true
}

// assume subscribes somebody who has said nothing of a channel, because an
// address of it was given or a device registered. What the person said before
// stays: only the person, or an explicit consent, lifts a refusal. A complaint
// is one as well.
func (m *Machine) assume(d *document, channel byte, source string) bool {
	if d.consentOf(channel) != nil || d.blocked(channel) == blockComplained {
		return false
	}
	return m.consent(d, channel, consentSubscribed, source)
}

// consentOf is what was said of a channel, nil if nothing was.
func (d *document) consentOf(channel byte) *consentState {
	for i := range d.consents {
		if c := &d.consents[i]; c.channel == channel && c.status != 0 {
			return c
		}
	}
	return nil
}

// subscribed tells whether a channel's consent is a subscription, blocked or not.
func (d *document) subscribed(channel byte) bool {
	c := d.consentOf(channel)
	return c != nil && c.status == consentSubscribed
}

// assumed tells whether a subscription was not said but assumed, see
// [Machine.assume].
func (c *consentState) assumed() bool {
	return c.status == consentSubscribed && (string(c.source) == sourceManual || string(c.source) == sourceDevice)
}

// said makes a subscription that was assumed one that was said. The date of the
// subscription stays.
func (m *Machine) said(d *document, channel byte, source string) bool {
	c := d.consentOf(channel)
	if c == nil || !c.assumed() || source == sourceManual || source == sourceDevice {
		return false
	}
	c.sinceMs, c.source = m.logTime, []byte(source)
	return true
}

// checkConsent reads a channel and what is said of it.
func checkConsent(channelName, statusName, source string) (channel, status byte, refusal *Refusal) {
	if channel, refusal = channelOf(channelName); refusal != nil {
		return 0, 0, refusal
	}
	status = byte(slices.Index(consentStatuses, statusName))
	switch {
	case status != consentSubscribed && status != consentUnsubscribed:
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
		m.amend(cmd, o, d, engine.FieldConsents, events...)
	case said:
		m.save(cmd.account, o, d)
	}
	return nil
}

// decideConsent records in a document what somebody said of a channel. It returns
// whether that changed what may be sent, or made a subscription that was assumed one
// that was said, and the events of it.
func (m *Machine) decideConsent(cmd *command, o uint32, d *document, c *ConsentSet) (changed, said bool, events []ownEvent) {
	channel, status, refusal := checkConsent(c.Channel, c.Status, c.Source)
	if refusal != nil {
		panic(refusal) // it was checked before
	}
	changed = m.consent(d, channel, status, c.Source)
	said = !changed && status == consentSubscribed && m.said(d, channel, c.Source)
	var failed []ownEvent
	switch {
	case status == consentUnsubscribed:
		// Who refuses is not waited for any more.
		changed = d.unblock(channel, blockPending) || changed
	case c.Confirm:
		changed = d.unblock(channel, blockPending) || changed
	case changed && channel == channelEmail && cmd.account.Settings.DoubleOptIn:
		if d.block(block{channel, blockPending, m.logTime}) {
			failed = m.askToConfirm(cmd, o, d)
		}
	}
	if !changed {
		return false, said, nil
	}
	x := ownEvent{typeSubscribed, properties{"channel": c.Channel, "source": c.Source}}
	if status == consentUnsubscribed {
		x.typ = typeUnsubscribed
	}
	if c.Campaign != "" {
		x.properties["campaign_id"] = c.Campaign
	}
	return true, said, append([]ownEvent{x}, failed...)
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
	was := d.blocked(channel)
	if reason == 0 {
		if !d.unblock(channel, blockBounced, blockComplained, blockSuppressed) {
			return nil
		}
		m.amend(cmd, o, d, engine.FieldConsents, ownEvent{typeUnsuppressed, properties{"channel": c.Channel, "reason": was.String(), "source": c.Source}})
		return nil
	}
	if d.block(block{channel, reason, m.logTime}) {
		m.amend(cmd, o, d, engine.FieldConsents, ownEvent{typeSuppressed, properties{"channel": c.Channel, "reason": c.Reason, "source": c.Source}})
	}
	return nil
}
