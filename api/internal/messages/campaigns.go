package messages

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/view"
)

// Campaigns are the calls about campaigns.
func (a *API) Campaigns() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: campaigns", Title: "Campaigns", About: "Campaigns with their numbers, e-mail credits, and captured messages."}, Routes: []handler.Route{
		{Handle: a.listCampaigns, Operation: operation.Operation{Method: "GET", Path: "/campaigns", Permission: "campaigns:read", ID: "consoleListCampaigns", Summary: "List campaigns", Query: []operation.Parameter{handler.AgeOrder()}, Data: shape.List(shapes.Campaign, ""), Paged: true}},
		{Handle: a.getCampaign, Operation: operation.Operation{Method: "GET", Path: "/campaigns/{id}", Permission: "campaigns:read", ID: "consoleGetCampaign", Summary: "Read a campaign", Data: shapes.Campaign}},
		{Handle: a.campaignStats, Operation: operation.Operation{Method: "GET", Path: "/campaigns/{id}/stats", Permission: "campaigns:read", ID: "consoleCampaignStats", Summary: "Read a campaign's statistics", Data: campaignNumbersShape}},
		handler.UsedInRoute("/campaigns", "campaigns:read", "campaignUsedIn", "a campaign", "Segments and flows whose conditions or triggers name it, by the `campaign_id` of events. They do not keep it from being deleted.", view.UsedIn.Campaign, errNoCampaign),
		{Handle: a.getCredits, Operation: operation.Operation{Method: "GET", Path: "/credits", Permission: operation.SignedIn, ID: "getCredits", Summary: "Read the e-mail credits", Data: shape.Object(shape.Req("email_credits", shape.Integer(9800, "Each e-mail takes one.")))}},
		{Handle: a.listOutbox, Operation: operation.Operation{Method: "GET", Path: "/outbox", Permission: "campaigns:read", ID: "listOutbox", Summary: "List captured messages",
			About: "Without a relay or provider messages are kept instead of sent; here they are, the newest first. A page may have fewer entries than `limit` and still have a `next`. 404 when nothing is captured.",
			Query: []operation.Parameter{operation.Query("channel", shape.Channel("Those of a channel alone.")), operation.Query("to", shape.Text("ann@example.com", "Those to an address alone."))},
			Data:  shape.List(capturedMessageShape, ""), Paged: true, Limit: capture.DefaultPage, Most: capture.MaxPage, Also: []int{404}}},
	}}
}

var errNoCampaign = handler.NotFound("there is no campaign with this id")

func (a *API) listCampaigns(c *handler.Call) (any, error) {
	newest, err := handler.NewestFirst(c)
	if err != nil {
		return nil, err
	}
	return handler.ByAge(c, newest, func(v *resolver.View) []campaigns.Campaign { return v.Campaigns().All() }, func(x *campaigns.Campaign) paging.Age { return paging.Age{CreatedMs: x.CreatedMs, ID: x.ID} }, record.NewCampaign)
}

func (a *API) getCampaign(c *handler.Call) (any, error) {
	var out record.Campaign
	err := c.Read(func(v *resolver.View) error {
		x, ok, err := v.Campaigns().WholeCampaign(c.PathID())
		if err != nil {
			return err
		}
		if !ok {
			return errNoCampaign
		}
		out = record.WholeCampaign(v, &x)
		return nil
	})
	return out, err
}

// campaignNumbers are those of a campaign's recipients, each counted once.
type campaignNumbers struct {
	ID           string `json:"campaign_id"`
	Status       string `json:"status"`
	TotalMembers uint64 `json:"total_members"`
	Remaining    uint64 `json:"remaining"`
	messageCounts
	Skipped map[string]int `json:"skipped"`
	Errors  []string       `json:"errors"`

	Runs       []record.CampaignRun `json:"runs"`    // the oldest first
	Resumed    int                  `json:"resumed"` // how often sending continued after a stop of the service
	StartedAt  *string              `json:"started_at"`
	FinishedAt *string              `json:"finished_at"`

	record.CampaignDetails
	AsOf string `json:"as_of"`
}

// messageCounts are the outcomes of the messages of a campaign.
type messageCounts struct {
	Sent         uint64 `json:"sent"`
	Failed       uint64 `json:"failed"`
	Delivered    uint64 `json:"delivered"`
	UniqueOpens  uint64 `json:"unique_opens"`
	UniqueClicks uint64 `json:"unique_clicks"`
	Opens        uint64 `json:"opens"`
	Clicks       uint64 `json:"clicks"`
	Bounces      uint64 `json:"bounces"`
	Complaints   uint64 `json:"complaints"`
	Unsubscribes uint64 `json:"unsubscribes"`
	Dismissed    uint64 `json:"dismissed"`
	Expired      uint64 `json:"expired"`
}

// campaignStats answers GET /campaigns/{id}/stats.
func (a *API) campaignStats(c *handler.Call) (any, error) {
	var out campaignNumbers
	err := c.Read(func(v *resolver.View) error {
		x, ok := v.Campaigns().Campaign(c.PathID())
		if !ok {
			return errNoCampaign
		}
		n := v.Campaigns().Numbers(x)
		out = campaignNumbers{ID: x.ID, Status: record.CampaignStatus(v, &x), Remaining: n.Audience + n.Pending,
			messageCounts: messageCounts{Sent: n.Sent, Failed: n.Failed, Delivered: n.Delivered,
				UniqueOpens: n.Opened, UniqueClicks: n.Clicked, Bounces: n.Bounced, Complaints: n.Complained, Unsubscribes: n.Unsubscribed, Dismissed: n.Dismissed, Expired: n.Expired},
			Skipped: map[string]int{}, Errors: []string{}, Runs: record.CampaignRuns(v, x), AsOf: record.Time(max(a.opts.Now().UnixMilli(), v.LogTimeMs()))}
		var err error
		if out.CampaignDetails, err = record.NewCampaignDetails(v, x.ID); err != nil {
			return err
		}
		if r, ok := v.Campaigns().Run(x.ID); ok {
			out.TotalMembers, out.Opens, out.Clicks, out.Resumed = r.Total, r.Opens, r.Clicks, r.Resumed
			out.StartedAt, out.FinishedAt = record.TimeOrNull(r.StartedMs), record.TimeOrNull(r.FinishedMs)
			out.Errors = append(out.Errors, r.Errors...)
			for why, n := range r.Skipped {
				out.Skipped[why] = n
			}
		}
		return nil
	})
	return out, err
}

// getCredits answers GET /credits.
func (a *API) getCredits(c *handler.Call) (any, error) {
	var out struct {
		EmailCredits int64 `json:"email_credits"`
	}
	err := c.Read(func(v *resolver.View) error { out.EmailCredits = v.CompanyState().EmailCredits; return nil })
	return out, err
}
