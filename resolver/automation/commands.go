package automation

import (
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of flows.
const (
	CommandCreate    = "flow.create"
	CommandUpdate    = "flow.update"
	CommandDelete    = "flow.delete"
	CommandDuplicate = "flow.duplicate"
	CommandPublish   = "flow.publish"
	CommandPause     = "flow.pause"
	CommandResume    = "flow.resume"
	CommandToggle    = "flow.toggle"
	CommandTrigger   = "flow.trigger"
)

// Save creates a draft, or changes the one with the ID.
type Save struct {
	ID         string          `json:"id,omitempty"`
	Definition json.RawMessage `json:"definition"`
	// IfVersion is the version that is replaced, see [Flow.Version]; "" for any.
	IfVersion string `json:"if_version,omitempty"`
}

// Commands are the commands of flows by name.
var Commands = map[string]feature.Command[*State]{
	CommandCreate:    feature.Do((*State).createFlow),
	CommandUpdate:    feature.Do((*State).updateFlow),
	CommandDelete:    feature.Do((*State).deleteFlow),
	CommandDuplicate: feature.Do((*State).duplicateFlow),
	CommandPublish:   feature.Do((*State).publishFlow),
	CommandPause:     feature.Do((*State).pauseFlow),
	CommandResume:    feature.Do((*State).resumeFlow),
	CommandToggle:    feature.Do((*State).toggleFlow),
	CommandTrigger:   feature.Do((*State).triggerFlow),
}

func (s *State) createFlow(tx *feature.Tx, c Save) *refuse.Refusal {
	return s.addFlow(tx, c.Definition, "")
}

// addFlow makes a draft.
func (s *State) addFlow(tx *feature.Tx, definition []byte, copyOf string) *refuse.Refusal {
	switch n := len(s.all); {
	case n >= maxFlows:
		return refuse.AtLimit("", "this account has %d flows, the most it can have; delete one first", maxFlows)
	case len(s.byNumber) >= maxFlowNumber:
		return refuse.AtLimit("", "this account has made %d flows, the most it can make", maxFlowNumber)
	}
	def, refusal := s.parseFlow(definition)
	if refusal != nil {
		return refusal
	}
	f, err := s.install(&Flow{
		ID: feature.NewID("flw_", tx.Record), Number: uint32(len(s.byNumber)), Status: Draft,
		Definition: def.JSON(), CreatedMs: s.run.nowMs, UpdatedMs: s.run.nowMs, CopyOf: copyOf,
	})
	if err != nil {
		return refuse.Invalid("definition", "%s", err)
	}
	s.save(f, f.Flow)
	tx.Reply = replyOf(f)
	return nil
}

func (s *State) parseFlow(definition []byte) (*flows.Flow, *refuse.Refusal) {
	def, err := flows.Parse(definition)
	if err != nil {
		return nil, refuse.Invalid("definition", "%s", err)
	}
	if s.port.Rules() < rulesIM && sendsIM(def) {
		return nil, refuse.Invalid("definition", "steps must not send on the channel im, nor on more than 5 channels, under these rules")
	}
	if def.AsksForCart() && s.port.Rules() < rulesOpenCart {
		return nil, refuse.Invalid("definition", "open_cart was unknown to the rules of this record")
	}
	if def.HasTemplateOptions() && s.port.Rules() < rulesTemplates {
		return nil, refuse.Invalid("definition", "named_parameters, header_type and buttons were unknown to the rules of this record")
	}
	if r := refuse.Name(def.Name); r != nil {
		return nil, r
	}
	return def, nil
}

// sendsIM reports whether a step sends by the account's own instant messenger, or has as many
// messages as only steps with that channel may have.
func sendsIM(def *flows.Flow) bool {
	const channelsBefore = 5 // all but im
	for i := range def.Steps {
		list := def.Steps[i].Messages
		if len(list) > channelsBefore || slices.ContainsFunc(list, func(m flows.Message) bool { return m.Channel == flows.StepIM }) {
			return true
		}
	}
	return false
}

func (s *State) updateFlow(tx *feature.Tx, c Save) *refuse.Refusal {
	f := s.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status != Draft:
		return refuse.Conflicts("id", "the flow has gone live, so its content is locked; duplicate it, change the copy and publish that")
	case f.Publishing:
		return refuse.Conflicts("id", "the flow is being published; change it when that has ended")
	}
	if r := feature.OtherVersion(c.IfVersion, f.Flow.Version); r != nil {
		return r
	}
	def, refusal := s.parseFlow(c.Definition)
	if refusal != nil {
		return refusal
	}
	saved := *f.Flow
	saved.Definition, saved.UpdatedMs, saved.PublishError = def.JSON(), s.run.nowMs, ""
	f.def = def
	f.counts.Steps = make([]StepCount, len(def.Steps))
	s.count(f)
	s.save(f, &saved)
	tx.Reply = replyOf(f)
	return nil
}

// deleteFlow removes a draft or a paused flow. What is stored of the
// profiles that were in it goes bit by bit.
func (s *State) deleteFlow(_ *feature.Tx, c ID) *refuse.Refusal {
	f := s.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == Live:
		return refuse.Conflicts("id", "the flow is live; pause it first")
	}
	s.dropConditions(f)
	s.port.DropSet(pendingSet(f.Number))
	f.pending = s.port.Set(pendingSet(f.Number))
	f.timers.Load(nil)
	f.dates.Load(nil)
	f.def = new(flows.Flow)
	s.run.store.PutEntity(state.EntityKey(s.account, state.EntityFlowCounts, f.ID), nil)
	s.save(f, &Flow{ID: f.ID, Number: f.Number, Deleted: true})
	return nil
}

func (s *State) duplicateFlow(tx *feature.Tx, c ID) *refuse.Refusal {
	f := s.flow(c.ID)
	if f == nil {
		return noFlow()
	}
	def := *f.def
	def.Name = copyName(def.Name)
	return s.addFlow(tx, def.JSON(), f.ID)
}

// copyName is the name of a copy.
func copyName(name string) string {
	const of = "Copy of "
	for len(name) > refuse.MaxNameBytes-len(of) {
		r := []rune(name)
		name = string(r[:len(r)-1])
	}
	return of + name
}
