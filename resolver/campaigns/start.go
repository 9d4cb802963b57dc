package campaigns

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Start begins to send a campaign.
type Start struct {
	ID string `json:"id"`
	Plan
	// Variants has one content, several for an A/B test, and for a campaign of several
	// channels one for each of them, in their order.
	Variants []Content `json:"variants"`
	AB       *ABTest   `json:"ab,omitempty"`
	// Channels are those of the campaign that the contents were made of: it is refused if they
	// have changed since. Empty for a campaign on one channel.
	Channels []string `json:"channels,omitempty"`
	// Everybody sends to all contacts when neither lists nor segments are named.
	Everybody bool `json:"everybody,omitempty"`
	// Devices leaves out people without a device; without lists and segments it sends to
	// all who have one.
	Devices bool `json:"devices,omitempty"`
	// ScheduledMs is the schedule that starts it, 0 where a user does.
	ScheduledMs int64 `json:"scheduled_ms,omitempty"`
	// CountsSent counts those who were sent the campaign before among the run's recipients,
	// as skipped. Starts of before apply version 10 left them out of both.
	CountsSent bool `json:"counts_sent,omitempty"`
	// KeptLinks is set where the links of the contents begin with those of the run before. In
	// starts of before, the links of a run replaced those.
	KeptLinks *KeptLinks `json:"kept_links,omitempty"`
	// IfVersion is what the contents were made of, see [State.StartVersion]: the start is refused
	// if that has changed since. Empty where they are made of nothing that can change, and in
	// starts of before apply version 26.
	IfVersion string `json:"if_version,omitempty"`
}

// KeptLinks is what a start says of the links that the campaign was sent with before.
type KeptLinks struct {
	// Counts are how many links each content of the run before had when these were made; if
	// another run came since, the start is refused.
	Counts []int `json:"counts,omitempty"`
	// More are those of contents that this run has none of.
	More [][]string `json:"more,omitempty"`
}

// start fixes the recipients. Those who were sent the campaign before are left out.
func (s *State) start(tx *feature.Tx, c Start) *refuse.Refusal { return s.startRun(tx, c, true) }

// startUnrecorded is start of logs in which runs that are over are not put on record.
func (s *State) startUnrecorded(tx *feature.Tx, c Start) *refuse.Refusal {
	return s.startRun(tx, c, false)
}

func (s *State) startRun(tx *feature.Tx, c Start, record bool) *refuse.Refusal {
	x := s.campaigns[c.ID]
	if x == nil {
		return noCampaign()
	}
	old := s.runs[c.ID]
	if old.Busy() {
		return refuse.Conflicts("", "the campaign is being sent; wait until that is done")
	}
	if c.ScheduledMs != 0 && (!x.Due || x.ScheduledMs != c.ScheduledMs) {
		return notScheduled()
	}
	if r := s.unchanged(x.ID, c.TemplateID, c.IfVersion); r != nil {
		return r
	}
	if r := c.Plan.check(); r != nil {
		return r
	}
	switch {
	case !slices.Equal(c.Channels, x.ChannelNames()) || len(x.Channels) > 0 && (len(c.Variants) != len(x.Channels) || c.AB != nil):
		return refuse.Conflicts("channels", "the campaign's channels are others than those that it is to be sent on; send it again")
	case len(c.Variants) < 1 || len(c.Variants) > maxVariants:
		return refuse.Invalid("variants", "variants must have 2 to %d entries", maxVariants)
	}
	if r := s.checkAudience(c.ListIDs, c.SegmentIDs); r != nil {
		return r
	}
	for i := range c.Variants {
		if s.mediumOfContent(x, i) != mediumEmail {
			continue
		}
		if r := s.host.MayBeSender(c.Variants[i].Sender); r != nil {
			return r
		}
	}
	audience, refusal := s.audience(&c)
	if refusal != nil {
		return refusal
	}
	links, counts := linksOf(c.Variants)
	if c.KeptLinks != nil {
		var before []int
		if old != nil {
			before = old.Links
		}
		if !slices.Equal(c.KeptLinks.Counts, before) {
			return refuse.Conflicts("kept_links", "the campaign was sent meanwhile; send it again")
		}
		for _, more := range c.KeptLinks.More {
			links, counts = append(links, more), append(counts, len(more))
		}
	}
	contentText, linkText := must.JSON(c.Variants), []byte(nil)
	if slices.ContainsFunc(counts, func(n int) bool { return n > 0 }) {
		linkText = must.JSON(links)
	}
	longer := len(contentText) + len(linkText)
	if old != nil {
		longer -= old.ContentBytes + old.LinkBytes
	}
	if r := s.roomForText("body", longer); r != nil {
		return r
	}
	members := audience.GetCardinality()
	if c.Devices {
		if len(c.ListIDs)+len(c.SegmentIDs) == 0 {
			audience = s.host.DeviceOwners().Clone()
			members = audience.GetCardinality()
		} else {
			audience.And(s.host.DeviceOwners())
		}
	}
	// A crash after the last run was stopped may have left some in flight.
	if old != nil {
		s.returnCredits(x, old)
	}
	audience.Or(s.members(x, setPending))
	s.set(x, setPending).Assign(roaring.New())
	total := audience.GetCardinality()
	audience.AndNot(s.members(x, setSent))
	left := audience.GetCardinality()
	r := &Run{
		ID: c.ID, Run: 1, Status: RunSending, Plan: c.Plan, StartedMs: tx.AtMs,
		RunCounts: RunCounts{Total: left}, AB: c.AB, Variants: len(c.Variants), Stored: Stored{Links: counts, OwnClicks: c.KeptLinks != nil},
	}
	if old != nil {
		r.Run, r.Responses = old.Run+1, old.Responses
	}
	switch {
	case old != nil && record:
		r.Past = s.keepRun(x, old)
	case old != nil:
		r.Past = old.Past
	}
	if c.CountsSent && left < total {
		r.Total, r.Skipped = total, map[string]int{AlreadySent: int(total - left)}
	}
	if c.Devices {
		r.Members = members
	}
	if r.AB != nil {
		r.AB.Winner, r.AB.EndsMs = -1, 0
		r.AB.Tested = max(min(uint64(len(c.Variants)), left), left*uint64(r.AB.Percent)/100)
	}
	r.Channels = c.Channels
	if x.LocalTime && c.ScheduledMs != 0 {
		r.WallMs, _ = WallMs(x.Date)
	}
	if old != nil {
		r.NextUs = old.NextUs // the rate holds over all runs
	}
	if old != nil {
		r.ByLink = r.moveClicks(old)
	}
	s.set(x, setAudience).Assign(audience)
	s.keepContents(r, old, contentText, linkText)
	s.runs[c.ID] = r
	s.touch(r)
	s.setSchedule(x, Schedule{}) // whether it started this run or a person did, it must not start another
	s.shared.Changed = true
	tx.Reply = r
	return nil
}
