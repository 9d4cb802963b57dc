package automation

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/musterhq/muster/api/internal/flowbody"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/flows/ready"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/view"
)

// publishPoll is how often it is looked whether a flow that is being published
// has gone live.
const publishPoll = 20 * time.Millisecond

// Operations are the calls about flows.
func (a *API) Operations() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: flows", Title: "Flows", About: "Automation: drafts, their publication, and the enrolments of a flow."}, Routes: []handler.Route{
		{Handle: a.listFlows, Operation: operation.Operation{Method: "GET", Path: "/flows", Permission: "flows:read", ID: "consoleListFlows", Summary: "List flows", About: "The oldest first. A page is shorter than `limit` where definitions are large.", Data: shape.List(shapes.Flow, ""), Paged: true}},
		{Handle: a.createFlow, Operation: operation.Operation{Method: "POST", Path: "/flows", Permission: "flows:write", ID: "createFlow", Summary: "Create a draft", About: "A draft may lack anything but a name.", Body: flowDefinitionShape(), Data: shapes.Flow}},
		{Handle: a.readyFlows, Operation: operation.Operation{Method: "GET", Path: "/ready-flows", Permission: "flows:read", ID: "readyFlows", Summary: "List definitions that are ready to be made into flows", About: "Send a `definition` to `POST /flows`.",
			Data: shape.List(shape.Named("ReadyFlow", shape.Object(shape.Req("id", shape.Text("abandoned_cart", "")), shape.Req("name", shape.Text("Abandoned cart", "")), shape.Req("about", shape.Text("Reminds people of their cart.", "")), shape.Req("definition", flowDefinitionShape()))), "")}},
		{Handle: a.getFlow, Operation: operation.Operation{Method: "GET", Path: "/flows/{id}", Permission: "flows:read", ID: "consoleGetFlow", Summary: "Read a flow", Data: shapes.Flow}},
		flowVersionsRoute(),
		a.dryRunRoute(),
		handler.UsedInRoute("/flows", "flows:read", "flowUsedIn", "a flow", "Segments and flows whose conditions or triggers name it, by the `flow_id` of events. They do not keep it from being deleted.", view.UsedIn.Flow, errNoFlow),
		{Handle: a.updateFlow, Operation: operation.Operation{Method: "PUT", Path: "/flows/{id}", Permission: "flows:write", ID: "updateFlow", Summary: "Replace a draft", About: "What was published is locked: duplicate it, change the copy and publish that.", Query: handler.IfVersionQuery(), Body: flowDefinitionShape(), Data: shapes.Flow, Also: []int{409}}},
		{Handle: a.setFlowStatus, Operation: operation.Operation{Method: "PATCH", Path: "/flows/{id}", Permission: "flows:write", ID: "consoleSetFlowStatus", Summary: "Pause or resume a flow", Body: shapes.FlowStatus(), Data: shapes.Flow, Also: []int{409}}},
		{Handle: a.deleteFlow, Operation: operation.Operation{Method: "DELETE", Path: "/flows/{id}", Permission: "flows:write", ID: "deleteFlow", Summary: "Delete a flow", About: "Its enrolments are deleted, too. Refused while it is live.", Also: []int{409}}},
		{Handle: a.validateFlow, Operation: operation.Operation{Method: "GET", Path: "/flows/{id}/validate", Permission: "flows:read", ID: "validateFlow", Summary: "List what a flow lacks to go live",
			Data: shape.Object(shape.Req("valid", shape.Boolean(false, "Whether nothing does.")), shape.Req("faults", shape.List(shape.Object(
				shape.Req("step", shape.Text("welcome", "Id of the step; null for the flow itself.").OrNull()), shape.Req("path", shape.Text("steps[0].subject", "JSON path of what is at fault; empty for what the definition does not have.")),
				shape.Req("message", shape.Text("is missing", "Continues a sentence that begins with the path.")),
			), "In the order of the definition.")))}},
		{Handle: a.publishFlow, Operation: operation.Operation{Method: "POST", Path: "/flows/{id}/publish", Permission: "flows:write", ID: "publishFlow", Summary: "Publish a draft",
			About: "Answers when the flow is live, or after 30 seconds, while the conditions of its steps are still being built; it then goes live by itself. Webhooks to private addresses are refused, unless the server was started with `--allow-private-webhooks`.", Data: shapes.Flow,
			Other: shape.Pairs("200", operation.Response("It is live.", operation.Envelope(shapes.Flow), nil), "202", operation.Response("Its conditions are still being built.", operation.Envelope(shapes.Flow), nil)), Also: []int{400, 409}}},
		{Handle: a.changeFlow(automation.CommandPause), Operation: operation.Operation{Method: "POST", Path: "/flows/{id}/pause", Permission: "flows:write", ID: "consolePauseFlow", Summary: "Pause a flow", Data: shapes.Flow, Also: []int{409}}},
		{Handle: a.changeFlow(automation.CommandResume), Operation: operation.Operation{Method: "POST", Path: "/flows/{id}/resume", Permission: "flows:write", ID: "consoleResumeFlow", Summary: "Resume a flow", Data: shapes.Flow, Also: []int{400, 409}}},
		{Handle: a.changeFlow(automation.CommandToggle), Operation: operation.Operation{Method: "PATCH", Path: "/flows/{id}/toggle", Permission: "flows:write", ID: "consoleToggleFlow", Summary: "Pause a live flow, resume a paused one", Data: shapes.Flow, Also: []int{400, 409}}},
		{Handle: a.changeFlow(automation.CommandDuplicate), Operation: operation.Operation{Method: "POST", Path: "/flows/{id}/duplicate", Permission: "flows:write", ID: "consoleDuplicateFlow", Summary: "Copy a flow to a draft", Data: shapes.Flow, Also: []int{409}}},
		{Handle: a.triggerFlow, Operation: operation.Operation{Method: "POST", Path: "/flows/{id}/trigger", Permission: "flows:write", ID: "consoleTriggerFlow", Summary: "Enrol a contact", About: "In a live flow whose trigger is `api`.", Body: shapes.FlowEnrolment(), Data: shapes.FlowEnrolled, Also: []int{409}}},
		{Handle: a.listEnrolments, Operation: operation.Operation{Method: "GET", Path: "/flows/{id}/enrolments", Permission: "flows:read", ID: "listEnrolments", Summary: "List the enrolments of a flow",
			About: "In the order in which profiles were made; of a profile that was in it several times the newest last. The work of a page is bounded, so with `step` a page may have few enrolments, or none, and lead on with `next`.",
			Query: append(operation.PageQuery(), operation.Query("status", shape.Word("Which.", "all", "in_progress").Default("all")), operation.Query("step", shape.Text("wait_a_day", "Those alone that are at the step with this id now."))),
			Data:  shape.Object(shape.Req("enrolments", shape.List(enrolmentShape, "")), shape.Req("next", shape.NextCursor.OrNull()))}},
		{Handle: a.getEnrolments, Operation: operation.Operation{Method: "GET", Path: "/flows/{id}/enrolments/{profile}", Permission: "flows:read", ID: "getEnrolments", Summary: "List a profile's enrolments in a flow", About: "The newest last; of those that have ended the newest ten.",
			Data: shape.Object(shape.Req("enrolments", shape.List(enrolmentShape.Plus(shape.Req("path", shape.List(shape.Object(
				shape.Req("id", shape.Text("welcome", "Id of the step.")), shape.Req("type", shapes.FlowStepType()), shape.Req("at", shape.Instant("When the profile came there.")),
				shape.Req("result", shapes.FlowStepResult("What became of it; `pending` while it lasts.")), shape.Req("branch", shape.Count(0, "Index of the branch that a split chose; null for other steps.").OrNull()),
				shape.Req("channel", shapes.FlowChannel("The channel that an omnichannel step's message was queued on first; null for other steps and results.").OrNull()),
				shape.Req("reason", shape.Text("connection refused", "Why the step failed, 200 bytes at most; null for other results, and for webhooks that failed before reasons were kept.").OrNull()),
			), "In the order in which the profile came to them."))), "")))}},
	}}
}

