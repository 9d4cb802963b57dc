// Command opgtour takes the client that openapi-generator makes of /openapi.json
// through the places where clients go wrong: alternatives in requests and answers,
// failures with status 200, null, and large numbers. It reads the file of
// credentials that its argument names; opgtour.txt beside this module has the lines
// that it prints when all is right.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	client "example.com/client/opg"
)

func main() {
	var c struct {
		Base   string `json:"base_url"`
		App    string `json:"app_id"`
		Secret string `json:"app_secret"`
		Key    string `json:"api_key"`
		Email  string `json:"console_email"`
		Pass   string `json:"console_password"`
	}
	check(json.Unmarshal(must(os.ReadFile(os.Args[1])), &c))
	settings := client.NewConfiguration()
	settings.Servers = client.ServerConfigurations{{URL: strings.TrimSuffix(c.Base, "/api/v1")}}
	api := client.NewAPIClient(settings)
	session := done(api.ConsoleSessionAPI.SignIn(context.Background()).SignInRequest(*client.NewSignInRequest(c.Email, c.Pass)).Execute())
	console := context.WithValue(context.Background(), client.ContextAccessToken, session.Data.GetToken())
	keyed := context.WithValue(context.Background(), client.ContextAccessToken, c.Key)
	events := context.WithValue(context.Background(), client.ContextAPIKeys, map[string]client.APIKey{"appID": {Key: c.App}, "appSecret": {Key: c.Secret}})

	// Events.
	user := client.NewEventUser()
	user.SetEmail("ada@example.com")
	user.SetGeo(map[string]any{"country": "DE"})
	purchase := client.NewEvent("item_purchased", *user)
	purchase.SetProperties(map[string]any{"value": 120})
	ada := done(api.EventsAPI.RecordEvent(events).Event(*purchase).Execute())
	fmt.Println("event:", ada.Success, ada.Error.IsSet() && ada.Error.Get() == nil)

	// A definition with alternatives, and back.
	spent := client.NewActivityCondition("activity", "item_purchased")
	spent.SetAggregate(*client.NewEventAggregate("sum", "value", ">=", client.Float64AsComparedNumber(client.PtrFloat64(100))))
	spent.SetWindow(client.LastDaysAsTimeWindow(client.NewLastDays(30)))
	german := client.NewAttributeCondition("attribute", "geo.country", "=")
	german.SetValue(client.StringAsConditionValue(client.PtrString("DE")))
	both := client.SegmentGroupAsSegmentDefinition(client.NewSegmentGroup("all", []client.SegmentDefinition{
		client.ActivityConditionAsSegmentDefinition(spent), client.AttributeConditionAsSegmentDefinition(german),
	}))
	preview := done(api.ConsoleSegmentsAPI.PreviewSegment(console).PreviewSegmentRequest(*client.NewPreviewSegmentRequest(both)).Execute())
	fmt.Println("preview:", preview.Data.Count, preview.Data.Sample[0].Identities.Email[0], preview.Data.Sample[0].LastEventAt.IsSet())
	saved := done(api.ConsoleSegmentsAPI.CreateSegment(console).CreateSegmentRequest(*client.NewCreateSegmentRequest("Spent 100", both)).Execute())
	segment := done(api.ConsoleSegmentsAPI.GetSegment(console, saved.Data.Id).Execute()).Data
	conditions := segment.Definition.SegmentGroup.Conditions
	fmt.Println("segment:", segment.Count.Get() != nil, conditions[0].ActivityCondition.Window.LastDays.LastDays, *conditions[0].ActivityCondition.Aggregate.Value.Float64, *conditions[1].AttributeCondition.Value.String)
	why := done(api.ConsoleSegmentsAPI.ExplainSegment(console, segment.Id).ProfileId(ada.ProfileId).Execute()).Data
	fmt.Println("explained:", why.Member, why.Definition.Conditions[0].Facts.Get().GetMatchingEvents(), why.Definition.Conditions[1].Condition.AttributeCondition.Field)

	// Success and failure, both with status 200.
	list := done(api.ListsAPI.CreateList(keyed).CreateListRequest(*client.NewCreateListRequest("News")).Execute())
	fmt.Println("list:", list.CreateListSuccess.Status, list.CreateListSuccess.Data.Name, list.Failure == nil)
	missing := done(api.CampaignsAPI.GetCampaign(keyed, "cmp_0").Execute())
	fmt.Println("no campaign:", missing.Failure.Status, missing.Failure.Message, missing.GetCampaignSuccess == nil)
	push := client.NewSendPushRequest("Sale")
	push.SetDryRun(true)
	dry := done(api.PushAPI.SendPush(keyed).SendPushRequest(*push).Execute())
	fmt.Println("push:", dry.SendPushSuccess != nil, dry.SendPushFailure == nil)

	// A flow, whose steps are alternatives told apart by their type.
	mark, wait := client.NewFlowStepTag("tag", "mark"), client.NewFlowStepWait("wait", "later")
	mark.SetAdd([]string{"vip"})
	mark.SetNext("later")
	wait.SetSeconds(86400)
	entered := client.NewFlowTriggerSegmentEntered("segment_entered")
	entered.SetSegmentId(segment.Id)
	draft := client.NewCreateFlowRequest("Thank you")
	draft.SetTrigger(client.FlowTriggerSegmentEnteredAsFlowTrigger(entered))
	draft.SetSteps([]client.FlowStep{client.FlowStepTagAsFlowStep(mark), client.FlowStepWaitAsFlowStep(wait)})
	flow := done(api.ConsoleFlowsAPI.CreateFlow(console).CreateFlowRequest(*draft).Execute()).Data
	fmt.Println("flow:", flow.Trigger.Get().FlowTriggerSegmentEntered.GetSegmentId() == segment.Id, flow.Steps[0].FlowStepTag.Add[0], flow.Steps[1].FlowStepWait.GetSeconds(), flow.PublishedAt.Get() == nil)
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

// done is the answer of a call that succeeded.
func done[T any](v T, response *http.Response, err error) T {
	if err != nil && response != nil {
		panic(fmt.Sprintf("%s %s: %v", response.Request.URL, response.Status, err))
	}
	check(err)
	return v
}
