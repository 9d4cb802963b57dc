package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fasthttp/router"

	"github.com/musterhq/muster/api/internal/flowbody"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
)

// publishPoll is how often it is looked whether a flow that is being published
// has gone live.
const publishPoll = 20 * time.Millisecond

// registerFlows adds the calls about flows.
func (a *API) registerFlows(r *router.Router) {
	for _, x := range []struct {
		method, path string
		access       access
		handle       func(*call) (any, error)
	}{
		{"GET", "/flows", "flows:read", a.listFlows},
		{"POST", "/flows", "flows:write", a.createFlow},
		{"GET", "/flows/{id}", "flows:read", a.getFlow},
		{"PUT", "/flows/{id}", "flows:write", a.updateFlow},
		{"PATCH", "/flows/{id}", "flows:write", a.setFlowStatus},
		{"DELETE", "/flows/{id}", "flows:write", a.deleteFlow},
		{"GET", "/flows/{id}/validate", "flows:read", a.validateFlow},
		{"POST", "/flows/{id}/publish", "flows:write", a.publishFlow},
		{"POST", "/flows/{id}/pause", "flows:write", a.changeFlow(resolver.CommandFlowPause)},
		{"POST", "/flows/{id}/resume", "flows:write", a.changeFlow(resolver.CommandFlowResume)},
		{"PATCH", "/flows/{id}/toggle", "flows:write", a.changeFlow(resolver.CommandFlowToggle)},
		{"POST", "/flows/{id}/duplicate", "flows:write", a.changeFlow(resolver.CommandFlowDuplicate)},
		{"POST", "/flows/{id}/trigger", "flows:write", a.triggerFlow},
		{"GET", "/flows/{id}/enrolments", "flows:read", a.listEnrolments},
		{"GET", "/flows/{id}/enrolments/{profile}", "flows:read", a.getEnrolments},
	} {
		r.Handle(x.method, Prefix+x.path, a.serve(x.method+" "+x.path, x.access, x.handle))
	}
}

var errNoFlow = missing("there is no flow with this id")

// listFlows answers GET /flows, the oldest first.
func (a *API) listFlows(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, cursorFault(err)
	}
	var out page
	err = a.read(c, func(v *resolver.View) error {
		out.items, out.next = record.FlowPage(v, after, limit)
		return nil
	})
	return out, err
}

func (a *API) flowOf(c *call, id string) (out record.Flow, err error) {
	err = a.read(c, func(v *resolver.View) error {
		f, ok := v.Flow(id)
		if !ok {
			return errNoFlow
		}
		out = record.NewFlow(&f)
		return nil
	})
	return out, err
}

func (a *API) getFlow(c *call) (any, error) { return a.flowOf(c, c.id()) }

// createFlow answers POST /flows: a draft.
func (a *API) createFlow(c *call) (any, error) {
	return a.saveFlow(c, resolver.CommandFlowCreate, "")
}

// updateFlow answers PUT /flows/{id}, which takes drafts only.
func (a *API) updateFlow(c *call) (any, error) {
	return a.saveFlow(c, resolver.CommandFlowUpdate, c.id())
}

// saveFlow saves the definition in the body.
func (a *API) saveFlow(c *call, command, id string) (any, error) {
	body, err := a.jsonBody(c)
	if err != nil {
		return nil, err
	}
	// What cannot be parsed needs no record in the log.
	def, err := flows.Parse(body)
	if err != nil {
		return nil, formFault(err)
	}
	id, err = a.commandID(c, command, resolver.FlowSave{ID: id, Definition: def.JSON()})
	if err != nil {
		return nil, err
	}
	return a.flowOf(c, id)
}

// formFault is what is wrong with a body that was read field by field.
func formFault(err error) error {
	var fault *jsonform.Error
	if !errors.As(err, &fault) {
		return err
	}
	return badField(fault.Path, "%s", fault)
}

// deleteFlow answers DELETE /flows/{id}.
func (a *API) deleteFlow(c *call) (any, error) {
	return nil, a.command(c, resolver.CommandFlowDelete, resolver.FlowID{ID: c.id()}, nil)
}