var errNoFlow = handler.NotFound("there is no flow with this id")

// listFlows answers GET /flows, the oldest first.
func (a *API) listFlows(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, handler.CursorFault(err)
	}
	var out handler.Page
	err = c.Read(func(v *resolver.View) error {
		out.Items, out.Next = record.FlowPage(v, after, limit)
		return nil
	})
	return out, err
}

func (a *API) flowOf(c *handler.Call, id string) (out record.Flow, err error) {
	err = c.Read(func(v *resolver.View) error {
		f, ok := v.Flows().Find(id)
		if !ok {
			return errNoFlow
		}
		out = record.NewFlow(&f)
		return nil
	})
	return out, err
}

func (a *API) getFlow(c *handler.Call) (any, error) { return a.flowOf(c, c.PathID()) }

// readyFlows answers GET /ready-flows.
func (a *API) readyFlows(*handler.Call) (any, error) { return ready.Flows(), nil }

// createFlow answers POST /flows: a draft.
func (a *API) createFlow(c *handler.Call) (any, error) {
	return a.saveFlow(c, automation.CommandCreate, "")
}

// updateFlow answers PUT /flows/{id}, which takes drafts only.
func (a *API) updateFlow(c *handler.Call) (any, error) {
	return a.saveFlow(c, automation.CommandUpdate, c.PathID())
}

// saveFlow saves the definition in the body.
func (a *API) saveFlow(c *handler.Call, command, id string) (any, error) {
	// What cannot be parsed needs no record in the log.
	def, err := flows.Parse(c.Payload)
	if err != nil {
		return nil, formFault(err)
	}
	def.UseCurrentFields()
	id, err = c.CommandID(command, automation.Save{ID: id, Definition: def.JSON(), IfVersion: c.IfVersion()})
	if err != nil {
		return nil, err
	}
	return a.flowOf(c, id)
}

// formFault is the fault of a body that was read field by field.
func formFault(err error) error {
	var fault *jsonform.Error
	if !errors.As(err, &fault) {
		return err
	}
	return handler.BadField(fault.Path, "%s", fault)
}

