package flowcrash

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

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/server"
)

const (
	callTimeout = 30 * time.Second
	// retryPause is how long to wait after a request without an answer.
	retryPause = 5 * time.Millisecond
	// maxTries bounds the attempts at one request over all restarts.
	maxTries  = 20_000
	maxAnswer = 32 << 20
)

// errNoAnswer means that the request may or may not have been taken.
var errNoAnswer = errors.New("no answer")

// refusal is an answer that says no.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.message) }

// client makes calls of every surface, again until there is an answer. It is safe
// for concurrent use.
type client struct {
	credentials server.Credentials
	origin      string
	http        *http.Client
	gate        *gate.Gate

	mu struct {
		sync.Mutex
		token string
		keys  []string
		next  int
		// requests and retried count calls, and those of them that had no answer.
		requests, retried int
	}
}

func newClient(c server.Credentials, g *gate.Gate) (*client, error) {
	u, err := server.LoopbackURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	return &client{
		credentials: c, origin: "http://" + u.Host, gate: g,
		http: &http.Client{
			Timeout:       callTimeout,
			Transport:     &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 64},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// authority says by what a call is let in.
type authority uint8

const (
	byApp     authority = iota // events
	byKey                      // Surface A
	bySession                  // the console
)

func (c *client) authorise(r *http.Request, by authority) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch by {
	case byApp:
		r.Header.Set("X-App-Id", c.credentials.AppID)
		r.Header.Set("X-App-Secret", c.credentials.AppSecret)
	case byKey:
		// A key may make so many calls a minute.
		c.mu.next++
		r.Header.Set("Authorization", "Bearer "+c.mu.keys[c.mu.next%len(c.mu.keys)])
	case bySession:
		if c.mu.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.mu.token)
		}
	}
}

// once makes a call once. The error is errNoAnswer or a refusal, or says that the
// answer cannot be understood.
func (c *client) once(ctx context.Context, by authority, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.origin+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.authorise(req, by)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	case res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: status %d: %.200s", errNoAnswer, res.StatusCode, text)
	case by == byApp || strings.HasPrefix(path, "/metrics"):
		if res.StatusCode/100 != 2 {
			return nil, &refusal{res.StatusCode, string(text)}
		}
		return text, nil
	}
	var e struct {
		Status  string          `json:"status"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("%s %s: status %d, no JSON: %.200s", method, path, res.StatusCode, text)
	}
	if res.StatusCode/100 != 2 || e.Status != "success" {
		return nil, &refusal{res.StatusCode, e.Message}
	}
	return e.Data, nil
}

// call makes a call until it is answered, unless giveUp is set and the first has
// no answer. data may be nil.
func (c *client) call(ctx context.Context, by authority, method, path string, body, data any, giveUp bool) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		if err := c.gate.Wait(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		c.mu.requests++
		c.mu.Unlock()
		answer, err := c.once(ctx, by, method, path, text)
		switch {
		case err == nil && data != nil:
			if err := json.Unmarshal(answer, data); err != nil {
				return fmt.Errorf("%s %s: data: %w: %.200s", method, path, err, answer)
			}
			return nil
		case err == nil:
			return nil
		case !errors.Is(err, errNoAnswer):
			return fmt.Errorf("%s %s: %w", method, path, err)
		case ctx.Err() != nil:
			return ctx.Err()
		case giveUp || try >= maxTries:
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		c.mu.Lock()
		c.mu.retried++
		c.mu.Unlock()
		time.Sleep(retryPause)
	}
}

// console makes a call of the console, again until it is answered.
func (c *client) console(ctx context.Context, method, path string, body, data any) error {
	return c.call(ctx, bySession, method, "/console/api/v1"+path, body, data, false)
}

// apiKeys is how many keys share the calls of Surface A.
const apiKeys = 8

// open signs in and makes the keys.
func (c *client) open(ctx context.Context) error {
	var session struct {
		Token string `json:"token"`
	}
	body := map[string]string{"email": c.credentials.ConsoleEmail, "password": c.credentials.ConsolePassword}
	if err := c.console(ctx, "POST", "/session", body, &session); err != nil {
		return err
	}
	c.mu.Lock()
	c.mu.token = session.Token
	c.mu.keys = []string{c.credentials.APIKey}
	c.mu.Unlock()
	for range apiKeys - 1 {
		var key struct {
			Key string `json:"key"`
		}
		if err := c.console(ctx, "POST", "/api-keys", map[string]string{"name": "load"}, &key); err != nil {
			return err
		}
		c.mu.Lock()
		c.mu.keys = append(c.mu.keys, key.Key)
		c.mu.Unlock()
	}
	return nil
}
