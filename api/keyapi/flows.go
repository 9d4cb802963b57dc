package keyapi

import (
	"github.com/musterhq/muster/api/internal/flowbody"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
)

func (a *API) flowOperations() group {
	const none = "there is no flow with this id"
	return group{operation.Group{Surface: operation.SurfaceA, Tag: "Flows", Title: "Flows", About: "Automation: the steps that each enrolled profile goes through."}, []route{
		{a.listFlows, operation.Operation{Method: "GET", Path: "/custom-flows", Permission: "flows:read", ID: "listFlows", Summary: "List flows", About: "The oldest first. A page is shorter than `limit` where definitions are large.", Data: shape.List(shapes.Flow, ""), Paged: true}},
		{a.getFlow, operation.Operation{Method: "GET", Path: "/custom-flows/{id}", Permission: "flows:read", ID: "getFlow", Summary: "Read a flow", Data: shapes.Flow, Fails: []string{none}}},
		{a.setFlowStatus, operation.Operation{Method: "PATCH", Path: "/custom-flows/{id}", Permission: "flows:write", ID: "setFlowStatus", Summary: "Pause or resume a flow",
			About: "The body has the status and nothing else: any other field is refused, and nothing changes.", Body: shapes.FlowStatus(), Data: shapes.Flow,
			Fails: []string{"name must not be given: this call changes nothing but the status; to change what a flow does, duplicate it, change the copy and publish that"}}},
		{changeFlow(automation.CommandPause), operation.Operation{Method: "POST", Path: "/custom-flows/{id}/pause", Permission: "flows:write", ID: "pauseFlow", Summary: "Pause a flow",
			About: "No profile is enrolled and no enrolment advances; each stays at its step. A flow that is paused stays as it is.", Data: shapes.Flow, Fails: []string{"the flow is a draft; only a flow that was published can be paused"}}},
		{changeFlow(automation.CommandResume), operation.Operation{Method: "POST", Path: "/custom-flows/{id}/resume", Permission: "flows:write", ID: "resumeFlow", Summary: "Resume a flow",
			About: "Enrolments continue where they stopped. Refused while the flow lacks something, which the message lists, or while the account has no e-mail credits. A flow that is live stays as it is.", Data: shapes.Flow,
			Fails: []string{"the flow is not complete: steps[1] (welcome): sender cannot be used: the domain shop.example is not verified; add it to the sender domains and publish its DNS records",
				"the account is out of e-mail credits; top up and try again"}}},
		{changeFlow(automation.CommandToggle), operation.Operation{Method: "PATCH", Path: "/custom-flows/{id}/toggle", Permission: "flows:write", ID: "toggleFlow", Summary: "Pause a live flow, resume a paused one", Data: shapes.Flow, Fails: []string{"the flow is a draft; publish it first"}}},
		{changeFlow(automation.CommandDuplicate), operation.Operation{Method: "POST", Path: "/custom-flows/{id}/duplicate", Permission: "flows:write", ID: "duplicateFlow", Summary: "Copy a flow to a draft", About: "The source stays as it is.", Data: shapes.Flow, Fails: []string{none}}},
		{a.triggerFlow, operation.Operation{Method: "POST", Path: "/custom-flows/{id}/trigger", Permission: "flows:write", ID: "triggerFlow", Summary: "Enrol a contact", About: "In a live flow whose trigger is `api`.",
			Body: shapes.FlowEnrolment(), Data: shapes.FlowEnrolled, Fails: []string{"no contact has these identifiers; create it first"}}},
	}}
}

var errNoFlow = failWith(codeNotFound, "there is no flow with this id")

// listFlows answers GET /custom-flows, the oldest first.
func (a *API) listFlows(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, cursorFault(err)
	}
	var out []record.Flow
	next := ""
	err = c.read(func(v *resolver.View) error {
		out, next = record.FlowPage(v, after, limit)
		return nil
	})
	return reply{data: out, next: next}, err
}

func (c *call) flowOf(id string) (out record.Flow, err error) {
	err = c.read(func(v *resolver.View) error {
		f, ok := v.Flows().Find(id)
		if !ok {
			return errNoFlow
		}
		out = record.NewFlow(&f)
		return nil
	})
	return out, err
}

func (a *API) getFlow(c *call) (any, error) { return c.flowOf(c.param("id")) }

// changeFlow answers a call that takes no body, with the flow that is its result.
func changeFlow(command string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		var out automation.Reply
		if err := c.command(command, automation.ID{ID: c.param("id")}, &out); err != nil {
			return nil, err
		}
		return c.flowOf(out.ID)
	}
}

// setFlowStatus answers PATCH /custom-flows/{id}, which changes nothing but the
// status.
func (a *API) setFlowStatus(c *call) (any, error) {
	status, err := flowbody.Status(c.payload)
	if err != nil {
		return nil, Fail("%s", err)
	}
	if status == automation.Paused {
		return changeFlow(automation.CommandPause)(c)
	}
	return changeFlow(automation.CommandResume)(c)
}

// triggerFlow answers POST /custom-flows/{id}/trigger: it enrols a contact in a
// flow whose trigger is the API.
func (a *API) triggerFlow(c *call) (any, error) {
	args, err := flowbody.Trigger(c.param("id"), c.payload)
	if err != nil {
		return nil, Fail("%s", err)
	}
	var out automation.Triggered
	err = c.command(automation.CommandTrigger, args, &out)
	return out, err
}
