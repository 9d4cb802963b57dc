package keyapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/inapp"
)

// TestInAppIsAServiceOfPush: a campaign sends in-app messages by type 4 and the service in_app,
// and is another one once either is changed. There is no type 5.
func TestInAppIsAServiceOfPush(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	var c record.Campaign
	says := func(want string) {
		t.Helper()
		service := "none"
		if c.Service != nil {
			service = *c.Service
		}
		if got := fmt.Sprint(*c.Type, " ", service); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":4,"service":"in_app","date":"2026-01-01","subject":"s","body":"b"}`, &c)
	says("4 in_app")
	path := "/campaign/" + c.ID
	x.call("success", "PATCH", path, `{"subject":"t"}`, &c)
	says("4 in_app")
	x.call("success", "PATCH", path, `{"type":4}`, &c)
	says("4 in_app")
	x.call("success", "PATCH", path, `{"service":""}`, &c)
	says("4 none")
	x.call("success", "PATCH", path, `{"service":"in_app"}`, &c)
	says("4 in_app")
	x.call("success", "PATCH", path, `{"type":2}`, &c)
	says("2 none")
	for body, want := range map[string]string{
		`{"type":5}`: "type Input should be 1, 2, 3 or 4", `{"service":"in_app"}`: "service Input should be in_app with channel 2 and type 4 only",
		`{"type":3,"service":"in_app"}`: "service Input should be in_app with", `{"channel":1,"type":4,"service":"in_app"}`: "service Input should be in_app with",
		`{"type":4,"service":"whatsapp"}`: "service ",
	} {
		if m := x.call("failure", "PATCH", path, body, nil); !strings.HasPrefix(m, want) {
			t.Errorf("%s: %s", body, m)
		}
	}
}

// TestInAppInStatistics: in all statistics a look at an in-app message is an open, and the message
// is delivered once it is sent. What a person says again does not count again.
func TestInAppInStatistics(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	var people [3]struct {
		ID string `json:"_id"`
	}
	for i := range people {
		s.a("POST", "/contacts", fmt.Sprintf(`{"email":"u%d@x.io"}`, i), &people[i])
	}
	var c record.Campaign
	s.a("POST", "/campaign", `{"name":"n","channel":2,"type":4,"service":"in_app","date":"2026-01-01"}`, &c)
	command := func(name string, args, v any) {
		t.Helper()
		b, err := s.node.Command(t.Context(), s.account, name, args)
		ok(t, err)
		if v != nil {
			ok(t, json.Unmarshal(b, v))
		}
	}
	command(campaigns.CommandStart, campaigns.Start{ID: c.ID, Plan: campaigns.Plan{BatchSize: 10}, Everybody: true, Variants: []campaigns.Content{{Subject: "Sale"}}}, nil)
	var batch campaigns.BatchReply
	command(campaigns.CommandBatch, campaigns.Batch{ID: c.ID, Run: 1}, &batch)
	for _, r := range batch.Recipients {
		command(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: r.Ordinal, Result: campaigns.ResultSent, InApp: json.RawMessage(`{"title":"Sale","link":"https://shop.example/sale"}`)}, nil)
	}
	do := func(person int, deed string) {
		t.Helper()
		s.clock.Advance(time.Minute)
		var message string
		ok(t, s.node.Read(t.Context(), s.account, func(v *resolver.View) error {
			o, _ := v.Profiles().ResolveText(people[person].ID)
			list, err := v.InApp().Inbox(o, v.LogTimeMs())
			message = list[0].ID
			return err
		}))
		command(inapp.CommandMark, inapp.MarkDeed{Profile: people[person].ID, Message: message, Deed: deed}, nil)
	}
	do(0, inapp.Seen) // 12:01
	do(0, inapp.Seen)
	do(0, inapp.Clicked)   // 12:03
	do(1, inapp.Clicked)   // 12:04, which is the first look, too
	do(2, inapp.Dismissed) // without a look

	var stats campaignStats
	s.a("GET", "/campaign/"+c.ID+"/stats", "", &stats)
	if stats.EmailsSent != 3 || stats.Delivered != 3 || stats.Opens != 2 || stats.UniqueOpens != 2 || stats.Clicks != 2 || stats.UniqueClicks != 2 || stats.Dismissed != 1 {
		t.Errorf("statistics of the campaign: %+v", stats.campaignCounts)
	}
	agree := func(what string, m analytics.MessageCounts) {
		t.Helper()
		if m.Sent != stats.EmailsSent || m.Delivered != stats.Delivered || m.Opens != stats.Opens || m.UniqueOpens != stats.UniqueOpens || m.Clicks != stats.Clicks || m.UniqueClicks != stats.UniqueClicks || told(m.DeliveryRate) != 1.0 || m.BounceRateOK != nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
	var overview struct {
		Channels map[string]analytics.MessageCounts
	}
	s.a("GET", "/analytics/overview", "", &overview)
	agree("overview", overview.Channels["in_app"])
	if m := overview.Channels["push"]; m.Sent != 0 || m.Opens != 0 {
		t.Errorf("push: %+v", m)
	}
	var performance struct {
		Channel string
		Totals  analytics.MessageCounts
	}
	s.a("GET", "/analytics/performance?campaign_id="+c.ID, "", &performance)
	agree("performance of "+performance.Channel, performance.Totals)
	var lines []analytics.MessageCounts
	s.a("GET", "/analytics/campaigns", "", &lines)
	agree("campaigns", lines[0])
	var activity []recipientActivity
	s.a("GET", "/campaign/"+c.ID+"/recipients/activity", "", &activity)
	if a := activity[0]; a.Opens != 1 || *a.OpenedAt != "2025-03-01T12:01:00.000Z" || a.Clicks != 1 || *a.ClickedAt != "2025-03-01T12:03:00.000Z" || len(a.Links) != 1 || a.Links[0].URL != "https://shop.example/sale" {
		t.Errorf("who looked and clicked: %+v", a)
	}
	if a := activity[1]; a.Opens != 1 || *a.OpenedAt != "2025-03-01T12:04:00.000Z" || *a.OpenedAt != *a.ClickedAt {
		t.Errorf("who clicked at once: %+v", a)
	}
	if a := activity[2]; a.Opened || a.Opens != 0 || a.Clicks != 0 || !a.Delivered {
		t.Errorf("who put it away: %+v", a)
	}

	var flow record.Flow
	s.a("POST", "/custom-flows", `{"name":"f","trigger":{"type":"event","event":"ordered"},"steps":[{"id":"hello","type":"in_app","title":"Hello"}]}`, &flow)
	s.a("POST", "/custom-flows/"+flow.ID+"/publish", "", nil)
	of := fmt.Sprintf(`{"flow_id":%q,"step_id":"hello"}`, flow.ID)
	for _, event := range []string{"in_app_sent", "in_app_seen", "in_app_clicked"} {
		s.happen("u0@x.io", event, of)
	}
	var x struct {
		Steps []struct{ Messages analytics.MessageCounts }
	}
	s.a("GET", "/analytics/flows/"+flow.ID, "", &x)
	if m := x.Steps[0].Messages; m.Sent != 1 || m.Delivered != 1 || m.UniqueOpens != 1 || m.UniqueClicks != 1 || told(m.OpenRate) != 1.0 {
		t.Errorf("the step: %+v", m)
	}
}
