// Command tour goes through the README's five minutes with the client that
// oapi-codegen makes of /openapi.json. It reads the file of credentials that its
// argument names and prints a line for each step; tour.txt beside this module has
// the lines that are right.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"example.com/client/oapi"
)

var (
	ctx     = context.Background()
	origin  string
	events  *oapi.ClientWithResponses // with the App Secret
	keyed   *oapi.ClientWithResponses // with the API key
	console *oapi.ClientWithResponses // with the session
)

func main() {
	signIn()
	recordEvents()
	countMembers()
	lookAtProfile()
	sendCampaign()
	runFlow()
	importEvents()
}

func signIn() {
	var c struct {
		Base   string `json:"base_url"`
		App    string `json:"app_id"`
		Secret string `json:"app_secret"`
		Key    string `json:"api_key"`
		Email  string `json:"console_email"`
		Pass   string `json:"console_password"`
	}
	check(json.Unmarshal(must(os.ReadFile(os.Args[1])), &c))
	origin = strings.TrimSuffix(c.Base, "/api/v1")
	events = client("X-App-Id", c.App, "X-App-Secret", c.Secret)
	keyed = client("Authorization", "Bearer "+c.Key)
	session := must(client().SignInWithResponse(ctx, oapi.SignInJSONRequestBody{Email: c.Email, Password: c.Pass}))
	console = client("Authorization", "Bearer "+*session.JSON200.Data.Token)
	fmt.Println("signed in:", session.JSON200.Data.Email == c.Email)
}

// client has headers with every request.
func client(headers ...string) *oapi.ClientWithResponses {
	return must(oapi.NewClientWithResponses(origin, oapi.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return nil
	})))
}

func event(name string, user oapi.EventUser, properties map[string]any) oapi.Event {
	e := oapi.Event{EventType: name, User: user}
	if properties != nil {
		e.Properties = &properties
	}
	return e
}

func recordEvents() {
	ada := oapi.EventUser{ExternalId: new("42"), FirstName: new("Ada")}
	signup := event("signed_up", ada, nil)
	signup.IdempotencyKey = new("signup-42")
	first := must(events.RecordEventWithResponse(ctx, signup)).JSON202
	fmt.Println("event:", first.Success, first.Error == nil)

	batch := must(events.RecordEventsWithResponse(ctx, oapi.RecordEventsJSONRequestBody{Events: []oapi.Event{
		event("item_purchased", oapi.EventUser{ExternalId: new("42"), Email: new("Ada@Example.com"), Geo: &map[string]any{"country": "DE"}}, map[string]any{"value": 79.90}),
		event("item_purchased", oapi.EventUser{Email: new("ada@example.com"), Attributes: &map[string]any{"plan": "pro"}}, map[string]any{"value": 30.10}),
		event("Page Viewed", oapi.EventUser{Email: new("bob@example.com")}, nil),
		event("page_viewed", oapi.EventUser{Email: new("bob@example.com")}, nil),
	}})).JSON202
	fmt.Println("batch:", batch.Success, batch.Accepted, "of", batch.Total)
	fmt.Println("same person:", batch.Results[0].ProfileId == first.ProfileId && batch.Results[1].ProfileId == first.ProfileId)
	fmt.Println("bad event:", batch.Results[2].Success, strings.HasPrefix(*batch.Results[2].Error, "event_type must be"))

	again := must(events.RecordEventWithResponse(ctx, signup)).JSON202
	fmt.Println("retry:", again.Success, again.ProfileId == first.ProfileId)
}

// definition is one of the kinds of conditions.
func definition(from func(*oapi.SegmentDefinition) error) (d oapi.SegmentDefinition) {
	check(from(&d))
	return d
}

// spent100 holds for people who spent 100 in the last days, or ever.
func spent100(lastDays float64) oapi.SegmentDefinition {
	return definition(func(d *oapi.SegmentDefinition) error {
		c := oapi.ActivityCondition{Kind: "activity", Event: "item_purchased",
			Aggregate: &oapi.EventAggregate{Fn: "sum", Property: "value", Op: ">="}}
		check(c.Aggregate.Value.FromComparedNumber0(100))
		if lastDays > 0 {
			c.Window = &oapi.TimeWindow{}
			check(c.Window.FromLastDays(oapi.LastDays{LastDays: lastDays}))
		}
		return d.FromActivityCondition(c)
	})
}

