package record

import (
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// CampaignRun is one send of a campaign. People count once.
type CampaignRun struct {
	Run          int            `json:"run"`
	Status       string         `json:"status"`
	ListID       []string       `json:"list_id"`
	SegmentIDs   []string       `json:"segment_ids"`
	TemplateID   *string        `json:"template_id"`
	TotalMembers uint64         `json:"total_members"`
	EmailsSent   uint64         `json:"emails_sent"`
	Failed       uint64         `json:"failed"`
	Skipped      map[string]int `json:"skipped"`
	Delivered    uint64         `json:"delivered"`
	UniqueOpens  uint64         `json:"unique_opens"`
	UniqueClicks uint64         `json:"unique_clicks"`
	Bounces      uint64         `json:"bounces"`
	Complaints   uint64         `json:"complaints"`
	Unsubscribes uint64         `json:"unsubscribes"`
	Errors       []string       `json:"errors"`
	StartedAt    *string        `json:"started_at"`
	FinishedAt   *string        `json:"finished_at"`
}

// CampaignRuns are the sends of a campaign, the oldest first.
func CampaignRuns(v *resolver.View, x campaigns.Campaign) []CampaignRun {
	out := []CampaignRun{}
	for _, r := range v.Campaigns().Runs(x) {
		if r.Skipped == nil {
			r.Skipped = map[string]int{}
		}
		out = append(out, CampaignRun{
			Run: r.Run, Status: r.Status, ListID: Texts(r.ListIDs), SegmentIDs: Texts(r.SegmentIDs), TemplateID: TextOrNull(r.TemplateID),
			TotalMembers: r.Total, EmailsSent: r.Sent, Failed: r.Failed, Skipped: r.Skipped, Delivered: r.Delivered, UniqueOpens: r.Opened, UniqueClicks: r.Clicked,
			Bounces: r.Bounced, Complaints: r.Complained, Unsubscribes: r.Unsubscribed, Errors: Texts(r.Errors),
			StartedAt: TimeOrNull(r.StartedMs), FinishedAt: TimeOrNull(r.FinishedMs),
		})
	}
	return out
}
