package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Flow is a flow as far as a bench looks at it.
type Flow struct {
	ID         string `json:"_id"`
	Status     string `json:"status"` // draft, live or paused
	Publishing bool   `json:"publishing"`
	Counts     struct {
		Entered    uint64 `json:"entered"`
		InProgress uint64 `json:"in_progress"`
		Completed  uint64 `json:"completed"`
		Exited     uint64 `json:"exited"`
		Pending    uint64 `json:"pending"`
	} `json:"counts"`
}

// Enrolment is a way of a profile through a flow.
type Enrolment struct {
	Number    uint32    `json:"number"`
	Status    string    `json:"status"`
	StartedAt time.Time `json:"started_at"`
	Path      []struct {
		ID string    `json:"id"`
		At time.Time `json:"at"`
	} `json:"path"`
}

// CreateFlow saves a draft and returns its id.
func (c *Client) CreateFlow(ctx context.Context, definition string) (string, error) {
	var f Flow
	err := c.call(ctx, http.MethodPost, "/flows", json.RawMessage(definition), &f)
	return f.ID, err
}

// PublishFlow takes a draft live. While its conditions are being built the
// answer is a flow that is still publishing.
func (c *Client) PublishFlow(ctx context.Context, id string) (f Flow, err error) {
	err = c.call(ctx, http.MethodPost, "/flows/"+id+"/publish", nil, &f)
	return f, err
}

// PauseFlow pauses a live flow.
func (c *Client) PauseFlow(ctx context.Context, id string) error {
	var f Flow
	return c.call(ctx, http.MethodPost, "/flows/"+id+"/pause", nil, &f)
}

// Flow returns a flow.
func (c *Client) Flow(ctx context.Context, id string) (f Flow, err error) {
	err = c.call(ctx, http.MethodGet, "/flows/"+id, nil, &f)
	return f, err
}

// Flows lists all flows.
func (c *Client) Flows(ctx context.Context) ([]Flow, error) {
	var all []Flow
	for cursor := ""; ; {
		var part []Flow
		p := page{items: &part}
		if err := c.call(ctx, http.MethodGet, "/flows?limit=100&cursor="+url.QueryEscape(cursor), nil, &p); err != nil {
			return nil, err
		}
		if all = append(all, part...); p.next == "" {
			return all, nil
		}
		cursor = p.next
	}
}

// Enrolments are the ways of a profile through a flow, the newest last; none
// when it was never in it.
func (c *Client) Enrolments(ctx context.Context, flow, profile string) ([]Enrolment, error) {
	var data struct {
		Enrolments []Enrolment `json:"enrolments"`
	}
	err := c.call(ctx, http.MethodGet, "/flows/"+flow+"/enrolments/"+profile, nil, &data)
	if e := (*StatusError)(nil); errors.As(err, &e) && e.Status == http.StatusNotFound {
		return nil, nil
	}
	return data.Enrolments, err
}

// SetUpEmail gives the first company a sender domain, vouched for, and credits, and lets it
// send to people who have not subscribed: those whom events made.
func (c *Client) SetUpEmail(ctx context.Context, domain string, credits int64) error {
	var ignored json.RawMessage
	if err := c.call(ctx, http.MethodPost, "/sender-domains", map[string]string{"domain": domain}, &ignored); err != nil {
		return err
	}
	if err := c.call(ctx, http.MethodPost, "/sender-domains/"+domain+"/verify", map[string]bool{"force": true}, &ignored); err != nil {
		return err
	}
	var settings map[string]any
	if err := c.call(ctx, http.MethodGet, "/settings", nil, &settings); err != nil {
		return err
	}
	settings["require_opt_in"] = false
	if err := c.call(ctx, http.MethodPut, "/settings", settings, &ignored); err != nil {
		return err
	}
	var companies []struct {
		ID string `json:"_id"`
	}
	if err := c.call(ctx, http.MethodGet, "/companies", nil, &companies); err != nil {
		return err
	}
	if len(companies) == 0 {
		return errors.New("GET /companies: there is none")
	}
	return c.call(ctx, http.MethodPost, "/companies/"+companies[0].ID+"/credits", map[string]int64{"amount": credits}, &ignored)
}
