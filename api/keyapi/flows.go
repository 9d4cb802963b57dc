package keyapi

import (
	"github.com/musterhq/muster/api/internal/flowbody"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
)

func (a *API) flowRoutes() []route {
	return []route{
		{method: "GET", path: "/custom-flows", permission: "flows:read", handle: a.listFlows},
		{method: "GET", path: "/custom-flows/{id}", permission: "flows:read", handle: a.getFlow},
		{method: "PATCH", path: "/custom-flows/{id}", permission: "flows:write", handle: a.setFlowStatus},
		{method: "POST", path: "/custom-flows/{id}/pause", permission: "flows:write", handle: changeFlow(resolver.CommandFlowPause)},
		{method: "POST", path: "/custom-flows/{id}/resume", permission: "flows:write", handle: changeFlow(resolver.CommandFlowResume)},
		{method: "PATCH", path: "/custom-flows/{id}/toggle", permission: "flows:write", handle: changeFlow(resolver.CommandFlowToggle)},
		{method: "POST", path: "/custom-flows/{id}/duplicate", permission: "flows:write", handle: changeFlow(resolver.CommandFlowDuplicate)},
		{method: "POST", path: "/custom-flows/{id}/trigger", permission: "flows:write", handle: a.triggerFlow},
	}
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
		f, ok := v.Flow(id)
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
		var out resolver.FlowReply
		if err := c.command(command, resolver.FlowID{ID: c.param("id")}, &out); err != nil {
			return nil, err
		}
		return c.flowOf(out.ID)
	}
}

// flowBody is the body of a call about flows, which must not be missing.
func (c *call) flowBody() ([]byte, error) {
	body, err := c.body()
	if err == nil && len(body) == 0 {
		err = Fail("body Field required")
	}
	return body, err
}

// setFlowStatus answers PATCH /custom-flows/{id}, which changes nothing but the
// status.
func (a *API) setFlowStatus(c *call) (any, error) {
	body, err := c.flowBody()
	if err != nil {
		return nil, err
	}
	status, err := flowbody.Status(body)
	if err != nil {
		return nil, Fail("%s", err)
	}
	if status == resolver.FlowPaused {
		return changeFlow(resolver.CommandFlowPause)(c)
	}
	return changeFlow(resolver.CommandFlowResume)(c)
}

// triggerFlow answers POST /custom-flows/{id}/trigger: it enrols a contact in a
// flow whose trigger is the API.
func (a *API) triggerFlow(c *call) (any, error) {
	body, err := c.flowBody()
	if err != nil {
		return nil, err
	}
	args, err := flowbody.Trigger(c.param("id"), body, false)
	if err != nil {
		return nil, Fail("%s", err)
	}
	var out resolver.FlowTriggered
	err = c.command(resolver.CommandFlowTrigger, args, &out)
	return out, err
}