// changeFlow answers a call without a body, with the flow that is its result.
func (a *API) changeFlow(command string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		id, err := a.commandID(c, command, resolver.FlowID{ID: c.id()})
		if err != nil {
			return nil, err
		}
		return a.flowOf(c, id)
	}
}

// setFlowStatus answers PATCH /flows/{id}.
func (a *API) setFlowStatus(c *call) (any, error) {
	body, err := a.jsonBody(c)
	if err != nil {
		return nil, err
	}
	status, err := flowbody.Status(body)
	if err != nil {
		return nil, formFault(err)
	}
	if status == resolver.FlowPaused {
		return a.changeFlow(resolver.CommandFlowPause)(c)
	}
	return a.changeFlow(resolver.CommandFlowResume)(c)
}

// flowFault is one thing that keeps a flow from going live.
type flowFault struct {
	Step    *string `json:"step"` // null for the flow itself
	Path    string  `json:"path"`
	Message string  `json:"message"`
}

// validateFlow answers GET /flows/{id}/validate: all that keeps the flow from
// going live, want of credits last.
func (a *API) validateFlow(c *call) (any, error) {
	out := []flowFault{}
	err := a.read(c, func(v *resolver.View) error {
		f, ok := v.Flow(c.id())
		if !ok {
			return errNoFlow
		}
		for _, x := range append(v.FlowFaults(f.ID), f.Def.TargetFaults(a.webhookGuard())...) {
			out = append(out, flowFault{record.TextOrNull(x.Step), x.Path, x.Message})
		}
		if f.Def.SendsEmail() && v.CompanyState().EmailCredits < 1 {
			out = append(out, flowFault{Message: "the account is out of e-mail credits; top up"})
		}
		return nil
	})
	return map[string]any{"valid": len(out) == 0, "faults": out}, err
}

// publishFlow answers POST /flows/{id}/publish when the flow is live, or after
// [Options.PublishWait], while the conditions of its steps are still being built.
func (a *API) publishFlow(c *call) (any, error) {
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(context.Background(), a.opts.PublishWait+a.opts.ReadTimeout)
	defer cancel()
	if err := a.checkTargets(c); err != nil {
		return nil, err
	}
	if err := a.command(c, resolver.CommandFlowPublish, resolver.FlowID{ID: c.id()}, nil); err != nil {
		return nil, err
	}
	late := time.NewTimer(a.opts.PublishWait)
	defer late.Stop()
	poll := time.NewTicker(publishPoll)
	defer poll.Stop()
	for {
		f, err := a.flowOf(c, c.id())
		switch {
		case err != nil:
			return nil, err
		case f.PublishError != nil:
			return nil, &problem{status: http.StatusConflict, message: "the flow did not go live: " + *f.PublishError}
		case !f.Publishing:
			return f, nil
		}
		select {
		case <-poll.C:
			continue
		case <-late.C:
		case <-a.stop:
		}
		return accepted{f, "the conditions of the flow's steps are being built; it goes live by itself when they are, look at its status"}, nil
	}
}

// checkTargets refuses to publish a flow with a webhook to a place that this server
// does not call. What else is wrong with the flow is found when the record is applied.
func (a *API) checkTargets(c *call) error {
	var faults flows.Faults
	err := a.read(c, func(v *resolver.View) error {
		if f, ok := v.Flow(c.id()); ok && f.Status == resolver.FlowDraft {
			faults = f.Def.TargetFaults(a.webhookGuard())
		}
		return nil
	})
	if err == nil && len(faults) > 0 {
		err = badField("definition", "the flow is not complete: %s", faults)
	}
	return err
}

func (a *API) webhookGuard() webhook.Guard { return webhook.Guard{AllowPrivate: a.opts.AllowPrivate} }

// triggerFlow answers POST /flows/{id}/trigger: it enrols a contact in a flow
// whose trigger is the API.
func (a *API) triggerFlow(c *call) (any, error) {
	body, err := a.jsonBody(c)
	if err != nil {
		return nil, err
	}
	args, err := flowbody.Trigger(c.id(), body, true)
	if err != nil {
		return nil, formFault(err)
	}
	var out resolver.FlowTriggered
	err = a.command(c, resolver.CommandFlowTrigger, args, &out)
	return out, err
}