func countMembers() {
	german := definition(func(d *oapi.SegmentDefinition) error {
		c := oapi.AttributeCondition{Kind: "attribute", Field: "geo.country", Op: "=", Value: &oapi.ConditionValue{}}
		check(c.Value.FromConditionValue0("DE"))
		return d.FromAttributeCondition(c)
	})
	both := definition(func(d *oapi.SegmentDefinition) error {
		return d.FromSegmentGroup(oapi.SegmentGroup{Match: "all", Conditions: []oapi.SegmentDefinition{spent100(30), german}})
	})
	preview := must(console.PreviewSegmentWithResponse(ctx, oapi.PreviewSegmentJSONRequestBody{Definition: both})).JSON200.Data
	who := preview.Sample[0].Identities
	fmt.Println("preview:", preview.Count, who.Email[0], who.ExternalId[0], len(who.Phone))

	never := definition(func(d *oapi.SegmentDefinition) error {
		return d.FromActivityCondition(oapi.ActivityCondition{Kind: "activity", Event: "item_purchased", Did: new(false)})
	})
	segment := must(console.CreateSegmentWithResponse(ctx, oapi.CreateSegmentJSONRequestBody{Name: "Never bought", Definition: never})).JSON200.Data.UnderscoreId
	show := func() {
		s := must(console.GetSegmentWithResponse(ctx, segment)).JSON200.Data
		back := must(s.Definition.AsActivityCondition())
		fmt.Println("segment:", s.Name, *s.Count, back.Event, *back.Did)
	}
	show()
	// Transitions begin when the segment is live.
	eventually(func() bool { return must(console.GetSegmentWithResponse(ctx, segment)).JSON200.Data.Status == "live" })
	must(events.RecordEventWithResponse(ctx, event("item_purchased", oapi.EventUser{Email: new("bob@example.com")}, map[string]any{"value": 5})))
	show()
	watch(segment)

	wrong := definition(func(d *oapi.SegmentDefinition) error {
		c := oapi.ActivityCondition{Kind: "activity", Event: "page_viewed", Window: &oapi.TimeWindow{}}
		check(c.Window.FromLastDays(oapi.LastDays{LastDays: 0}))
		return d.FromActivityCondition(c)
	})
	refused := must(console.PreviewSegmentWithResponse(ctx, oapi.PreviewSegmentJSONRequestBody{Definition: wrong}))
	fmt.Println("refused:", refused.StatusCode(), refused.JSON400.Message)
}

// watch reads the stream of transitions up to the second one.
func watch(segment string) {
	until, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// The call whose answer is not read to its end: a stream has none.
	stream := must(console.ClientInterface.(*oapi.Client).SegmentTransitions(until, segment, &oapi.SegmentTransitionsParams{After: new("0-0")}))
	defer stream.Body.Close()
	var seen []string
	for in := bufio.NewScanner(stream.Body); len(seen) < 2 && in.Scan(); {
		if name, is := strings.CutPrefix(in.Text(), "event: "); is {
			seen = append(seen, name)
		}
	}
	fmt.Println("transitions:", strings.Join(seen, ", "))
}

func lookAtProfile() {
	ada := must(console.FindProfileWithResponse(ctx, &oapi.FindProfileParams{Email: new("ada@example.com")})).JSON200.Data
	fmt.Println("profile:", ada.FirstName, ada.Geo["country"], ada.Attributes["plan"])
	timeline := must(console.ProfileEventsWithResponse(ctx, ada.ProfileId, &oapi.ProfileEventsParams{Limit: new(int64(2))})).JSON200.Data
	for _, e := range timeline.Events {
		fmt.Println("timeline:", e.EventType, e.Properties["value"], e.IdempotencyKey == nil)
	}
}

