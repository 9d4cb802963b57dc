package automation

import (
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
)

// enrolment is one enrolment of a profile in a flow.
type enrolment struct {
	ProfileID string `json:"profile_id"`
	// Number counts the profile's enrolments in the flow, from 1.
	Number uint32 `json:"number"`
	// Status is in_progress, completed or exited.
	Status string `json:"status"`
	// Step is the id of the step it stands at, Since when it came there and Due
	// when it continues by itself; null when it has ended. Due is also null while
	// something else is waited for.
	Step      *string `json:"step"`
	Since     *string `json:"since"`
	Due       *string `json:"due"`
	StartedAt string  `json:"started_at"`
	EndedAt   *string `json:"ended_at"`
	// Reason is why it exited.
	Reason *string `json:"reason"`
}

func newEnrolment(f *automation.FlowState, profile string, e *flows.Enrolment) enrolment {
	out := enrolment{
		ProfileID: profile, Number: e.Number, Status: e.Status.String(), StartedAt: record.Time(e.StartedMs),
		EndedAt: record.TimeOrNull(e.EndedMs), Reason: record.TextOrNull(e.Reason.String()),
	}
	if e.Status == flows.InProgress {
		out.Step, out.Since = &f.Def.Steps[e.Step].ID, record.TimeOrNull(e.SinceMs)
		if e.Timed() && !e.Heard() && e.DueMs != flows.Never {
			out.Due = record.TimeOrNull(e.DueMs)
		}
	}
	return out
}

// The places of a cursor: an enrolment, by the ordinal of its profile and its
// number.
const enrolmentCursorBytes = 4 + 4

func encodeEnrolmentCursor(ordinal, number uint32) string {
	b := binary.LittleEndian.AppendUint32(nil, ordinal)
	return paging.Encode(paging.Enrolments, binary.LittleEndian.AppendUint32(b, number))
}

// enrolmentsLookedAt bounds the profiles that a page of those at one step looks at.
const enrolmentsLookedAt = 2000

// listEnrolments answers GET /flows/{id}/enrolments: of each profile the newest
// last.
func (a *API) listEnrolments(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	place, err := c.Cursor(paging.Enrolments, enrolmentCursorBytes)
	if err != nil {
		return nil, err
	}
	var from, number uint32
	if place != nil {
		from, number = binary.LittleEndian.Uint32(place), binary.LittleEndian.Uint32(place[4:])
	}
	ended := true
	switch status := string(c.QueryArgs().Peek("status")); status {
	case "", "all":
	case flows.InProgress.String():
		ended = false
	default:
		return nil, handler.BadField("status", "status must be all or in_progress")
	}
	at := string(c.QueryArgs().Peek("step"))
	out := []enrolment{}
	next := ""
	err = c.Read(func(v *resolver.View) error {
		f, ok := v.Flows().Find(c.PathID())
		if !ok {
			return errNoFlow
		}
		if at != "" && !slices.ContainsFunc(f.Def.Steps, func(s flows.Step) bool { return s.ID == at }) {
			return handler.BadField("step", "step: the flow has no step with this id")
		}
		// Each has at least one, so that one more profile than enrolments reports whether
		// there is a next page.
		looked := limit + 1
		if at != "" {
			// A profile that is at a step now is in the flow now.
			ended, looked = false, max(looked, enrolmentsLookedAt+1)
		}
		for i, o := range v.Flows().ProfilesIn(f.ID, ended, from, looked) {
			if at != "" && i == looked-1 {
				next = encodeEnrolmentCursor(o, 0)
				return nil
			}
			enrolments, err := v.Flows().EnrolmentsOf(f.ID, o)
			if err != nil {
				return err
			}
			id := v.Profiles().ID(o).String()
			for i := range enrolments {
				e := &enrolments[i]
				switch {
				case o == from && e.Number < number, !ended && e.Status != flows.InProgress, at != "" && f.Def.Steps[e.Step].ID != at:
				case len(out) == limit:
					next = encodeEnrolmentCursor(o, e.Number)
					return nil
				default:
					out = append(out, newEnrolment(&f, id, e))
				}
			}
		}
		return nil
	})
	return map[string]any{"enrolments": out, "next": handler.CursorOrNull(next)}, err
}

// stepVisit is a step that the enrolment came to.
type stepVisit struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	At   string `json:"at"`
	// Result is what became of it, pending while it lasts.
	Result string `json:"result"`
	// Branch is the index of the branch that a split chose.
	Branch *int `json:"branch"`
	// Channel is the one that an omnichannel step's message was queued on first.
	Channel *string `json:"channel"`
	// Reason is why it failed.
	Reason *string `json:"reason"`
}

// enrolmentPath is an enrolment with all its steps.
type enrolmentPath struct {
	enrolment
	Path []stepVisit `json:"path"`
}

// getEnrolments answers GET /flows/{id}/enrolments/{profile}: a profile's enrolments
// in a flow, the newest last.
func (a *API) getEnrolments(c *handler.Call) (any, error) {
	out := []enrolmentPath{}
	err := c.Read(func(v *resolver.View) error {
		f, ok := v.Flows().Find(c.PathID())
		if !ok {
			return errNoFlow
		}
		o, ok := v.Profiles().ResolveText(c.Param("profile"))
		if !ok {
			return handler.ErrNoProfile
		}
		enrolments, err := v.Flows().EnrolmentsOf(f.ID, o)
		if err != nil {
			return err
		}
		if len(enrolments) == 0 {
			return handler.NotFound("the profile was never in this flow")
		}
		for i := range enrolments {
			out = append(out, enrolmentPath{newEnrolment(&f, v.Profiles().ID(o).String(), &enrolments[i]), visits(&f, enrolments[i].Path)})
		}
		return nil
	})
	return map[string]any{"enrolments": out}, err
}

func visits(f *automation.FlowState, of []flows.Visit) []stepVisit {
	out := make([]stepVisit, len(of))
	for i := range of {
		x, s := &of[i], &f.Def.Steps[of[i].Step]
		out[i] = stepVisit{ID: s.ID, Type: s.Type, At: record.Time(x.AtMs), Result: x.Result.String(), Channel: record.MessageChannel(s, x.Result, x.Branch)}
		if x.Result == flows.Branched {
			out[i].Branch = &x.Branch
		}
		if x.Result == flows.Failed {
			out[i].Reason = record.TextOrNull(x.Reason)
		}
	}
	return out
}
