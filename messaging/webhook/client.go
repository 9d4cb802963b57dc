package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of an answer.
const (
	maxAnswerBytes       = 64 << 10 // read, so that the connection can be used again
	keptAnswerBytes      = 1 << 10  // kept for the delivery's log
	maxAnswerHeaderBytes = 32 << 10
	dialTimeout          = 10 * time.Second
	idleTimeout          = 30 * time.Second
	maxIdleConns         = 256
	maxIdlePerHost       = 4
)

// Class says what became of an attempt.
type Class uint8

const (
	// Retry: the attempt failed and may succeed later. Ask Backoff when.
	Retry Class = iota
	// Delivered: the receiver answered 2xx.
	Delivered
	// Gone: the receiver answered 410; the endpoint is to be disabled.
	Gone
	// Refused: never sent and never to be sent as it is, such as a URL on a private address.
	Refused
)

func (c Class) String() string {
	switch c {
	case Delivered:
		return "delivered"
	case Gone:
		return "gone"
	case Refused:
		return "refused"
	}
	return "retry"
}

// Result is the outcome of one attempt.
type Result struct {
	Class Class
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// Reason says in one line why it was not delivered; empty when it was.
	Reason string
	// RetryAfter is what the receiver asked for with 429 or 503, at most
	// MaxRetryAfter; 0 when it did not.
	RetryAfter time.Duration
	// Answer is the beginning of the answer's body, at most 1 KiB of valid UTF-8.
	Answer string
	// Took is how long the attempt lasted.
	Took time.Duration
	// Aborted: the caller's context ended the attempt. It may have reached the
	// receiver, and should not count as an attempt.
	Aborted bool
}

// Options of a Client.
type Options struct {
	// Guard decides which targets are allowed.
	Guard Guard
	// Now is the clock of webhook-timestamp. Required.
	Now func() time.Time
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
	// RootCAs replace the system's, for receivers with certificates of an own authority.
	RootCAs *x509.CertPool
	// UserAgent is "Muster-Webhooks/1" when empty.
	UserAgent string
}

// Client sends deliveries. It is safe for concurrent use; its owner calls Close.
type Client struct {
	opts      Options
	transport *http.Transport
	http      *http.Client
}

// NewClient makes a Client.
func NewClient(opts Options) (*Client, error) {
	if opts.Now == nil {
		return nil, errors.New("webhook: Options.Now is missing; give the clock")
	}
	if opts.UserAgent == "" {
		opts.UserAgent = "Muster-Webhooks/1"
	}
	dialer := &net.Dialer{
		Timeout:  dialTimeout,
		Resolver: opts.Resolver,
		Control:  opts.Guard.control,
	}
	t := &http.Transport{
		Proxy:                  nil, // the environment's proxy would dial for us, past the guard
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.RootCAs},
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small answer must not become a large one
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxAnswerHeaderBytes,
	}
	return &Client{
		opts:      opts,
		transport: t,
		http: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close ends idle connections. Deliveries under way end as their contexts say.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Deliver makes one attempt and says what became of it. It never returns later
// than the request's timeout.
func (c *Client) Deliver(ctx context.Context, r Request) Result {
	began := c.opts.Now()
	res := c.deliver(ctx, &r, began)
	res.Took = max(0, c.opts.Now().Sub(began))
	return res
}

func (c *Client) deliver(ctx context.Context, r *Request, at time.Time) Result {
	u, err := r.check(c.opts.Guard)
	if err != nil {
		return Result{Class: Refused, Reason: err.Error()}
	}
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	timeout = min(timeout, MaxTimeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(limited, method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return Result{Class: Refused, Reason: refuse("url or method: %v", err).Error()}
	}
	if len(r.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set(HeaderID, r.ID)
	req.Header.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	if len(r.Secrets) > 0 {
		req.Header.Set(HeaderSignature, Sign(r.ID, at, r.Body, r.Secrets))
	}

	resp, err := c.http.Do(req)
	if err != nil {
		return failed(ctx, err, timeout)
	}
	defer resp.Body.Close()
	// The status has decided; a body that breaks off or dawdles changes nothing.
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	return c.answered(resp, answer)
}

// failed classifies an attempt without an answer.
func failed(ctx context.Context, err error, timeout time.Duration) Result {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return Result{Class: Refused, Reason: refused.text}
	case ctx.Err() != nil:
		return Result{Class: Retry, Aborted: true, Reason: "the attempt was broken off: " + ctx.Err().Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return Result{Class: Retry, Reason: fmt.Sprintf("no answer within %v", timeout)}
	}
	// The error around it repeats the URL, which may hold a token of the user's.
	var around *url.Error
	if errors.As(err, &around) {
		err = around.Err
	}
	return Result{Class: Retry, Reason: clip(err.Error(), 300)}
}

func (c *Client) answered(resp *http.Response, answer []byte) Result {
	res := Result{Status: resp.StatusCode, Answer: clip(string(answer), keptAnswerBytes)}
	switch s := resp.StatusCode; {
	case s >= 200 && s < 300:
		res.Class = Delivered
	case s == http.StatusGone:
		res.Class = Gone
		res.Reason = "the receiver answered 410: the endpoint is gone"
	case s >= 300 && s < 400:
		res.Reason = fmt.Sprintf("the receiver answered %d: redirects are not followed; register the final url", s)
	default:
		res.Reason = fmt.Sprintf("the receiver answered %d", s)
		if s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable {
			res.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), c.opts.Now())
		}
	}
	return res
}

// retryAfter reads seconds or an HTTP date; what it cannot read is 0.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 64 {
		return 0
	}
	var wait time.Duration
	if strings.Trim(text, "0123456789") == "" {
		sec, err := strconv.ParseInt(text, 10, 64)
		if err != nil || sec > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter
		}
		wait = time.Duration(sec) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), MaxRetryAfter)
}

// clip shortens text to at most n bytes of valid UTF-8 without control characters
// but line breaks and tabs.
func clip(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	text = strings.ToValidUTF8(text, "")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
