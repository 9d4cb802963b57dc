package automation

import (
	"encoding/json"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// maxKeyBytes bounds the idempotency key of a call.
const maxKeyBytes = 256

// Trigger enrols a contact in a flow whose trigger is the API.
type Trigger struct {
	ID         string `json:"id"`
	Email      string `json:"email,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	Phone      string `json:"phone,omitempty"`
	// Data is an object, behind the merge tags event.….
	Data json.RawMessage `json:"data,omitempty"`
	// Key makes a repeat harmless: it does not enrol again.
	Key string `json:"key,omitempty"`
}

// Triggered is the answer to a [Trigger].
type Triggered struct {
	Profile string `json:"profile_id"`
	// Enrolled is false for a repeat of a key, which has enrolled before.
	Enrolled bool `json:"enrolled"`
}

// triggerFlow enrols a contact by a call.
func (s *State) triggerFlow(tx *feature.Tx, c Trigger) *refuse.Refusal {
	f := s.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.def.Trigger.Type != flows.TriggerAPI:
		return refuse.Conflicts("id", "the flow is not triggered by calls: its trigger is %s", f.def.Trigger.Type)
	}
	if r := c.CheckLengths(); r != nil {
		return r
	}
	o, refusal := s.port.Named(c.Email, c.ExternalID, c.Phone)
	if refusal != nil {
		return refusal
	}
	if c.Key != "" {
		if used, ok := s.port.KeyUsed(c.ID, c.Key); ok {
			if s.port.Root(used) != o {
				return refuse.Conflicts("idempotency_key", "idempotency_key was used for another contact; use a new one for each")
			}
			tx.Reply = Triggered{s.port.ProfileID(o).String(), false}
			return nil
		}
	}
	switch {
	case f.Status == Draft:
		return refuse.Conflicts("id", "the flow is a draft; publish it first")
	case f.Status == Paused:
		return refuse.Conflicts("id", "the flow is paused; resume it first")
	case f.active.Contains(o):
		return refuse.Conflicts("", "the contact is in this flow already")
	case f.entered.Contains(o) && f.def.Reentry != flows.AfterExit:
		return refuse.Conflicts("", "the contact was in this flow before, and its reentry is %q", f.def.Reentry)
	}
	if c.Key != "" {
		s.port.UseKey(c.ID, c.Key, o)
	}
	s.trigger(f, o, s.run.nowMs, c.Data)
	s.run.triggered[len(s.run.triggered)-1].call = true
	tx.Reply = Triggered{s.port.ProfileID(o).String(), true}
	return nil
}

// CheckLengths refuses what is too long.
func (c *Trigger) CheckLengths() *refuse.Refusal {
	switch {
	case len(c.Key) > maxKeyBytes:
		return refuse.Invalid("idempotency_key", "idempotency_key must have at most %d bytes", maxKeyBytes)
	case len(c.Data) > maxEventBytes:
		return refuse.Invalid("data", "data must have at most %d bytes", maxEventBytes)
	}
	return nil
}

// Answer gives a flow the outcome of the call of a step, by its number in the outbox. In
// a flow that is paused that is noted, and the enrolment continues with it at resume.
func (s *State) Answer(flow string, ordinal uint32, seq uint64, delivered bool, reason string) {
	f, o := s.flow(flow), s.port.Root(ordinal)
	if f == nil || s.port.Erased(o) || !f.active.Contains(o) {
		return
	}
	d := s.port.Load(o)
	s.loadEnrolments(f, o)
	e := s.run.enrolments.Current()
	s.run.running = host{s: s, d: d, f: f, o: o, e: e}
	if f.def.Answer(e, seq, delivered, reason, s.run.nowMs) {
		s.runEnrolment(f, o, e, s.run.nowMs)
	}
	s.run.running = host{}
}