// deleteFlow answers DELETE /flows/{id}.
func (a *API) deleteFlow(c *handler.Call) (any, error) {
	return nil, c.Command(automation.CommandDelete, automation.ID{ID: c.PathID()}, nil)
}

// changeFlow answers a call without a body, with the flow that is its result.
func (a *API) changeFlow(command string) func(*handler.Call) (any, error) {
	return func(c *handler.Call) (any, error) {
		id, err := c.CommandID(command, automation.ID{ID: c.PathID()})
		if err != nil {
			return nil, err
		}
		return a.flowOf(c, id)
	}
}

// setFlowStatus answers PATCH /flows/{id}.
func (a *API) setFlowStatus(c *handler.Call) (any, error) {
	status, err := flowbody.Status(c.Payload)
	if err != nil {
		return nil, formFault(err)
	}
	if status == automation.Paused {
		return a.changeFlow(automation.CommandPause)(c)
	}
	return a.changeFlow(automation.CommandResume)(c)
}

// flowFault is one thing that keeps a flow from going live.
type flowFault struct {
	Step    *string `json:"step"` // null for the flow itself
	Path    string  `json:"path"`
	Message string  `json:"message"`
}

// validateFlow answers GET /flows/{id}/validate: all that keeps the flow from
// going live, want of credits last.
func (a *API) validateFlow(c *handler.Call) (any, error) {
	out := []flowFault{}
	err := c.Read(func(v *resolver.View) error {
		f, ok := v.Flows().Find(c.PathID())
		if !ok {
			return errNoFlow
		}
		outside, err := a.faultsOutside(v, f.ID, f.Def)
		if err != nil {
			return err
		}
		for _, x := range slices.Concat(v.Flows().Faults(f.ID), outside) {
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
func (a *API) publishFlow(c *handler.Call) (any, error) {
	var cancel context.CancelFunc
	c.Ctx, cancel = context.WithTimeout(context.Background(), a.opts.PublishWait+a.opts.ReadTimeout)
	defer cancel()
	if err := a.checkTargets(c); err != nil {
		return nil, err
	}
	if err := c.Command(automation.CommandPublish, automation.ID{ID: c.PathID()}, nil); err != nil {
		return nil, err
	}
	late := time.NewTimer(a.opts.PublishWait)
	defer late.Stop()
	poll := time.NewTicker(publishPoll)
	defer poll.Stop()
	for {
		f, err := a.flowOf(c, c.PathID())
		switch {
		case err != nil:
			return nil, err
		case f.PublishError != nil:
			return nil, &handler.Problem{Status: http.StatusConflict, Message: "the flow did not go live: " + *f.PublishError}
		case !f.Publishing:
			return f, nil
		}
		select {
		case <-poll.C:
			continue
		case <-late.C:
		case <-c.Stopping():
		}
		return handler.Accepted{Data: f, Message: "the conditions of the flow's steps are being built; it goes live by itself when they are, look at its status"}, nil
	}
}

// faultsOutside lists what is wrong with a flow for reasons that are no rules of the state
// machine: webhooks to places that this server does not call, messages whose merge tags have no
// value, and those that the account's providers never take.
func (a *API) faultsOutside(v *resolver.View, id string, def *flows.Flow) (flows.Faults, error) {
	providers, err := compose.FlowProviderFaults(v, a.opts.PublicURL, id, def)
	return slices.Concat(def.TargetFaults(a.webhookGuard()), compose.FlowTagFaults(v, def), providers), err
}

// checkTargets refuses to publish a flow that has [API.faultsOutside]. What else is wrong with the
// flow is found when the record is applied.
func (a *API) checkTargets(c *handler.Call) error {
	var faults flows.Faults
	err := c.Read(func(v *resolver.View) (err error) {
		if f, ok := v.Flows().Find(c.PathID()); ok && f.Status == automation.Draft {
			faults, err = a.faultsOutside(v, f.ID, f.Def)
		}
		return err
	})
	if err == nil && len(faults) > 0 {
		err = handler.BadField("definition", "the flow is not complete: %s", faults)
	}
	return err
}

func (a *API) webhookGuard() webhook.Guard { return webhook.Guard{AllowPrivate: a.opts.AllowPrivate} }

// triggerFlow answers POST /flows/{id}/trigger: it enrols a contact in a flow
// whose trigger is the API.
func (a *API) triggerFlow(c *handler.Call) (any, error) {
	args, err := flowbody.Trigger(c.PathID(), c.Payload)
	if err != nil {
		return nil, formFault(err)
	}
	var out automation.Triggered
	err = c.Command(automation.CommandTrigger, args, &out)
	return out, err
}

func flowVersionsRoute() handler.Route {
	return handler.ContentVersionsRoute("/flows/{id}", "flows:read", "flowVersions", "FlowVersion", "a flow", "flow",
		shape.FreeObject(shape.Pairs("name", "Welcome", "trigger", nil, "reentry", "once", "steps", []any{}), "The definition, as saving a draft takes it."), nil,
		func(v *resolver.View, id string) error {
			if _, ok := v.Flows().Find(id); !ok {
				return errNoFlow
			}
			return nil
		})
}
