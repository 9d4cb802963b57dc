package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
)

const (
	apiPath = "/console/api/v1"
	// maxAnswer bounds an answer's body.
	maxAnswer = 32 << 20
	// timeout bounds a call: the first question after a load waits until
	// history has stored it.
	timeout = 5 * time.Minute
)

// Client is signed in to the console.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// SignIn opens a session with the credentials.
func SignIn(ctx context.Context, c server.Credentials) (*Client, error) {
	u, err := server.LoopbackURL(c.ConsoleURL)
	if err != nil {
		return nil, fmt.Errorf("console_url: %w", err)
	}
	client := &Client{
		base: "http://" + u.Host + apiPath,
		http: &http.Client{
			Timeout:   timeout,
			Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 32},
			// A redirect could lead to another machine.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	var data struct {
		Token string `json:"token"`
	}
	body := map[string]string{"email": c.ConsoleEmail, "password": c.ConsolePassword}
	if err := client.call(ctx, http.MethodPost, "/session", body, &data); err != nil {
		return nil, err
	}
	if data.Token == "" {
		return nil, fmt.Errorf("POST /session answered no token")
	}
	client.token = data.Token
	return client, nil
}

// SignOut ends the session, of which a user may have so many, and drops idle
// connections. When the server does not answer the session stays.
func (c *Client) SignOut(ctx context.Context) {
	var ignored json.RawMessage
	_ = c.call(ctx, http.MethodDelete, "/session", nil, &ignored)
	c.Close()
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Preview returns how many profiles a definition (a JSON text) holds now.
func (c *Client) Preview(ctx context.Context, definition string) (uint64, error) {
	var data struct {
		Count *uint64 `json:"count"`
	}
	body := map[string]any{"definition": json.RawMessage(definition)}
	if err := c.call(ctx, http.MethodPost, "/segments/preview", body, &data); err != nil {
		return 0, err
	}
	if data.Count == nil {
		return 0, fmt.Errorf("POST /segments/preview answered no count")
	}
	return *data.Count, nil
}

// CreateSegment saves a segment and returns its id.
func (c *Client) CreateSegment(ctx context.Context, name, definition string) (string, error) {
	body := map[string]any{"name": name, "definition": json.RawMessage(definition)}
	var saved struct {
		ID string `json:"_id"`
	}
	err := c.call(ctx, http.MethodPost, "/segments", body, &saved)
	return saved.ID, err
}

// Segment returns whether a segment is live, and how many profiles it holds now.
func (c *Client) Segment(ctx context.Context, id string) (live bool, count uint64, err error) {
	var data struct {
		Status string  `json:"status"`
		Count  *uint64 `json:"count"`
	}
	if err := c.call(ctx, http.MethodGet, "/segments/"+id, nil, &data); err != nil {
		return false, 0, err
	}
	if data.Count == nil {
		return false, 0, fmt.Errorf("GET /segments/%s answered no count", id)
	}
	return data.Status == "live", *data.Count, nil
}

// ProfileID returns the id of the profile that has the external id.
func (c *Client) ProfileID(ctx context.Context, externalID string) (string, error) {
	var data struct {
		ProfileID string `json:"profile_id"`
	}
	err := c.call(ctx, http.MethodGet, "/profiles?external_id="+url.QueryEscape(externalID), nil, &data)
	return data.ProfileID, err
}

// Get reads something, by its path and query.
func (c *Client) Get(ctx context.Context, path string, data any) error {
	return c.call(ctx, http.MethodGet, path, nil, data)
}

// call makes one call and decodes the data of its answer.
func (c *Client) call(ctx context.Context, method, path string, body, data any) error {
	name := method + " " + strings.SplitN(path, "?", 2)[0]
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	envelope := struct {
		Status  string          `json:"status"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
		Next    string          `json:"next"`
	}{}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return fmt.Errorf("%s: status %d, no JSON: %.300s", name, resp.StatusCode, text)
	}
	if resp.StatusCode/100 != 2 || envelope.Status != "success" {
		return &StatusError{Call: name, Status: resp.StatusCode, Message: envelope.Status + ": " + envelope.Message}
	}
	if p, ok := data.(*page); ok {
		p.next, data = envelope.Next, p.items
	}
	if err := json.Unmarshal(envelope.Data, data); err != nil {
		return fmt.Errorf("%s: data: %w", name, err)
	}
	return nil
}

// page is where a list and its cursor are put; there is no next after the last.
type page struct {
	items any
	next  string
}

// StatusError is an answer that is no success.
type StatusError struct {
	Call    string // method and path
	Status  int    // of HTTP
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: status %d, %s", e.Call, e.Status, e.Message)
}
