package webhook

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Bounds of a request.
const (
	MaxBodyBytes   = 1 << 20
	MaxHeaders     = 50
	MaxHeaderBytes = 8 << 10
	MaxSecrets     = 8
	DefaultTimeout = 15 * time.Second
	MaxTimeout     = 60 * time.Second
)

// Request is one delivery. It is not changed by Deliver and may be sent again.
type Request struct {
	// ID identifies the delivery over all its attempts (header webhook-id): 1 to 128
	// printable ASCII characters without spaces and dots.
	ID string
	// URL is the target.
	URL string
	// Method is POST when empty; GET, PUT, PATCH and DELETE are allowed.
	Method string
	// Headers are the user's. Those that belong to the connection or to the signature
	// are refused. Content-Type is application/json when there is a body and none is
	// given.
	Headers map[string]string
	Body    []byte
	// Secrets sign the delivery. Without any it is sent unsigned.
	Secrets []Secret
	// Timeout bounds the whole attempt, from look-up to the end of the answer:
	// 15 s when zero, at most 60 s.
	Timeout time.Duration
}

// CheckMethod judges the method of a webhook step. The error names the field and
// is ErrRefused.
func CheckMethod(method string) error {
	switch method {
	case "", http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return nil
	}
	return refuse("method must be GET, POST, PUT, PATCH or DELETE")
}

// CheckHeaders judges the headers of a webhook step. The error names the header and
// is ErrRefused.
func CheckHeaders(headers map[string]string) error {
	if len(headers) > MaxHeaders {
		return refuse("headers holds %d entries; at most %d are allowed", len(headers), MaxHeaders)
	}
	bytes := 0
	for name, value := range headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return refuse("headers: %.60q is no header name", name)
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return refuse("headers: the value of %.60q holds a character that is not allowed, such as a line break", name)
		}
		if reservedHeader(name) {
			return refuse("headers: %.60q is set by the server; leave it out", name)
		}
		bytes += len(name) + len(value)
	}
	if bytes > MaxHeaderBytes {
		return refuse("headers has %d bytes; at most %d are allowed", bytes, MaxHeaderBytes)
	}
	return nil
}

func reservedHeader(name string) bool {
	n := strings.ToLower(name)
	switch n {
	case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
		"upgrade", "expect", "accept-encoding", "http2-settings":
		return true
	}
	return strings.HasPrefix(n, "webhook-") || strings.HasPrefix(n, "proxy-") || strings.HasPrefix(n, ":")
}

func (r *Request) check(g Guard) (*url.URL, error) {
	if err := checkID(r.ID); err != nil {
		return nil, refuse("id %v", err)
	}
	u, err := g.parse(r.URL)
	if err != nil {
		return nil, err
	}
	if err := CheckMethod(r.Method); err != nil {
		return nil, err
	}
	if err := CheckHeaders(r.Headers); err != nil {
		return nil, err
	}
	if len(r.Body) > MaxBodyBytes {
		return nil, refuse("body has %d bytes; at most %d are allowed", len(r.Body), MaxBodyBytes)
	}
	if len(r.Secrets) > MaxSecrets {
		return nil, refuse("%d secrets; at most %d are allowed", len(r.Secrets), MaxSecrets)
	}
	for _, s := range r.Secrets {
		if s.IsZero() {
			return nil, refuse("an empty secret")
		}
	}
	return u, nil
}
