package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// MaxBody bounds how much of an answer is read, in bytes.
const MaxBody = 64 << 10

// Answer is the provider's answer.
type Answer struct {
	Status int
	Header http.Header
	// Body is at most MaxBody bytes; what came after is dropped.
	Body []byte
}

// ErrSent is in the chain of errors of requests that had left in full when the
// answer was lost: the provider may have acted on them.
var ErrSent = errors.New("the request was sent, its answer was lost")

// Do carries out req within timeout and reads the answer.
func Do(ctx context.Context, client *http.Client, req *http.Request, timeout time.Duration) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { sent.Store(i.Err == nil) },
		// A second connection is tried only after the first did not take the request.
		GotConn: func(httptrace.GotConnInfo) { sent.Store(false) },
	})
	resp, err := client.Do(req.WithContext(ctx))
	if err != nil {
		// The error around it repeats the URL, which for push is the address of a device.
		var around *url.Error
		if errors.As(err, &around) {
			err = around.Err
		}
		if sent.Load() {
			return nil, fmt.Errorf("%w: %w", ErrSent, err)
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	if err != nil && len(body) == 0 && resp.StatusCode/100 == 2 {
		return nil, fmt.Errorf("%w: %w", ErrSent, err)
	}
	// A broken body still has a status, and that decides.
	return &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// maxRetryAfter bounds what a provider may ask for.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads the header of that name: seconds or an HTTP date. Absent or
// unreadable is 0; the answer is never above 24 hours.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	d := time.Duration(0)
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		if n > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}
