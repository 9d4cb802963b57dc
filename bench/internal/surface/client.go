package surface

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
)

const maxAnswer = 32 << 20

// ErrNoAnswer means that the request may or may not have been taken.
var ErrNoAnswer = errors.New("no answer")

// Refusal is an answer that says no.
type Refusal struct {
	Status  int
	Message string
	// Unanswered is how many requests for the same had no answer before; each may
	// still be carried out.
	Unanswered int
}

func (r *Refusal) Error() string { return fmt.Sprintf("status %d: %s", r.Status, r.Message) }

// Client makes calls of every surface, again until there is an answer. It is safe
// for concurrent use.
type Client struct {
	site Site
	http *http.Client

	mu struct {
		sync.Mutex
		token string
		keys  []string
		next  int
		// requests and retried count calls, and those of them that had no answer.
		requests, retried int
	}
}

// NewClient makes a client of a site.
func NewClient(s Site) (*Client, error) {
	s = s.WithDefaults()
	if _, err := server.LoopbackURL(s.Next().BaseURL); err != nil {
		return nil, err
	}
	return &Client{
		site: s,
		http: &http.Client{
			Timeout:       s.Timeout,
			Transport:     &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 64},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// At is a client that is signed in as this one and asks one node alone. It needs
// no Close of its own.
func (c *Client) At(origin string) *Client {
	other := &Client{site: c.site, http: c.http}
	other.site.Origin = func() string { return origin }
	c.mu.Lock()
	defer c.mu.Unlock()
	other.mu.token, other.mu.keys = c.mu.token, c.mu.keys
	return other
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Counts are how many requests were made, and how many of them had no answer and
// were made again.
func (c *Client) Counts() (requests, retried int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.requests, c.mu.retried
}

// Authority says by what a call is let in.
type Authority uint8

// The surfaces.
const (
	ByApp     Authority = iota // events
	ByKey                      // Surface A
	BySession                  // the console
)

func (c *Client) authorise(r *http.Request, by Authority) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch by {
	case ByApp:
		r.Header.Set("X-App-Id", c.site.Credentials.AppID)
		r.Header.Set("X-App-Secret", c.site.Credentials.AppSecret)
	case ByKey:
		// A key may make so many calls a minute.
		c.mu.next++
		r.Header.Set("Authorization", "Bearer "+c.mu.keys[c.mu.next%len(c.mu.keys)])
	case BySession:
		if c.mu.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.mu.token)
		}
	}
}

// Once makes a call once. The error is ErrNoAnswer or a [Refusal], or says that
// the answer is not as it must be: it cannot be understood, or sends the client
// away and does not say when to come back.
func (c *Client) Once(ctx context.Context, by Authority, method, path string, body []byte) ([]byte, error) {
	data, _, err := c.once(ctx, by, method, path, body)
	return data, err
}

// once is Once that also returns the cursor of the next page of a list, if there is one.
func (c *Client) once(ctx context.Context, by Authority, method, path string, body []byte) (data []byte, next string, err error) {
	u, err := server.LoopbackURL(c.site.Next().BaseURL)
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+u.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.authorise(req, by)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%w: %w", ErrNoAnswer, err)
	case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "":
		return nil, "", fmt.Errorf("%s %s: status 503 without Retry-After: %.200s", method, path, text)
	case Uncertain(res.StatusCode):
		return nil, "", fmt.Errorf("%w: status %d: %.200s", ErrNoAnswer, res.StatusCode, text)
	case by == ByApp || strings.HasPrefix(path, "/metrics"):
		if res.StatusCode/100 != 2 {
			return nil, "", &Refusal{Status: res.StatusCode, Message: string(text)}
		}
		return text, "", nil
	}
	var e struct {
		Status  string          `json:"status"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
		Next    string          `json:"next"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, "", fmt.Errorf("%s %s: status %d, no JSON: %.200s", method, path, res.StatusCode, text)
	}
	if res.StatusCode/100 != 2 || e.Status != "success" {
		return nil, "", &Refusal{Status: res.StatusCode, Message: e.Message}
	}
	return e.Data, e.Next, nil
}

// Call makes a call until it is answered, unless giveUp is set and the first has
// no answer. data may be nil.
func (c *Client) Call(ctx context.Context, by Authority, method, path string, body, data any, giveUp bool) error {
	_, err := c.call(ctx, by, method, path, body, data, giveUp)
	return err
}

// call is Call that also returns the cursor of the next page of a list.
func (c *Client) call(ctx context.Context, by Authority, method, path string, body, data any, giveUp bool) (next string, err error) {
	var text []byte
	switch raw := body.(type) {
	case nil:
	case json.RawMessage:
		text = raw // may be large, and is not to be copied
	default:
		if text, err = json.Marshal(body); err != nil {
			return "", err
		}
	}
	for try := 1; ; try++ {
		if err := c.site.Gate.Wait(ctx); err != nil {
			return "", err
		}
		c.mu.Lock()
		c.mu.requests++
		c.mu.Unlock()
		answer, next, err := c.once(ctx, by, method, path, text)
		switch {
		case err == nil && data != nil:
			if err := json.Unmarshal(answer, data); err != nil {
				return "", fmt.Errorf("%s %s: data: %w: %.200s", method, path, err, answer)
			}
			return next, nil
		case err == nil:
			return next, nil
		case !errors.Is(err, ErrNoAnswer):
			var no *Refusal
			if errors.As(err, &no) {
				no.Unanswered = try - 1
			}
			return "", fmt.Errorf("%s %s: %w", method, path, err)
		case ctx.Err() != nil:
			// Why it was not answered so far says more than that time is up.
			return "", fmt.Errorf("%s %s: %w: %w", method, path, ctx.Err(), err)
		case giveUp || try >= c.site.Tries:
			return "", fmt.Errorf("%s %s: %w", method, path, err)
		}
		c.mu.Lock()
		c.mu.retried++
		c.mu.Unlock()
		time.Sleep(c.site.Pause)
	}
}

// consolePath begins the path of each call of the console.
const consolePath = "/console/api/v1"

// Console makes a call of the console, again until it is answered.
func (c *Client) Console(ctx context.Context, method, path string, body, data any) error {
	return c.Call(ctx, BySession, method, consolePath+path, body, data, false)
}

// apiKeys is how many keys share the calls of Surface A.
const apiKeys = 8

// Open signs in and makes the keys.
func (c *Client) Open(ctx context.Context) error {
	if err := c.signIn(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	c.mu.keys = []string{c.site.Credentials.APIKey}
	c.mu.Unlock()
	for range apiKeys - 1 {
		var key struct {
			Key string `json:"key"`
		}
		if err := c.Console(ctx, "POST", "/api-keys", map[string]string{"name": "load"}, &key); err != nil {
			return err
		}
		c.mu.Lock()
		c.mu.keys = append(c.mu.keys, key.Key)
		c.mu.Unlock()
	}
	return nil
}
