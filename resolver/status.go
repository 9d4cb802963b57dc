package resolver

// The statuses of a contact on a channel.
const (
	StatusPending      = "Pending"
	StatusSubscribed   = "Subscribed"
	StatusEngaged      = "Engaged"
	StatusAtRisk       = "At risk"
	StatusUnsubscribed = "Unsubscribed"
	StatusBounced      = "Bounced"
	StatusComplained   = "Complained"
	StatusSuppressed   = "Suppressed"
)

// The rules of engagement: who opened or clicked within engagedDays is Engaged;
// who was sent atRiskSends messages or more and did neither for atRiskDays is
// At risk.
const (
	dayMs       = 86_400_000
	engagedDays = 30
	atRiskDays  = 90
	atRiskSends = 5
)

// Status is a contact's status on a channel at an instant, "" for somebody who
// never subscribed to it. What forbids sending comes first, the gravest of it
// before all.
func (p *Profile) Status(channel string, nowMs int64) string {
	blocked := p.Blocked(channel)
	switch blocked {
	case "suppressed":
		return StatusSuppressed
	case "complained":
		return StatusComplained
	case "bounced":
		return StatusBounced
	}
	switch p.Consent(channel).Status {
	case consentStatuses[consentUnsubscribed]:
		return StatusUnsubscribed
	case consentStatuses[consentSubscribed]:
	default:
		return ""
	}
	if blocked == "pending" {
		return StatusPending
	}
	if channel == consentChannels[channelEmail] {
		switch last := max(p.LastOpenMs, p.LastClickMs); {
		case last > nowMs-engagedDays*dayMs && last > 0:
			return StatusEngaged
		case p.Sent >= atRiskSends && last <= nowMs-atRiskDays*dayMs && p.firstSendLongAgo(nowMs):
			return StatusAtRisk
		}
	}
	return StatusSubscribed
}

// firstSendLongAgo tells whether the contact had atRiskDays to react: without
// a reaction on record, the subscription itself must be that old.
func (p *Profile) firstSendLongAgo(nowMs int64) bool {
	return max(p.LastOpenMs, p.LastClickMs) > 0 || p.Consent(consentChannels[channelEmail]).SubscribedMs <= nowMs-atRiskDays*dayMs
}

// The engagement score: clicks and opens count, and lose half their weight
// every scoreHalfDays days since the last one.
const (
	scoreOpen     = 5
	scoreClick    = 15
	scoreMax      = 100
	scoreHalfDays = 30
)

// Score is the engagement score at an instant, from 0 to 100: 5 for each open
// and 15 for each click, of the last messages at most 100, halved for every 30
// days since the last of them.
func (e *Engagement) Score(nowMs int64) int {
	points := min(e.Opened, scoreMax)*scoreOpen + min(e.Clicked, scoreMax)*scoreClick
	score := int(min(points, scoreMax))
	last := max(e.LastOpenMs, e.LastClickMs)
	for age := (nowMs - last) / (scoreHalfDays * dayMs); age > 0 && score > 0; age-- {
		score /= 2
	}
	return score
}
