package surface

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"
)

// Stamp is an instant in Unix ms, which the server writes in RFC 3339.
type Stamp int64

// UnmarshalJSON reads an instant in RFC 3339.
func (s *Stamp) UnmarshalJSON(b []byte) error {
	var t time.Time
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	*s = Stamp(t.UnixMilli())
	return nil
}

// Flow is a flow as far as a bench looks at it.
type Flow struct {
	ID          string `json:"_id"`
	Status      string `json:"status"` // draft, live or paused
	PublishedAt *Stamp `json:"published_at"`
	PausedAt    *Stamp `json:"paused_at"`
	ResumedAt   *Stamp `json:"resumed_at"`
	Counts      struct {
		Entered    uint64 `json:"entered"`
		InProgress uint64 `json:"in_progress"`
		Completed  uint64 `json:"completed"`
		Exited     uint64 `json:"exited"`
		Pending    uint64 `json:"pending"`
		LoopsCut   uint64 `json:"loops_cut"`
	}
	StepCounts []struct {
		ID      string
		Arrived int
		At      int
		Results map[string]int
	} `json:"step_counts"`
}

// Enrolment is one enrolment of a profile in a flow. A list of all enrolments of a
// flow has no paths.
type Enrolment struct {
	ProfileID string `json:"profile_id"`
	Number    int
	Status    string
	Step      *string
	StartedAt Stamp  `json:"started_at"`
	EndedAt   *Stamp `json:"ended_at"`
	Reason    *string
	Path      []Visit
}

// Visit is a step that an enrolment came to.
type Visit struct {
	ID     string
	At     Stamp
	Result string
	Branch *int
}

// CreateFlow saves a draft and returns its id.
func (c *Client) CreateFlow(ctx context.Context, definition string) (string, error) {
	return c.create(ctx, "/flows", json.RawMessage(definition))
}

// PublishFlow takes a draft live. While its conditions are being built the
// answer is a flow that is still publishing.
func (c *Client) PublishFlow(ctx context.Context, id string) (Flow, error) {
	return c.flow(ctx, "POST", id+"/publish")
}

// PauseFlow pauses a live flow.
func (c *Client) PauseFlow(ctx context.Context, id string) (Flow, error) {
	return c.flow(ctx, "POST", id+"/pause")
}

// ResumeFlow resumes a paused flow.
func (c *Client) ResumeFlow(ctx context.Context, id string) (Flow, error) {
	return c.flow(ctx, "POST", id+"/resume")
}

// Flow returns a flow.
func (c *Client) Flow(ctx context.Context, id string) (Flow, error) { return c.flow(ctx, "GET", id) }

func (c *Client) flow(ctx context.Context, method, path string) (f Flow, err error) {
	err = c.Console(ctx, method, "/flows/"+path, nil, &f)
	return f, err
}

// Flows lists all flows.
func (c *Client) Flows(ctx context.Context) ([]Flow, error) {
	var all []Flow
	for cursor := ""; ; {
		var part []Flow
		next, err := c.call(ctx, BySession, "GET", consolePath+"/flows?limit=100&cursor="+url.QueryEscape(cursor), nil, &part, false)
		if err != nil {
			return nil, err
		}
		if all = append(all, part...); next == "" {
			return all, nil
		}
		cursor = next
	}
}

// Enrolments are the enrolments of a profile in a flow, the newest last; none
// when it was never in it.
func (c *Client) Enrolments(ctx context.Context, flow, profile string) ([]Enrolment, error) {
	var data struct {
		Enrolments []Enrolment `json:"enrolments"`
	}
	err := c.Console(ctx, "GET", "/flows/"+flow+"/enrolments/"+profile, nil, &data)
	if notFound(err) {
		return nil, nil
	}
	return data.Enrolments, err
}

// SendToAll lets the company send to people who have not subscribed: those whom events
// made.
func (c *Client) SendToAll(ctx context.Context) error {
	var settings map[string]any
	if err := c.Console(ctx, "GET", "/settings", nil, &settings); err != nil {
		return err
	}
	settings["require_opt_in"] = false
	return c.Console(ctx, "PUT", "/settings", settings, nil)
}

// SetUpEmail gives the first company a sender domain, vouched for, and credits, and lets it
// send to all.
func (c *Client) SetUpEmail(ctx context.Context, domain string, credits int64) error {
	if err := c.Console(ctx, "POST", "/sender-domains", map[string]string{"domain": domain}, nil); err != nil {
		return err
	}
	if err := c.Console(ctx, "POST", "/sender-domains/"+domain+"/verify", map[string]bool{"force": true}, nil); err != nil {
		return err
	}
	if err := c.SendToAll(ctx); err != nil {
		return err
	}
	var companies []struct {
		ID string `json:"_id"`
	}
	if err := c.Console(ctx, "GET", "/companies", nil, &companies); err != nil {
		return err
	}
	if len(companies) == 0 {
		return errors.New("GET /companies: there is none")
	}
	return c.Console(ctx, "POST", "/companies/"+companies[0].ID+"/credits", map[string]int64{"amount": credits}, nil)
}
