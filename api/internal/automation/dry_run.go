package automation

import (
	"errors"
	"net/http"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
)

func (a *API) dryRunRoute() handler.Route {
	return handler.Route{Handle: a.dryRun, Operation: operation.Operation{Method: "POST", Path: "/flows/{id}/dry-run", Permission: "flows:read", ID: "dryRunFlow", Summary: "Try a flow on a profile (dry run)",
		About: "Walks through the saved steps as if the profile began now, whatever the trigger. Nothing is sent or changed. Splits choose as they will for the profile's next enrolment; conditions after a wait are judged at its end, with what is known now; webhooks are taken to succeed. " +
			"What a tag or an update step would change is not seen by the conditions after it.",
		Body: shape.Named("DryRunRequest", shape.Object(shape.Req("profile_id", shape.ProfileID("The profile.")))),
		Data: shape.Named("DryRun", shape.Object(
			shape.Req("profile_id", shape.ProfileID("The profile's present id.")),
			shape.Req("as_of", shape.Instant("When it would begin.")),
			shape.Req("begins", shape.Boolean(true, "False when the flow does not let this profile begin again: it lets each in once, or the profile is in it now.")),
			shape.Req("outcome", shape.Word("", "completed", "exited")),
			shape.Req("ends_at", shape.Instant("When it would end.")),
			shape.Req("steps", shape.List(shape.Object(
				shape.Req("id", shape.Text("welcome", "Id of the step.")), shape.Req("type", shapes.FlowStepType()), shape.Req("at", shape.Instant("When the profile would come there.")),
				shape.Req("result", shapes.FlowStepResult("What would become of it. `failed`: the message would not be sent, see `reason`.")),
				shape.Req("reason", shape.Text("{{first_name}} has no value for this person, and no default", "Why a message would not be sent that the profile can be reached with: a merge tag without a value and a default, or a number that another contact refused. Null for other results. Tags `event.…` are taken to have a value where the flow's trigger has an event.").OrNull()),
				shape.Req("until", shape.Instant("When a wait would end; null for other steps.").OrNull()),
				shape.Req("branch", shape.Count(0, "Index of the branch that a split would choose; null for other steps.").OrNull()),
				shape.Req("channel", shapes.FlowChannel("The channel that an omnichannel step would send on; null for other steps and results.").OrNull()),
				shape.Req("why", shapes.Explained.OrNull()),
			), "In the order in which the profile would come to them. `why` is the explained definition of a condition.")),
		)), Also: []int{409, 503}}}
}

// dryStep is a step that a profile would come to.
type dryStep struct {
	ID     string  `json:"id"`
	Type   string  `json:"type"`
	At     string  `json:"at"`
	Result string  `json:"result"`
	Reason *string `json:"reason"`
	Until  *string `json:"until"`
	Branch *int    `json:"branch"`
	// Channel is the one that an omnichannel step's message would be queued on.
	Channel *string                   `json:"channel"`
	Why     *evaluation.ExplainedNode `json:"why"`
}

// dryHost is a [flows.Host] that does nothing.
type dryHost struct {
	q     *evaluation.Question
	p     *evaluation.Profile
	f     *automation.FlowState
	trial automation.Trial
	holes compose.Holed
	// failed says why the last message of a step would fail, by the place of the step.
	failed map[int]string
	nowMs  int64
	whys   map[int]*evaluation.ExplainedNode // by the place of the visit
	came   int                               // visits so far
	err    error
}

func (h *dryHost) Live() bool                                             { return h.err == nil }
func (h *dryHost) Random(step int) uint64                                 { return h.trial.Split[step] }
func (h *dryHost) HeldUntil() int64                                       { return 0 } // it holds no message
func (h *dryHost) Webhook(int, *flows.Webhook) (r flows.Result, _ uint64) { return flows.Delivered, 0 }
func (h *dryHost) Tag(int, *flows.Tag) flows.Result                       { return flows.Done }
func (h *dryHost) Update(int, *flows.Update) flows.Result                 { return flows.Done }
func (h *dryHost) Arrived(int)                                            { h.came++ }
func (h *dryHost) Left(int, flows.Result)                                 {}
func (h *dryHost) LooksAgain() bool                                       { return false } // nothing is held up
func (h *dryHost) Returned(int, flows.Result)                             {}

