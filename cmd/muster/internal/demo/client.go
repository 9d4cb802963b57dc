package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/musterhq/muster/api"
)

// maxAnswer bounds an answer.
const maxAnswer = 16 << 20

// client makes calls of the public API.
type client struct {
	Options
	token string // of the session
}

// signIn opens the session that the other calls use.
func (c *client) signIn(ctx context.Context) error {
	var in struct{ Token string }
	err := c.call(ctx, "POST", "/session", map[string]any{"email": c.Credentials.ConsoleEmail, "password": c.Credentials.ConsolePassword}, &in)
	c.token = in.Token
	return err
}

// call makes a call of the console and reads the data of its answer into v, which may be
// nil.
func (c *client) call(ctx context.Context, method, path string, body, v any) error {
	var answer struct {
		Status, Message string
		Data            json.RawMessage
	}
	headers := map[string]string{}
	if c.token != "" {
		headers["Authorization"] = "Bearer " + c.token
	}
	status, err := c.do(ctx, method, api.Prefix+path, body, headers, &answer)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status/100 != 2 || answer.Status != "success" {
		return fmt.Errorf("%s %s: %d %s", method, path, status, answer.Message)
	}
	if v != nil {
		if err := json.Unmarshal(answer.Data, v); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	return nil
}

// made is a record with an id.
type made struct {
	ID string `json:"_id"`
}

// id makes a call and returns the id of what it made.
func (c *client) id(ctx context.Context, path string, body any) (string, error) {
	var x made
	err := c.call(ctx, "POST", path, body, &x)
	return x.ID, err
}

// event sends an event as it happens.
func (c *client) event(ctx context.Context, event any) error {
	var answer struct {
		Success bool
		Error   *string
	}
	status, err := c.do(ctx, "POST", "/api/v1/events", event, map[string]string{"X-App-Id": c.Credentials.AppID, "X-App-Secret": c.Credentials.AppSecret}, &answer)
	if err == nil && !answer.Success {
		reason := ""
		if answer.Error != nil {
			reason = *answer.Error
		}
		err = fmt.Errorf("%d %s", status, reason)
	}
	return err
}

func (c *client) do(ctx context.Context, method, path string, body any, headers map[string]string, v any) (status int, err error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Origin+path, in)
	if err != nil {
		return 0, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, value := range headers {
		req.Header.Set(k, value)
	}
	res, err := c.Client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return res.StatusCode, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return res.StatusCode, fmt.Errorf("status %d, no JSON: %.200s", res.StatusCode, b)
	}
	return res.StatusCode, nil
}

// fetch follows a link of a message, wherever its host is said to be, to this service; it
// goes nowhere from there. A form is posted where there is one.
func (c *client) fetch(ctx context.Context, link, form string) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	method := http.MethodGet
	if form != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Origin+u.RequestURI(), strings.NewReader(form))
	if err != nil {
		return err
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	// A program would not count as a reader.
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	client := *c.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	return err
}
