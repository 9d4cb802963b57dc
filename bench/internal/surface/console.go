package surface

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/segment/segmenttest"
)

// callTimeout bounds a call of a client from [SignIn]: the first question after a
// load waits until history has stored it.
const callTimeout = 5 * time.Minute

// SignIn returns a client that is signed in to the console and makes each call once.
func SignIn(ctx context.Context, credentials server.Credentials) (*Client, error) {
	c, err := NewClient(Site{Credentials: credentials, Timeout: callTimeout, Tries: 1})
	if err != nil {
		return nil, err
	}
	if err := c.signIn(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// signIn opens a session.
func (c *Client) signIn(ctx context.Context) error {
	var session struct {
		Token string `json:"token"`
	}
	body := map[string]string{"email": c.site.Credentials.ConsoleEmail, "password": c.site.Credentials.ConsolePassword}
	if err := c.Console(ctx, "POST", "/session", body, &session); err != nil {
		return err
	}
	if session.Token == "" {
		return errors.New("POST /session answered no token")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.token = session.Token
	return nil
}

// SignOut ends the session, because a user may have only so many, and drops idle
// connections. When the server does not answer the session stays.
func (c *Client) SignOut(ctx context.Context) {
	_ = c.Console(ctx, "DELETE", "/session", nil, nil)
	c.Close()
}

// create posts something and returns its id.
func (c *Client) create(ctx context.Context, path string, body any) (string, error) {
	var made struct {
		ID string `json:"_id"`
	}
	err := c.Console(ctx, "POST", path, body, &made)
	return made.ID, err
}

// Preview returns how many profiles a definition (a JSON text) holds now.
func (c *Client) Preview(ctx context.Context, definition string) (uint64, error) {
	var data struct {
		Count *uint64 `json:"count"`
	}
	body := map[string]any{"definition": json.RawMessage(definition)}
	if err := c.Console(ctx, "POST", "/segments/preview", body, &data); err != nil {
		return 0, err
	}
	if data.Count == nil {
		return 0, errors.New("POST /segments/preview answered no count")
	}
	return *data.Count, nil
}

// CreateSegment saves a segment and returns its id.
func (c *Client) CreateSegment(ctx context.Context, name, definition string) (string, error) {
	return c.create(ctx, "/segments", map[string]any{"name": name, "definition": json.RawMessage(definition)})
}

// Segment returns whether a segment is live, and how many profiles it holds now.
func (c *Client) Segment(ctx context.Context, id string) (live bool, count uint64, err error) {
	var data struct {
		Status string  `json:"status"`
		Count  *uint64 `json:"count"`
	}
	if err := c.Console(ctx, "GET", "/segments/"+id, nil, &data); err != nil {
		return false, 0, err
	}
	if data.Count == nil {
		return false, 0, fmt.Errorf("GET /segments/%s answered no count", id)
	}
	return data.Status == "live", *data.Count, nil
}

// livePoll is the pause between two looks at what is being built.
const livePoll = 20 * time.Millisecond

// CreateLiveSegment saves a segment, waits until it is live and returns its id.
func (c *Client) CreateLiveSegment(ctx context.Context, name, definition string) (string, error) {
	id, err := c.CreateSegment(ctx, name, definition)
	if err != nil {
		return "", err
	}
	err = pause.Until(ctx, livePoll, func() (live bool, err error) {
		live, _, err = c.Segment(ctx, id)
		return live, err
	})
	if err != nil {
		return "", fmt.Errorf("segment %q is not live: %w", name, err)
	}
	return id, nil
}

// CreateUsualSegments saves the first n of [segmenttest.LiveSegments], which the server
// then keeps while events come in, waits until they are live and returns their ids.
func (c *Client) CreateUsualSegments(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		var err error
		if ids[i], err = c.CreateLiveSegment(ctx, fmt.Sprintf("live %d", i+1), segmenttest.LiveSegments[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// unknown is a condition that no segment has, so that history must answer it.
const unknown = `{"kind":"activity","event":"purchased","count":{"op":">=","value":1000000007}}`

// AwaitHistory waits until history has stored what came so far.
func (c *Client) AwaitHistory(ctx context.Context) error {
	_, err := c.Preview(ctx, unknown)
	return err
}

// ProfileID returns the id of the profile that has the external id.
func (c *Client) ProfileID(ctx context.Context, externalID string) (string, error) {
	var data struct {
		ProfileID string `json:"profile_id"`
	}
	err := c.Console(ctx, "GET", "/profiles?external_id="+url.QueryEscape(externalID), nil, &data)
	return data.ProfileID, err
}

// notFound reports whether a call was refused because there is no such thing.
func notFound(err error) bool {
	var no *Refusal
	return errors.As(err, &no) && no.Status == http.StatusNotFound
}

// CreateServerSource makes a source of the tracking API for a server and returns its
// write key.
func (c *Client) CreateServerSource(ctx context.Context, name string) (writeKey string, err error) {
	var made struct {
		WriteKey string `json:"write_key"`
	}
	err = c.Console(ctx, "POST", "/sources", map[string]string{"name": name, "kind": "server"}, &made)
	return made.WriteKey, err
}

// maxCompanies bounds how many companies CreateCompany makes.
const maxCompanies = 1000

// CreateCompany makes companies until keep takes one, and returns its credentials
// with the addresses of the client's own. Each name and e-mail address of a company
// begins with the prefix. Only a user of the first company may.
func (c *Client) CreateCompany(ctx context.Context, prefix string, credits int, keep func(server.Credentials) (bool, error)) error {
	for try := range maxCompanies {
		var made struct {
			ID string `json:"_id"`
			server.Credentials
		}
		body := map[string]any{"name": prefix, "email": fmt.Sprintf("%s-%d@bench.example", prefix, try)}
		if credits > 0 {
			body["email_credits"] = credits
		}
		if err := c.Console(ctx, "POST", "/companies", body, &made); err != nil {
			return err
		}
		made.BaseURL, made.ConsoleURL = c.site.Credentials.BaseURL, c.site.Credentials.ConsoleURL
		done, err := keep(made.Credentials)
		if err != nil {
			return err
		}
		if done {
			return c.Console(ctx, "PATCH", "/companies/"+made.ID, map[string]bool{"api_access": true}, nil)
		}
	}
	return fmt.Errorf("none of %d companies has an account in a partition that lacks one", maxCompanies)
}