// Send is what would become of a step's messages: a message that would not be sent to a person
// who can be reached on its channel makes room for the next.
func (h *dryHost) Send(step int, messages []flows.Message) (r flows.Result, at int) {
	for i := range messages {
		r = h.trial.Reach[messages[i].Channel]
		switch hole := h.holes[step][i]; {
		case r != flows.Queued:
		case hole == "":
			return r, i
		default:
			r, h.failed[step] = flows.Failed, hole
		}
	}
	return r, 0
}

// Matches judges the condition at the instant that the enrolment has come to.
func (h *dryHost) Matches(step int) bool {
	c := h.f.Def.Steps[step].Condition
	x, err := h.q.ExplainAt(h.nowMs, c.Root, h.p)
	if err != nil {
		h.err = err
		return false
	}
	h.whys[h.came-1] = x.Definition
	return x.Member && (!c.OpenCart || h.trial.OpenCart)
}

// dryRun answers POST /flows/{id}/dry-run.
func (a *API) dryRun(c *handler.Call) (any, error) {
	var in struct {
		ProfileID string `json:"profile_id"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.ProfileID == "" {
		return nil, handler.BadField("profile_id", "profile_id is missing; name the profile that the flow is tried on")
	}
	h := &dryHost{failed: map[int]string{}, whys: map[int]*evaluation.ExplainedNode{}}
	var before []flows.Enrolment
	q, err := a.opts.Evaluation.Ask(c, func(q *evaluation.Question, v *resolver.View) error {
		f, ok := v.Flows().Find(c.PathID())
		if !ok {
			return errNoFlow
		}
		h.f = &f
		if f.Status == automation.Draft {
			if faults := v.Flows().Faults(f.ID); len(faults) > 0 {
				return &handler.Problem{Status: http.StatusConflict, Message: "the flow is not complete: " + faults.String()}
			}
		}
		ordinal, ok := v.Profiles().ResolveText(in.ProfileID)
		if !ok {
			return handler.ErrNoProfile
		}
		for i := range f.Def.Steps {
			if x := f.Def.Steps[i].Condition; x != nil {
				if err := q.CheckDefinition(v, x.Root); err != nil {
					return err
				}
			}
		}
		var err error
		if h.trial, err = v.FlowTrial(&f, ordinal); err != nil {
			return err
		}
		p, err := v.Profiles().Get(ordinal)
		if err != nil {
			return err
		}
		if h.holes, err = compose.FlowHoles(v, f.Def, p); err != nil {
			return err
		}
		if before, err = v.Flows().EnrolmentsOf(f.ID, ordinal); err != nil {
			return err
		}
		h.p, err = q.Profile(v, ordinal)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	h.q, h.nowMs = q, q.AtMs
	began := q.AtMs
	budget := flows.MaxSteps + 1 // no flow leads back to a step
	e := h.f.Def.Start(began, 0, nil, h)
	until := map[int]int64{} // by the place of the visit
	for e.Status == flows.InProgress && budget > 0 && h.err == nil {
		h.f.Def.Run(&e, h.nowMs, &budget, h)
		if e.Status == flows.InProgress && e.Phase == flows.Sleeping {
			until[len(e.Path)-1] = e.DueMs
			h.nowMs = e.DueMs
		}
	}
	switch {
	case h.err != nil:
		return nil, h.err
	case e.Status == flows.InProgress:
		return nil, errors.New("the dry run of flow " + h.f.ID + " did not end")
	}
	steps := make([]dryStep, len(e.Path))
	for i := range e.Path {
		x, s := &e.Path[i], &h.f.Def.Steps[e.Path[i].Step]
		steps[i] = dryStep{ID: s.ID, Type: s.Type, At: record.Time(x.AtMs), Result: x.Result.String(), Channel: record.MessageChannel(s, x.Result, x.Branch), Why: h.whys[i]}
		if due, waits := until[i]; waits {
			steps[i].Until = record.TimeOrNull(due)
		}
		if x.Result == flows.Failed {
			steps[i].Reason = record.TextOrNull(h.failed[x.Step])
		}
		if x.Result == flows.Branched {
			steps[i].Branch = &x.Branch
		}
	}
	begins := len(before) == 0 || h.f.Def.Reentry != flows.Once && before[len(before)-1].Status != flows.InProgress
	return map[string]any{"profile_id": h.p.Profile.ID.String(), "as_of": record.Time(began), "begins": begins, "outcome": e.Status.String(), "ends_at": record.Time(e.EndedMs), "steps": steps}, nil
}
