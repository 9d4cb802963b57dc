package view

import (
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/reach"
)

// PassedOver says why a campaign on one channel, or a part of one on several, would pass over
// a profile of its audience that was not sent it under its present ordinal, "" where it would
// not. nowMs is the time (Unix ms).
func (v *View) PassedOver(x *campaigns.Campaign, ordinal uint32, nowMs int64) (string, error) {
	var d profile.Document
	o := v.a.Profiles.Root(ordinal)
	if err := v.decode(o, &d); err != nil {
		return "", err
	}
	reason := v.a.WhyUnreachable(&d, x.Medium())
	if reason == "" && v.a.Campaigns.WasSentToMerged(x, d.Merged) {
		reason = campaigns.AlreadySent
	}
	if reason == "" && x.TextOnly() && !v.Reach().MayWriteFreely(o, string(d.Newest(identifier.Phone)), nowMs) {
		reason = NotInConversation
	}
	if reason == "" && leftAudience(v.a, x.ID, o) {
		reason = LeftTopics
	}
	if reason == "" {
		if refused, err := reach.NumberRefused(holders{&v.base}, &d, o, x.Medium()); err != nil || refused {
			return reach.ReasonNumberRefused, err
		}
	}
	return reason, nil
}

// LeftTopics is why a campaign passes over a person who left its lists while it is being sent.
const LeftTopics = "left the list on the preference page"

// leftAudience reports whether a person left a list that a campaign is being sent to, and is on
// none of its lists any more.
func leftAudience(a *account.State, campaign string, ordinal uint32) bool {
	run, ok := a.Campaigns.Run(campaign)
	if !ok || run.Status != campaigns.RunSending || len(run.ListIDs) == 0 || len(run.SegmentIDs) > 0 {
		return false
	}
	left := false
	for _, id := range run.ListIDs {
		l := a.Contacts.List(id)
		if l == nil {
			continue
		}
		if a.Contacts.Members(*l).Contains(ordinal) {
			return false
		}
		left = left || a.Contacts.HasLeft(ordinal, l)
	}
	return left
}
