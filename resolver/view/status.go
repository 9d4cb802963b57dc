package view

import (
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/segment"
)

// The statuses of a contact on a channel; package segment has the rules.
const (
	StatusPending      = segment.ContactPending
	StatusSubscribed   = segment.ContactSubscribed
	StatusEngaged      = segment.ContactEngaged
	StatusAtRisk       = segment.ContactAtRisk
	StatusUnsubscribed = segment.ContactUnsubscribed
	StatusBounced      = segment.ContactBounced
	StatusComplained   = segment.ContactComplained
	StatusSuppressed   = segment.ContactSuppressed
)

// Status is a contact's status on a channel at an instant, "" for a contact who
// never subscribed to it: see [segment.Facts.Status].
func (p *Profile) Status(channel string, nowMs int64) string {
	return p.standing().Status(channel, nowMs)
}

// Subscribed reports whether the person may get marketing by e-mail: they subscribed, and
// did not unsubscribe, bounce or complain and are not suppressed. A contact without an
// e-mail is subscribed until they refuse, as every contact is that was just made. One
// with an e-mail and no consent for it is not: no campaign goes there.
func (p *Profile) Subscribed() bool {
	f := p.standing()
	if f.Status("email", 0) == "" {
		return p.IsContact && p.Newest(identifier.Email) == ""
	}
	return f.Subscribed()
}

// standing is what the profile's statuses follow from.
func (p *Profile) standing() *segment.Facts {
	f := &segment.Facts{Fields: segment.Fields{IsContact: p.IsContact, Engagement: p.Engagement.facts()}}
	for _, c := range p.Consents {
		f.Consents = append(f.Consents, segment.ConsentFact{Channel: c.Channel, Status: c.Status, SubscribedMs: c.SubscribedMs, HasDate: c.SubscribedMs != 0})
	}
	for _, b := range p.Suppressions {
		f.Suppressions = append(f.Suppressions, segment.SuppressionFact{Channel: b.Channel, Reason: b.Reason})
	}
	return f
}

func (e *Engagement) facts() segment.Engagement {
	return segment.Engagement{Sent: e.Sent, Opened: e.Opened, Clicked: e.Clicked, LastOpenMs: e.LastOpenMs, LastClickMs: e.LastClickMs}
}

// Score is the engagement score at an instant: see [segment.Engagement.Score].
func (e *Engagement) Score(nowMs int64) int {
	x := e.facts()
	return x.Score(nowMs)
}
