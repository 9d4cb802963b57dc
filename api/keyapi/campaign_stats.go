package keyapi

import (
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/segment"
)

// campaignStats is the statistics of a campaign.
type campaignStats struct {
	ID     string `json:"campaign_id"`
	Status string `json:"status"`
	// TotalMembers is of the last run; Remaining of them are still to be sent to.
	TotalMembers uint64 `json:"total_members"`
	Remaining    uint64 `json:"remaining"`
	campaignCounts
	campaignRates
	record.CampaignDetails
	Errors []string `json:"errors"`
	// Runs are the sends, the oldest first.
	Runs       []record.CampaignRun `json:"runs"`
	Resumed    int                  `json:"resumed"` // how often sending continued after a stop of the service
	StartedAt  *string              `json:"started_at"`
	FinishedAt *string              `json:"finished_at"`
}

// campaignCounts are the outcomes of the messages.
type campaignCounts struct {
	EmailsSent   uint64         `json:"emails_sent"`
	Failed       uint64         `json:"failed"`
	Skipped      map[string]int `json:"skipped"` // reason → recipients
	Delivered    uint64         `json:"delivered"`
	Opens        uint64         `json:"opens"`
	UniqueOpens  uint64         `json:"unique_opens"`
	Clicks       uint64         `json:"clicks"`
	UniqueClicks uint64         `json:"unique_clicks"`
	Bounces      uint64         `json:"bounces"`
	Complaints   uint64         `json:"complaints"`
	Unsubscribes uint64         `json:"unsubscribes"`
	Dismissed    uint64         `json:"dismissed"`
	Expired      uint64         `json:"expired"`
}

// campaignRates are shares of those sent to, from 0 to 1.
type campaignRates struct {
	OpenRate        float64 `json:"open_rate"`
	ClickRate       float64 `json:"click_rate"`
	BounceRate      float64 `json:"bounce_rate"`
	ComplaintRate   float64 `json:"complaint_rate"`
	UnsubscribeRate float64 `json:"unsubscribe_rate"`
}

func toStats(v *resolver.View, x campaigns.Campaign) (campaignStats, error) {
	n := v.Campaigns().Numbers(x)
	out := campaignStats{
		ID: x.ID, Status: record.CampaignStatus(v, &x), Remaining: n.Audience + n.Pending,
		campaignCounts: campaignCounts{EmailsSent: n.Sent, Failed: n.Failed, Skipped: map[string]int{}, Delivered: n.Delivered, UniqueOpens: n.Opened, UniqueClicks: n.Clicked, Bounces: n.Bounced, Complaints: n.Complained, Unsubscribes: n.Unsubscribed, Dismissed: n.Dismissed, Expired: n.Expired},
		campaignRates: campaignRates{OpenRate: analytics.Share(n.Opened, n.Sent), ClickRate: analytics.Share(n.Clicked, n.Sent), BounceRate: analytics.Share(n.Bounced, n.Sent+n.Failed),
			ComplaintRate: analytics.Share(n.Complained, n.Sent), UnsubscribeRate: analytics.Share(n.Unsubscribed, n.Sent)},
		Errors: []string{}, Runs: []record.CampaignRun{},
	}
	var err error
	if out.CampaignDetails, err = record.NewCampaignDetails(v, x.ID); err != nil {
		return out, err
	}
	r, ok := v.Campaigns().Run(x.ID)
	if !ok {
		return out, nil
	}
	out.Runs = record.CampaignRuns(v, x)
	out.TotalMembers, out.Opens, out.Clicks = r.Total, r.Opens, r.Clicks
	out.Errors, out.Resumed, out.StartedAt, out.FinishedAt = record.Texts(r.Errors), r.Resumed, record.TimeOrNull(r.StartedMs), record.TimeOrNull(r.FinishedMs)
	if r.Skipped != nil {
		out.Skipped = r.Skipped
	}
	return out, nil
}

// readCampaignStats answers GET /campaign/{id}/stats.
func readCampaignStats(c *keycall.Call) (any, error) {
	var out campaignStats
	err := c.Read(func(v *resolver.View) (err error) {
		x, ok := v.Campaigns().Campaign(c.Param("id"))
		if !ok {
			return errNoCampaign
		}
		out, err = toStats(v, x)
		return err
	})
	return out, err
}