// success is the answer of a call of the key, where it is one.
func success[T any](u interface{ ValueByDiscriminator() (any, error) }) T {
	v := must(u.ValueByDiscriminator())
	s, is := v.(T)
	if !is {
		panic(fmt.Sprintf("%+v", v))
	}
	return s
}

func sendCampaign() {
	list := success[oapi.CreateListSuccess](must(keyed.CreateListWithResponse(ctx, oapi.CreateListJSONRequestBody{Name: "News", Description: new("Once a month")})).JSON200).Data.UnderscoreId
	grace := success[oapi.AddToListSuccess](must(keyed.AddToListWithResponse(ctx, list, oapi.AddToListJSONRequestBody{Email: "grace@example.com", FirstName: new("Grace")})).JSON200).Data
	fmt.Println("on the list:", *grace.Email, *grace.Status, grace.Subscribed)
	campaign := success[oapi.CreateCampaignSuccess](must(keyed.CreateCampaignWithResponse(ctx, oapi.CreateCampaignJSONRequestBody{
		Name: "Hello", Channel: 2, Type: new(oapi.CreateCampaignJSONBodyType(1)), Date: new("2026-12-01T09:00:00Z"), Sender: new("news@muster.local"),
		Subject: new("Hello {{first_name}}"), Body: new(`<p>Hi {{first_name|friend}}, <a href="https://example.com/sale">have a look</a>.</p>`),
	})).JSON200).Data.UnderscoreId
	sent := success[oapi.SendCampaignSuccess](must(keyed.SendCampaignWithResponse(ctx, campaign, oapi.SendCampaignJSONRequestBody{ListId: &[]string{list}})).JSON200).Data
	fmt.Println("sent:", sent.Success, sent.TotalMembers, sent.EmailsSent)

	message := must(console.ListOutboxWithResponse(ctx, &oapi.ListOutboxParams{})).JSON200.Data[0]
	token := regexp.MustCompile(`/t/([^"]+)`).FindStringSubmatch(*message.Html)[1]
	noRedirect := must(oapi.NewClientWithResponses(origin, oapi.WithHTTPClient(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})))
	click := must(noRedirect.FollowLinkWithResponse(ctx, token))
	fmt.Println("click:", click.StatusCode(), click.HTTPResponse.Header.Get("Location"))

	var stats oapi.CampaignStats
	eventually(func() bool {
		stats = success[oapi.CampaignStatsSuccess](must(keyed.CampaignStatsWithResponse(ctx, campaign)).JSON200).Data
		return stats.UniqueClicks == 1
	})
	fmt.Println("campaign:", stats.Status, stats.EmailsSent, stats.UniqueOpens, stats.UniqueClicks)

	failed := must(must(keyed.GetCampaignWithResponse(ctx, "cmp_0")).JSON200.ValueByDiscriminator()).(oapi.Failure)
	fmt.Println("no campaign:", failed.Status, failed.Message)
}

func step(from func(*oapi.FlowStep) error) (s oapi.FlowStep) {
	check(from(&s))
	return s
}

