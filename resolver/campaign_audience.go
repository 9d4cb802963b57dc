package resolver

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
)

// AlreadySent is the reason for which those are passed over who were sent the campaign
// before.
const AlreadySent = "already sent"

// CampaignAudience is who a campaign would go to if it was started now: profiles, each
// once, and those among them who were sent it before. Both are the caller's.
func (v *View) CampaignAudience(c *CampaignStart) (audience, sent *roaring.Bitmap, err error) {
	x := v.a.campaigns[c.ID]
	if x == nil {
		return nil, nil, noCampaign()
	}
	if r := v.a.checkAudience(c.ListIDs, c.SegmentIDs); r != nil {
		return nil, nil, r
	}
	audience, r := v.a.audience(c)
	if r != nil {
		return nil, nil, r
	}
	return audience, roaring.And(audience, v.a.members(campaignSet(x.Number, setSent))), nil
}

// PassedOver says why a campaign would pass over a profile of its audience that was not
// sent it under its present ordinal, "" where it would not.
func (v *View) PassedOver(x *Campaign, ordinal uint32) (string, error) {
	var d profile.Document
	o := v.a.root(ordinal)
	if err := v.decode(o, &d); err != nil {
		return "", err
	}
	reason := v.a.whyUnreachable(&d, x.Medium())
	if reason == "" && sentToPast(v.a.members(campaignSet(x.Number, setSent)), &d) {
		reason = AlreadySent
	}
	if reason == "" {
		if refused, err := v.numberRefused(&d, o, x.Medium()); err != nil || refused {
			return NumberRefused, err
		}
	}
	return reason, nil
}

// WasSent reports whether a campaign was sent to a profile, under its present ordinal.
func (v *View) WasSent(x *Campaign, ordinal uint32) bool {
	return v.a.members(campaignSet(x.Number, setSent)).Contains(ordinal)
}