// recipientActivity is what one recipient did with a campaign.
type recipientActivity struct {
	ContactID    string  `json:"contact_id"`
	Email        *string `json:"email"`
	Sent         bool    `json:"sent"`
	Failed       bool    `json:"failed"`
	Delivered    bool    `json:"delivered"`
	Opened       bool    `json:"opened"`
	Clicked      bool    `json:"clicked"`
	Bounced      bool    `json:"bounced"`
	Complained   bool    `json:"complained"`
	Unsubscribed bool    `json:"unsubscribed"`

	// What follows is of people alone, not of machines that open and click ahead.
	Opens     uint64         `json:"opens"`
	OpenedAt  *string        `json:"opened_at"` // the first time
	Clicks    uint64         `json:"clicks"`
	ClickedAt *string        `json:"clicked_at"` // the first time
	Links     []linkActivity `json:"links"`
}

// linkActivity is how often a recipient clicked a link.
type linkActivity struct {
	URL            string `json:"url"`
	Clicks         uint64 `json:"clicks"`
	FirstClickedAt string `json:"first_clicked_at"`
	LastClickedAt  string `json:"last_clicked_at"`
}

// addDeeds fills in what the recipients of a page did, from history.
func addDeeds(c *keycall.Call, out []recipientActivity, q query.DeedsQuery) error {
	deeds, err := c.Backend.History.Deeds(c.Ctx, q)
	if err != nil {
		return err
	}
	at := map[uint32]int{}
	for i, o := range q.Ordinals {
		at[o] = i
	}
	first := func(have **string, ms int64) {
		if text := record.Time(ms); *have == nil || text < **have {
			*have = &text
		}
	}
	for _, d := range deeds {
		x := &out[at[d.Ordinal]]
		if analytics.IsOpen(d.Type) {
			x.Opens += d.Events
			first(&x.OpenedAt, d.FirstMs)
			continue
		}
		x.Clicks += d.Events
		first(&x.ClickedAt, d.FirstMs)
		x.Links = append(x.Links, linkActivity{d.Value, d.Events, record.Time(d.FirstMs), record.Time(d.LastMs)})
	}
	return nil
}

// listCampaignActivity answers GET /campaign/{id}/recipients/activity.
func listCampaignActivity(c *keycall.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	from, err := c.Ordinal()
	if err != nil {
		return nil, err
	}
	out := []recipientActivity{}
	var ordinals []uint32
	deeds := query.DeedsQuery{Account: c.Key.Account, By: []string{"url"}, Where: analytics.ByPeople(segment.Predicate{
		Path: []string{"campaign_id"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: c.Param("id")}}})}
	deeds.Cut, err = c.Cut(func(v *resolver.View) error {
		x, ok := v.Campaigns().Campaign(c.Param("id"))
		if !ok {
			return errNoCampaign
		}
		media := x.Media()
		if x.Medium() == campaigns.MediumOmni {
			media = analytics.Media // it may have been sent on others than its present ones
		}
		for _, medium := range media {
			deeds.Types = append(deeds.Types, analytics.Engagements(medium)...)
		}
		list := v.Campaigns().Recipients(x, from, limit)
		for _, r := range list {
			ordinals = append(ordinals, r.Listed)
			p, err := v.Profiles().Get(r.Ordinal)
			if err != nil {
				return err
			}
			out = append(out, recipientActivity{p.ID.String(), record.TextOrNull(p.Newest(resolver.IdentityEmail)), r.Sent, r.Failed, r.Delivered, r.Opened, r.Clicked, r.Bounced, r.Complained, r.Unsubscribed, 0, nil, 0, nil, []linkActivity{}})
			deeds.Ordinals = append(deeds.Ordinals, r.Ordinal)
		}
		return nil
	})
	if err == nil {
		err = addDeeds(c, out, deeds)
	}
	if err != nil {
		return nil, err
	}
	// People with many links make a page short.
	var room paging.Room
	for i := range out {
		if !room.Take(&out[i]) {
			out, ordinals, limit = out[:i], ordinals[:i], i
			break
		}
	}
	return keycall.Reply{Data: out, Next: paging.NextOrdinal(ordinals, limit)}, c.Hold(room.Bytes)
}
