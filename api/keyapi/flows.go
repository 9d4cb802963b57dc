package keyapi

import (
	"github.com/musterhq/muster/api/internal/flowbody"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
)

func flowOperations() keycall.Group {
	const none = "there is no flow with this id"
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "Flows", Title: "Flows", About: "Automation: the steps that each enrolled profile goes through."}, Routes: []keycall.Route{
		{Handle: listFlows, Operation: operation.Operation{Method: "GET", Path: "/custom-flows", Permission: "flows:read", ID: "listFlows", Summary: "List flows", About: "The oldest first. A page is shorter than `limit` where definitions are large.", Data: shape.List(shapes.Flow, ""), Paged: true}},
		{Handle: getFlow, Operation: operation.Operation{Method: "GET", Path: "/custom-flows/{id}", Permission: "flows:read", ID: "getFlow", Summary: "Read a flow", Data: shapes.Flow, Fails: []string{none}}},
		{Handle: setFlowStatus, Operation: operation.Operation{Method: "PATCH", Path: "/custom-flows/{id}", Permission: "flows:write", ID: "setFlowStatus", Summary: "Pause or resume a flow",
			About: "The body has the status and nothing else: any other field is refused, and nothing changes.", Body: shapes.FlowStatus(), Data: shapes.Flow,
			Fails: []string{"name must not be given: this call changes nothing but the status; to change what a flow does, duplicate it, change the copy and publish that"}}},
		{Handle: changeFlow(automation.CommandPause), Operation: operation.Operation{Method: "POST", Path: "/custom-flows/{id}/pause", Permission: "flows:write", ID: "pauseFlow", Summary: "Pause a flow",
			About: "No profile is enrolled and no enrolment advances; each stays at its step. A flow that is paused stays as it is.", Data: shapes.Flow, Fails: []string{"the flow is a draft; only a flow that was published can be paused"}}},
		{Handle: changeFlow(automation.CommandResume), Operation: operation.Operation{Method: "POST", Path: "/custom-flows/{id}/resume", Permission: "flows:write", ID: "resumeFlow", Summary: "Resume a flow",
			About: "Enrolments continue where they stopped. Refused while the flow lacks something, which the message lists, or while the account has no e-mail credits. A flow that is live stays as it is.", Data: shapes.Flow,
			Fails: []string{"the flow is not complete: steps[1] (welcome): sender cannot be used: the domain shop.example is not verified; add it to the sender domains and publish its DNS records",
				"the account is out of e-mail credits; top up and try again"}}},
		{Handle: changeFlow(automation.CommandToggle), Operation: operation.Operation{Method: "PATCH", Path: "/custom-flows/{id}/toggle", Permission: "flows:write", ID: "toggleFlow", Summary: "Pause a live flow, resume a paused one", Data: shapes.Flow, Fails: []string{"the flow is a draft; publish it first"}}},
		{Handle: changeFlow(automation.CommandDuplicate), Operation: operation.Operation{Method: "POST", Path: "/custom-flows/{id}/duplicate", Permission: "flows:write", ID: "duplicateFlow", Summary: "Copy a flow to a draft", About: "The source stays as it is.", Data: shapes.Flow, Fails: []string{none}}},
		{Handle: triggerFlow, Operation: operation.Operation{Method: "POST", Path: "/custom-flows/{id}/trigger", Permission: "flows:write", ID: "triggerFlow", Summary: "Enrol a contact", About: "In a live flow whose trigger is `api`.",
			Body: shapes.FlowEnrolment(), Data: shapes.FlowEnrolled, Fails: []string{"no contact has these identifiers; create it first"}}},
	}}
}

// listFlows answers GET /custom-flows, the oldest first.
func listFlows(c *keycall.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, keycall.CursorFault(err)
	}
	var out []record.Flow
	next := ""
	err = c.Read(func(v *resolver.View) error {
		out, next = record.FlowPage(v, after, limit)
		return nil
	})
	return keycall.Reply{Data: out, Next: next}, err
}

func flowOf(c *keycall.Call, id string) (out record.Flow, err error) {
	err = c.Read(func(v *resolver.View) error {
		f, ok := v.Flows().Find(id)
		if !ok {
			return keycall.ErrNoFlow
		}
		out = record.NewFlow(&f)
		return nil
	})
	return out, err
}

func getFlow(c *keycall.Call) (any, error) { return flowOf(c, c.Param("id")) }

// changeFlow answers a call that takes no body, with the flow that is its result.
func changeFlow(command string) func(*keycall.Call) (any, error) {
	return func(c *keycall.Call) (any, error) {
		var out automation.Reply
		if err := c.Command(command, automation.ID{ID: c.Param("id")}, &out); err != nil {
			return nil, err
		}
		return flowOf(c, out.ID)
	}
}

// setFlowStatus answers PATCH /custom-flows/{id}, which changes nothing but the
// status.
func setFlowStatus(c *keycall.Call) (any, error) {
	status, err := flowbody.Status(c.Payload)
	if err != nil {
		return nil, keycall.Fail("%s", err)
	}
	if status == automation.Paused {
		return changeFlow(automation.CommandPause)(c)
	}
	return changeFlow(automation.CommandResume)(c)
}

// triggerFlow answers POST /custom-flows/{id}/trigger: it enrols a contact in a
// flow whose trigger is the API.
func triggerFlow(c *keycall.Call) (any, error) {
	args, err := flowbody.Trigger(c.Param("id"), c.Payload)
	if err != nil {
		return nil, keycall.Fail("%s", err)
	}
	var out automation.Triggered
	err = c.Command(automation.CommandTrigger, args, &out)
	return out, err
}
