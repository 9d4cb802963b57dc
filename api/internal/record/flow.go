package record

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
)

// flowPageBytes bounds the definitions in a page of flows.
const flowPageBytes = 4 << 20

// Flow is a flow.
type Flow struct {
	ID   string `json:"_id"`
	Name string `json:"name"`
	// Status is draft, live or paused.
	Status  string          `json:"status"`
	Trigger json.RawMessage `json:"trigger"` // null when a draft has none
	Reentry string          `json:"reentry"`
	Steps   json.RawMessage `json:"steps"`
	// Publishing drafts go live when the conditions of their steps are built.
	Publishing bool `json:"publishing"`
	// PublishError says why a draft did not go live after all.
	PublishError *string `json:"publish_error"`
	// PausedFor is credits when the service paused the flow for want of them, null
	// when a user did.
	PausedFor   *string `json:"paused_for"`
	CreatedAt   string  `json:"created_at"`
	UpdatedAt   string  `json:"updated_at"`
	PublishedAt *string `json:"published_at"`
	PausedAt    *string `json:"paused_at"`
	ResumedAt   *string `json:"resumed_at"`
	CopyOf      *string `json:"copy_of"`
	// Version names the name, the trigger and the steps.
	Version string `json:"version"`
	// Counts are since the flow went live, StepCounts in the order of the steps.
	Counts     FlowCounts  `json:"counts"`
	StepCounts []StepCount `json:"step_counts"`
}

// FlowCounts say what became of those who entered a flow.
type FlowCounts struct {
	Entered    uint64 `json:"entered"`
	InProgress uint64 `json:"in_progress"`
	Completed  uint64 `json:"completed"`
	Exited     uint64 `json:"exited"`
	// Pending are still to be enrolled since the flow went live.
	Pending uint64 `json:"pending"`
	// LoopsCut are enrolments that did not begin because too many started each
	// other at one instant, or the service itself had caused too many.
	LoopsCut uint64 `json:"loops_cut"`
}

// StepCount says what became of those who came to a step.
type StepCount struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Arrived uint64 `json:"arrived"`
	At      uint64 `json:"at"` // are there now
	// Results are how often the step had each result.
	Results map[string]uint64 `json:"results"`
	// Channels count the messages of an omnichannel step, in its order.
	Channels []FlowChannelCount `json:"channels"`
}

// FlowChannelCount says what became of messages of an omnichannel step on one channel.
type FlowChannelCount struct {
	Channel string `json:"channel"`
	Queued  uint64 `json:"queued"`
	// Failed are messages that could not reach their person, after they were queued.
	Failed uint64 `json:"failed"`
	// Skipped is how many people were passed over, by the reason.
	Skipped map[string]uint64 `json:"skipped"`
}

// NewFlow is a flow of a state.
func NewFlow(f *automation.FlowState) Flow {
	part := func(name string) json.RawMessage {
		raw, _ := rawjson.Lookup(f.Definition, []string{name}) // canonical: all are there
		return json.RawMessage(raw)
	}
	return Flow{
		ID: f.ID, Name: f.Def.Name, Status: f.Status, Trigger: part("trigger"), Reentry: string(f.Def.Reentry), Steps: part("steps"),
		Publishing: f.Publishing, PublishError: TextOrNull(f.PublishError), PausedFor: TextOrNull(f.PausedFor),
		CreatedAt: Time(f.CreatedMs), UpdatedAt: Time(f.UpdatedMs), PublishedAt: TimeOrNull(f.PublishedMs),
		PausedAt: TimeOrNull(f.PausedMs), ResumedAt: TimeOrNull(f.ResumedMs), CopyOf: TextOrNull(f.CopyOf), Version: f.Version(),
		Counts: NewFlowCounts(f), StepCounts: StepCounts(f),
	}
}

// NewFlowCounts are the counts of a flow.
func NewFlowCounts(f *automation.FlowState) FlowCounts {
	return FlowCounts{f.Counts.Entered, f.InProgress, f.Counts.Completed, f.Counts.Exited, f.Pending, f.Counts.LoopsCut}
}

// Add adds the counts of another flow.
func (c *FlowCounts) Add(x *FlowCounts) {
	c.Entered += x.Entered
	c.InProgress += x.InProgress
	c.Completed += x.Completed
	c.Exited += x.Exited
	c.Pending += x.Pending
	c.LoopsCut += x.LoopsCut
}

// Sends reports whether the step sends messages.
func (c *StepCount) Sends() bool { return c.Medium() != "" }

// Medium is the channel of the messages that the step sends, [campaigns.MediumOmni] for
// several, "" if it sends none.
func (c *StepCount) Medium() string {
	switch c.Type {
	case flows.StepEmail:
		return "email"
	case flows.StepSMS:
		return "sms"
	case flows.StepWhatsApp:
		return "whatsapp"
	case flows.StepIM:
		return "im"
	case flows.StepPush:
		return "push"
	case flows.StepInApp:
		return "in_app"
	case flows.StepOmnichannel:
		return campaigns.MediumOmni
	}
	return ""
}

// StepCounts are the counts of a flow's steps, in their order.
func StepCounts(f *automation.FlowState) []StepCount {
	out := make([]StepCount, len(f.Counts.Steps))
	for i, c := range f.Counts.Steps {
		s := &f.Def.Steps[i]
		out[i] = StepCount{s.ID, s.Type, c.Arrived, c.At, byName(c.Results), []FlowChannelCount{}}
		if s.Type != flows.StepOmnichannel {
			continue
		}
		for k, m := range s.Messages {
			n := FlowChannelCount{Channel: m.Channel, Skipped: map[string]uint64{}}
			if k < len(c.Channels) {
				n.Queued, n.Failed, n.Skipped = c.Channels[k].Queued, c.Channels[k].Failed, byName(c.Channels[k].Skipped)
			}
			out[i].Channels = append(out[i].Channels, n)
		}
	}
	return out
}

func byName(results map[flows.Result]uint64) map[string]uint64 {
	out := make(map[string]uint64, len(results))
	for r, n := range results {
		out[r.String()] = n
	}
	return out
}

// MessageChannel is the channel that a message of an omnichannel step was queued on, nil for
// other steps and results. at is the place of the message.
func MessageChannel(s *flows.Step, r flows.Result, at int) *string {
	if s.Type != flows.StepOmnichannel || r != flows.Queued || at >= len(s.Messages) {
		return nil
	}
	return &s.Messages[at].Channel
}

// FlowPage is the part of an account's flows behind a place, the oldest first, and
// the cursor of what follows. It has fewer than limit when definitions are large.
func FlowPage(v *resolver.View, after *paging.Age, limit int) (out []Flow, next string) {
	of := func(f **automation.Flow) paging.Age { return paging.Age{CreatedMs: (*f).CreatedMs, ID: (*f).ID} }
	all := v.Flows().Saved()
	part, _ := paging.PageByAge(all, after, limit, of)
	n, bytes := 0, 0
	for n < len(part) {
		if bytes += len(part[n].Definition); n > 0 && bytes > flowPageBytes {
			break
		}
		n++
	}
	part, next = paging.PageByAge(all, after, n, of)
	out = make([]Flow, 0, len(part))
	for _, f := range part {
		if s, ok := v.Flows().Find(f.ID); ok {
			out = append(out, NewFlow(&s))
		}
	}
	return out, next
}
