package record

import "github.com/musterhq/muster/resolver"

// CampaignDetails are the numbers of a campaign by link and by variant.
type CampaignDetails struct {
	Links  []LinkClicks `json:"links"`
	ABTest *ABTest      `json:"ab_test"` // nil without one
	// Channels are those of a campaign of several, in the order of preference.
	Channels []CampaignChannel `json:"channels"`
	// Waiting are people who are sent to later: their quiet hours are to end, or their clocks
	// to show a time. WaitingUntil is when a run that waits continues.
	Waiting      uint64  `json:"waiting"`
	WaitingUntil *string `json:"waiting_until"`
	// Revenue is that of orders attributed to the campaign, by currency.
	Revenue []Revenue `json:"revenue"`
}

// LinkClicks is how often a link of a campaign was clicked.
type LinkClicks struct {
	URL    string `json:"url"`
	Clicks uint64 `json:"clicks"`
}

// CampaignChannel are the numbers of a campaign on one of its channels; people count once.
type CampaignChannel struct {
	Channel      string         `json:"channel"`
	EmailsSent   uint64         `json:"emails_sent"`
	Failed       uint64         `json:"failed"`
	Skipped      map[string]int `json:"skipped"`
	Delivered    uint64         `json:"delivered"`
	UniqueOpens  uint64         `json:"unique_opens"`
	UniqueClicks uint64         `json:"unique_clicks"`
	Bounces      uint64         `json:"bounces"`
	Complaints   uint64         `json:"complaints"`
	Unsubscribes uint64         `json:"unsubscribes"`
}

func campaignChannels(v *resolver.View, id string) []CampaignChannel {
	out := []CampaignChannel{}
	x, _ := v.Campaigns().Campaign(id)
	for _, n := range v.Campaigns().ByChannel(x) {
		c := CampaignChannel{
			Channel: n.Channel, EmailsSent: n.Sent, Failed: n.Failed, Skipped: n.Skipped, Delivered: n.Delivered, UniqueOpens: n.Opened, UniqueClicks: n.Clicked,
			Bounces: n.Bounced, Complaints: n.Complained, Unsubscribes: n.Unsubscribed,
		}
		if c.Skipped == nil {
			c.Skipped = map[string]int{}
		}
		out = append(out, c)
	}
	return out
}

// ABTest is how the A/B test of a campaign goes.
type ABTest struct {
	Metric   string         `json:"metric"`
	Variants []VariantCount `json:"variants"`
	// Winner is the number of the winning variant, null before the choice.
	Winner *int    `json:"winner"`
	EndsAt *string `json:"ends_at"`
}

// VariantCount are the numbers of a variant; people count once.
type VariantCount struct {
	Variant      int    `json:"variant"` // from 0
	EmailsSent   uint64 `json:"emails_sent"`
	UniqueOpens  uint64 `json:"unique_opens"`
	UniqueClicks uint64 `json:"unique_clicks"`
}

// NewCampaignDetails reads the details of the campaign with an id; one that was never
// sent has none.
func NewCampaignDetails(v *resolver.View, id string) (CampaignDetails, error) {
	out := CampaignDetails{Links: []LinkClicks{}, Channels: campaignChannels(v, id), Revenue: CampaignRevenue(v, id)}
	r, ok := v.Campaigns().Run(id)
	if !ok {
		return out, nil
	}
	x, _ := v.Campaigns().Campaign(id)
	out.Waiting = v.Campaigns().Numbers(x).Held
	out.WaitingUntil = TimeOrNull(r.WakeMs)
	links, err := v.Campaigns().Links(id)
	if err != nil {
		return out, err
	}
	if !r.CountsApart() {
		links = links[:min(len(links), 1)] // the counts are by number
	}
	at := map[string]int{}
	for variant, list := range links {
		for i, url := range list {
			if _, known := at[url]; !known { // contents may have a link in common
				at[url] = len(out.Links)
				out.Links = append(out.Links, LinkClicks{URL: url})
			}
			if n := r.LinksBefore(variant) + i; n < len(r.ByLink) {
				out.Links[at[url]].Clicks += r.ByLink[n]
			}
		}
	}
	if r.AB != nil {
		ab := &ABTest{Metric: r.AB.Metric, EndsAt: TimeOrNull(r.AB.EndsMs)}
		if r.AB.Winner >= 0 {
			ab.Winner = &r.AB.Winner
		}
		for i := range r.Variants {
			s := VariantCount{Variant: i}
			if i < len(r.VariantOf) {
				s.EmailsSent, s.UniqueOpens, s.UniqueClicks = r.VariantOf[i].Sent, r.VariantOf[i].Opened, r.VariantOf[i].Clicked
			}
			ab.Variants = append(ab.Variants, s)
		}
		out.ABTest = ab
	}
	return out, nil
}
