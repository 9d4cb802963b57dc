package campaigns

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// AlreadySent is the reason for which those are passed over who were sent the campaign
// before.
const AlreadySent = "already sent"

// checkAudience says which list or segment is not there.
func (s *State) checkAudience(lists, segments []string) *refuse.Refusal {
	if len(lists)+len(segments) > maxAudiences {
		return refuse.Invalid("list_id", "list_id and segment_ids must have at most %d ids together", maxAudiences)
	}
	for _, id := range lists {
		if !s.host.HasList(id) {
			return refuse.NotFound("list_id", "list_id: there is no list with the id %q", id)
		}
	}
	for _, id := range segments {
		if !s.host.HasSegment(id) {
			return refuse.NotFound("segment_ids", "segment_ids: there is no segment with the id %q", id)
		}
	}
	return nil
}

// audience is the union of lists and segments, each profile once.
func (s *State) audience(c *Start) (*roaring.Bitmap, *refuse.Refusal) {
	out := roaring.New()
	for _, id := range c.ListIDs {
		out.Or(s.host.ListMembers(id))
	}
	for _, id := range c.SegmentIDs {
		members, building := s.host.SegmentMembers(id)
		if building != "" {
			return nil, refuse.Conflicts("segment_ids", "segment_ids: %s is still being built; try again when it is live", building)
		}
		out.Or(members)
	}
	if c.Everybody {
		out.Or(s.host.Contacts())
	}
	return out, nil
}

// Audience is who a campaign would go to if it was started now: profiles, each once, and
// those among them who were sent it before. Both are the caller's. An error is a
// *refuse.Refusal.
func (s *State) Audience(c *Start) (audience, sent *roaring.Bitmap, err error) {
	x := s.campaigns[c.ID]
	if x == nil {
		return nil, nil, noCampaign()
	}
	if r := s.checkAudience(c.ListIDs, c.SegmentIDs); r != nil {
		return nil, nil, r
	}
	audience, r := s.audience(c)
	if r != nil {
		return nil, nil, r
	}
	return audience, roaring.And(audience, s.members(x, setSent)), nil
}

// WasSent reports whether a campaign was sent to a profile, under its present ordinal.
func (s *State) WasSent(x *Campaign, ordinal uint32) bool {
	return s.members(x, setSent).Contains(ordinal)
}

// WasSentToMerged reports whether a campaign was sent to one of the profiles that were
// merged into another one.
func (s *State) WasSentToMerged(x *Campaign, merged []profile.MergedProfile) bool {
	return sentToPast(s.members(x, setSent), merged)
}
