package segment

import "slices"

// The statuses of a contact on a channel, as [Facts.Status] finds them.
const (
	ContactPending      = "Pending"
	ContactSubscribed   = "Subscribed"
	ContactEngaged      = "Engaged"
	ContactAtRisk       = "At risk"
	ContactUnsubscribed = "Unsubscribed"
	ContactBounced      = "Bounced"
	ContactComplained   = "Complained"
	ContactSuppressed   = "Suppressed"
)

// ContactStatuses are all of them.
var ContactStatuses = []string{
	ContactPending, ContactSubscribed, ContactEngaged, ContactAtRisk,
	ContactUnsubscribed, ContactBounced, ContactComplained, ContactSuppressed,
}

// Why a channel is suppressed.
const (
	SuppressionPending    = "pending" // double opt-in was asked for and not confirmed
	SuppressionBounced    = "bounced"
	SuppressionComplained = "complained"
	SuppressionByAccount  = "suppressed"
)

// The kinds of push devices.
const (
	DeviceWebPush = "webpush"
	DeviceFCM     = "fcm"
	DeviceAPNs    = "apns"
)

// The rules of engagement: a contact who opened or clicked within engagedDays is
// Engaged; one who was sent atRiskSends messages or more and did neither for
// atRiskDays is At risk.
const (
	engagedDays = 30
	atRiskDays  = 90
	atRiskSends = 5
)

// The engagement score: clicks and opens count, and lose half their weight every
// scoreHalfDays days since the last one.
const (
	scoreOpen     = 5
	scoreClick    = 15
	scoreMax      = 100
	scoreHalfDays = 30
	// scoreHalvings is after how many halvings nothing is left of scoreMax.
	scoreHalvings = 7
)

// channelEmail is the channel on which engagement makes a status.
const channelEmail = "email"

// Engagement is a profile's engagement with messages. Times are Unix milliseconds,
// 0 for never.
type Engagement struct {
	Sent, Opened, Clicked   uint64
	LastOpenMs, LastClickMs int64
}

func (e *Engagement) lastMs() int64 { return max(e.LastOpenMs, e.LastClickMs) }

// Score is the engagement score at an instant, from 0 to 100: 5 for each open
// and 15 for each click, of the last messages at most 100, halved for every 30
// days since the last of them.
func (e *Engagement) Score(atMs int64) int {
	points := min(e.Opened, scoreMax)*scoreOpen + min(e.Clicked, scoreMax)*scoreClick
	score := int(min(points, scoreMax))
	for age := (atMs - e.lastMs()) / (scoreHalfDays * msPerDay); age > 0 && score > 0; age-- {
		score /= 2
	}
	return score
}

// eachTurn calls fn for the instants from which on the score may be another.
func (e *Engagement) eachTurn(fn func(ms int64)) {
	if e.Opened == 0 && e.Clicked == 0 {
		return
	}
	for n := range int64(scoreHalvings) {
		fn(e.lastMs() + (n+1)*scoreHalfDays*msPerDay)
	}
}

// SuppressionReason is why a channel is suppressed, "" if it is not.
func (f *Facts) SuppressionReason(channel string) string {
	for i := range f.Suppressions {
		if f.Suppressions[i].Channel == channel {
			return f.Suppressions[i].Reason
		}
	}
	return ""
}

// suppressed reports whether a channel may not be sent to until that is lifted. A
// contact who has not confirmed yet is not suppressed.
func (f *Facts) suppressed(channel string) bool {
	switch f.SuppressionReason(channel) {
	case SuppressionBounced, SuppressionComplained, SuppressionByAccount:
		return true
	}
	return false
}

// consentOf is the consent to a channel; nil if there is none.
func (f *Facts) consentOf(channel string) *ConsentFact {
	for i := range f.Consents {
		if f.Consents[i].Channel == channel {
			return &f.Consents[i]
		}
	}
	return nil
}

// Status is the contact's status on a channel at an instant, "" for a contact who
// never subscribed to it. What forbids sending comes first, the gravest of it
// before all.
func (f *Facts) Status(channel string, atMs int64) string {
	reason := f.SuppressionReason(channel)
	switch reason {
	case SuppressionByAccount:
		return ContactSuppressed
	case SuppressionComplained:
		return ContactComplained
	case SuppressionBounced:
		return ContactBounced
	}
	c := f.consentOf(channel)
	switch {
	case c == nil:
		return ""
	case c.Status == StatusUnsubscribed:
		return ContactUnsubscribed
	case c.Status != StatusSubscribed:
		return ""
	case reason == SuppressionPending:
		return ContactPending
	case channel != channelEmail:
		return ContactSubscribed
	}
	switch last := f.Fields.Engagement.lastMs(); {
	case last > atMs-engagedDays*msPerDay && last > 0:
		return ContactEngaged
	case f.Fields.Engagement.Sent >= atRiskSends && last <= atMs-atRiskDays*msPerDay &&
		// Without a reaction on record, the subscription itself must be that old.
		(last > 0 || c.SubscribedMs <= atMs-atRiskDays*msPerDay):
		return ContactAtRisk
	}
	return ContactSubscribed
}

// Subscribed is the field `subscribed` of definitions that were saved when it still held
// for contacts who had refused nothing, see [Node.UseCurrentFields]: for none who
// unsubscribed, bounced, complained or were suppressed, but also for those who never
// subscribed or have not confirmed.
func (f *Facts) Subscribed() bool {
	// Which instant does not matter: time leads only from one status that may be
	// sent to into another.
	switch f.Status(channelEmail, 0) {
	case ContactUnsubscribed, ContactBounced, ContactComplained, ContactSuppressed:
		return false
	case "":
		return f.Fields.IsContact
	}
	return true
}

// Timed reports whether time alone can change the answer.
func (a *Attribute) Timed() bool {
	p := &a.Predicate
	switch {
	case p.Timed(), a.Field == FieldScore:
		return true
	case p.Path[0] != FieldStatus || p.Path[1] != channelEmail || len(p.Values) == 0:
		return false
	}
	// Time leads from one of these statuses to another. It changes no answer
	// that is the same for all of them.
	named := 0
	for _, s := range []string{ContactSubscribed, ContactEngaged, ContactAtRisk} {
		if slices.ContainsFunc(p.Values, func(v Value) bool { return v.Str == s }) {
			named++
		}
	}
	return named == 1 || named == 2
}

// EachTurn calls fn for the instants, in Unix milliseconds and any order, from
// which on a timed condition may get another answer, where its value itself
// changes with time. Between them the answer stays.
func (a *Attribute) EachTurn(f *Facts, fn func(ms int64)) {
	e := &f.Fields.Engagement
	if a.Field == FieldScore {
		e.eachTurn(fn)
		return
	}
	c := f.consentOf(channelEmail)
	if c == nil || c.Status != StatusSubscribed {
		return
	}
	last := e.lastMs()
	if last > 0 {
		fn(last + engagedDays*msPerDay)
	}
	if e.Sent >= atRiskSends {
		if last == 0 {
			last = c.SubscribedMs
		}
		fn(last + atRiskDays*msPerDay)
	}
}