func runFlow() {
	segment := must(console.CreateSegmentWithResponse(ctx, oapi.CreateSegmentJSONRequestBody{Name: "Spent 100", Definition: spent100(0)})).JSON200.Data.UnderscoreId
	trigger := &oapi.FlowTrigger{}
	check(trigger.FromFlowTriggerSegmentEntered(oapi.FlowTriggerSegmentEntered{Type: "segment_entered", SegmentId: &segment}))
	flow := must(console.CreateFlowWithResponse(ctx, oapi.CreateFlowJSONRequestBody{Name: "Thank you", Trigger: trigger, Steps: &[]oapi.FlowStep{
		step(func(s *oapi.FlowStep) error {
			return s.FromFlowStepTag(oapi.FlowStepTag{Id: "mark", Type: "tag", Add: &[]string{"vip"}, Next: new("thanks")})
		}),
		step(func(s *oapi.FlowStep) error {
			return s.FromFlowStepEmail(oapi.FlowStepEmail{Id: "thanks", Type: "email", Subject: new("Thank you, {{first_name|friend}}"), Body: new("<p>Come back soon.</p>"), Next: new("later")})
		}),
		step(func(s *oapi.FlowStep) error {
			return s.FromFlowStepWait(oapi.FlowStepWait{Id: "later", Type: "wait", Seconds: new(int64(86400))})
		}),
	}})).JSON200.Data
	for _, s := range flow.Steps {
		switch s := must(s.ValueByDiscriminator()).(type) {
		case oapi.FlowStepTag:
			fmt.Println("step:", s.Id, s.Type, (*s.Add)[0])
		case oapi.FlowStepEmail:
			fmt.Println("step:", s.Id, s.Type, *s.Subject)
		case oapi.FlowStepWait:
			fmt.Println("step:", s.Id, s.Type, *s.Seconds)
		}
	}
	must(console.PublishFlowWithResponse(ctx, flow.UnderscoreId))
	eventually(func() bool {
		return must(console.ConsoleGetFlowWithResponse(ctx, flow.UnderscoreId)).JSON200.Data.Status == "live"
	})
	grace := must(events.RecordEventWithResponse(ctx, event("item_purchased", oapi.EventUser{Email: new("grace@example.com")}, map[string]any{"value": 120}))).JSON202.ProfileId
	eventually(func() bool {
		e := must(console.GetEnrolmentsWithResponse(ctx, flow.UnderscoreId, grace)).JSON200.Data.Enrolments
		if len(e) == 0 || e[0].Step == nil || *e[0].Step != "later" {
			return false
		}
		fmt.Println("enrolment:", e[0].Status, *e[0].Step, e[0].Due.After(time.Now()))
		for _, p := range e[0].Path {
			fmt.Println("path:", p.Id, p.Result)
		}
		return true
	})
	fmt.Println("tags:", must(console.GetProfileWithResponse(ctx, grace)).JSON200.Data.Tags)
	paused := success[oapi.PauseFlowSuccess](must(keyed.PauseFlowWithResponse(ctx, flow.UnderscoreId)).JSON200).Data
	fmt.Println("paused:", paused.Status, paused.Counts.InProgress)
	extra := bytes.NewReader([]byte(`{"status": "live", "name": "Thanks"}`))
	refused := must(must(keyed.SetFlowStatusWithBodyWithResponse(ctx, flow.UnderscoreId, "application/json", extra)).JSON200.ValueByDiscriminator()).(oapi.Failure)
	message, _, _ := strings.Cut(refused.Message, ":")
	fmt.Println("refused:", refused.Status, message)
	fmt.Println("resumed:", success[oapi.ResumeFlowSuccess](must(keyed.ResumeFlowWithResponse(ctx, flow.UnderscoreId)).JSON200).Data.Status)
	eventually(func() bool {
		out := must(console.ListOutboxWithResponse(ctx, &oapi.ListOutboxParams{To: new("grace@example.com")})).JSON200.Data
		if *out[0].Subject != "Thank you, Grace" {
			return false
		}
		fmt.Println("outbox:", *out[0].Subject)
		return true
	})
}

// importEvents sends the same rows twice, as an import that is repeated.
func importEvents() {
	body := []byte(`{"file": "` + strings.Repeat("0a", 32) + `", "first_row": 0, "events": [
		{"event_type": "item_returned", "timestamp": "2025-05-31T12:30:00Z", "user": {"external_id": "42"}},
		{"event_type": "item_returned", "timestamp": 1748694600000, "user": {"external_id": "42"}}]}`)
	var rows oapi.ImportEventsJSONRequestBody
	check(json.Unmarshal(body, &rows))
	for range 2 {
		r := must(events.ImportEventsWithResponse(ctx, rows)).JSON202
		fmt.Println("import:", r.Success, r.Total, r.NextRow)
	}
	eventually(func() bool {
		for _, t := range must(console.ListCatalogWithResponse(ctx)).JSON200.Data {
			if t.Key == "item_returned" && t.Count == 2 {
				fmt.Println("catalog:", t.Key, t.Count)
				return true
			}
		}
		return false
	})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// eventually asks until it is so.
func eventually(so func() bool) {
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			panic("it did not come about within a minute")
		}
	}
}
