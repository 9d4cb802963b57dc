package resolver

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/outbox"
)

// FlowState is a flow as it stands.
type FlowState struct {
	Flow
	Def    *flows.Flow
	Counts FlowCounts
	// InProgress is how many are in the flow now.
	InProgress uint64
	// Pending is how many are still to be enrolled since the flow went live.
	Pending uint64
}

func (f *flowState) state() FlowState {
	s := FlowState{Flow: *f.Flow, Def: f.def, Counts: f.counts, InProgress: f.active.GetCardinality(), Pending: f.pending.Bits.GetCardinality()}
	s.Counts.Steps = slices.Clone(f.counts.Steps)
	for i := range s.Counts.Steps {
		s.Counts.Steps[i].Results = maps.Clone(s.Counts.Steps[i].Results)
	}
	return s
}

// Flows lists the flows, the oldest first.
func (v *View) Flows() []FlowState {
	list := v.a.flows.byAge()
	out := make([]FlowState, len(list))
	for i, f := range list {
		out[i] = f.state()
	}
	return out
}

// SavedFlows lists the flows as they are saved, without what is counted of them,
// the oldest first.
func (v *View) SavedFlows() []*Flow {
	list := v.a.flows.byAge()
	out := make([]*Flow, len(list))
	for i, f := range list {
		out[i] = f.Flow
	}
	return out
}

// Flow finds a flow.
func (v *View) Flow(id string) (FlowState, bool) {
	if f := v.a.flow(id); f != nil {
		return f.state(), true
	}
	return FlowState{}, false
}

// FlowFaults lists what keeps a flow from going live, beside credits.
func (v *View) FlowFaults(id string) flows.Faults {
	f := v.a.flow(id)
	if f == nil {
		return nil
	}
	return f.def.Validate(flowWorld{v.a})
}

// EnrolmentsOf are the enrolments of a profile in a flow, the newest last.
func (v *View) EnrolmentsOf(flow string, ordinal uint32) ([]flows.Enrolment, error) {
	f := v.a.flow(flow)
	if f == nil || !f.entered.Contains(ordinal) {
		return nil, nil
	}
	b, err := v.m.store.Entity(enrolmentKey(v.a.number, f.Number, ordinal))
	if err != nil {
		return nil, err
	}
	var r flows.Record
	if err := r.Decode(b); err != nil {
		return nil, err
	}
	return r.Ways, nil
}

// EnrolmentPage lists profiles that are or were in a flow, in order of ordinals,
// from one on, limit at most. Without ended, those that are in it now.
func (v *View) EnrolmentPage(flow string, ended bool, from uint32, limit int) []uint32 {
	f := v.a.flow(flow)
	switch {
	case f == nil:
		return nil
	case ended:
		return profile.Page(f.entered, from, limit)
	}
	return profile.Page(f.active, from, limit)
}

// FlowsOf lists the ids of the flows that a profile is or was in, the oldest flow
// first.
func (v *View) FlowsOf(ordinal uint32) []string {
	var in []*flowState
	for _, f := range v.a.flows.all {
		if f.entered.Contains(ordinal) {
			in = append(in, f)
		}
	}
	sortByAge(in)
	out := make([]string, len(in))
	for i, f := range in {
		out[i] = f.ID
	}
	return out
}

// flowDeleted is why what a flow left in the outbox is not carried out.
const flowDeleted = "the flow was deleted"

// flowPayload puts what a flow's step says into the payload of its item: items
// are queued without it, so that a body is not stored for each recipient. What
// is live cannot change; of a deleted flow nothing is left to say.
func (a *account) flowPayload(it *outbox.Item, payload []byte) ([]byte, error) {
	f := a.flow(it.Flow)
	if f == nil {
		return payload, nil
	}
	i := slices.IndexFunc(f.def.Steps, func(s flows.Step) bool { return s.ID == it.Step })
	if i < 0 {
		return payload, nil
	}
	switch s := &f.def.Steps[i]; {
	case it.Kind == outbox.KindEmail && s.Email != nil && s.Email.TemplateID == "":
		var x OutboxMail
		if err := json.Unmarshal(payload, &x); err != nil {
			return nil, err
		}
		x.HTML, x.Text = s.Email.Body, s.Email.Text
		return must.JSON(x), nil
	case it.Kind == outbox.KindCall && s.Webhook != nil:
		var x OutboxRequest
		if err := json.Unmarshal(payload, &x); err != nil {
			return nil, err
		}
		x.Body = s.Webhook.Body
		return must.JSON(x), nil
	}
	return payload, nil
}
