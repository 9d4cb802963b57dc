package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/internal/exchange"
	"github.com/musterhq/muster/messaging/outcome"
)

// Kind is a push service.
type Kind string

const (
	KindWeb  Kind = "web"
	KindFCM  Kind = "fcm"
	KindAPNs Kind = "apns"
)

// Sender delivers notifications over one service with one account's credentials.
type Sender interface {
	// Send delivers n to one device. n and token must have passed their checks;
	// if not, the result is permanent.
	Send(ctx context.Context, token string, n *Notification) outcome.Result
	// Check reports what keeps n from being sent, naming the field.
	Check(n *Notification) error
	// CheckToken reports whether a device token has the service's form.
	CheckToken(token string) error
	// Close ends idle connections.
	Close()
}

// Validator is a [Sender] whose service checks a message without delivering it.
type Validator interface {
	// Validate does what Send does, and the device gets nothing.
	Validate(ctx context.Context, token string, n *Notification) outcome.Result
}

// Urgency lets a device that saves power wait.
type Urgency string

const (
	UrgencyLow    Urgency = "low"
	UrgencyNormal Urgency = "normal" // the default
	UrgencyHigh   Urgency = "high"
)

// Notification is what the device shows.
type Notification struct {
	Title, Body string
	// Link is opened by a click: http, https or, for apps, a scheme of their own.
	Link string
	// Icon and Image are https URLs; Apple devices ignore them.
	Icon, Image string
	// Collapse replaces an earlier notification of the same name that is still
	// undelivered or shown. At most 32 letters, digits, - and _.
	Collapse string
	// TTL is how long the service keeps trying, in whole seconds; 0 means as long
	// as it can, some 28 days.
	TTL     time.Duration
	Urgency Urgency
	// ID is given along to find the send again; it may be empty.
	ID string
	// Data is handed to the app.
	Data map[string]string
}

// MaxTTL is the longest TTL the services keep.
const MaxTTL = 28 * 24 * time.Hour

// MaxPayload is the limit of the services, in bytes.
const MaxPayload = 4096

// check judges what all services have in common.
func (n *Notification) check(appLinks bool) error {
	switch {
	case strings.TrimSpace(n.Title) == "" && strings.TrimSpace(n.Body) == "":
		return errors.New("title and body are empty; give at least one")
	case n.TTL < 0 || n.TTL > MaxTTL:
		return fmt.Errorf("ttl %v is out of range 0 to 28 days", n.TTL)
	case len(n.Collapse) > 32 || strings.Trim(n.Collapse, base64URL) != "":
		return errors.New("collapse must be up to 32 letters, digits, - and _")
	case n.Urgency != "" && n.Urgency != UrgencyLow && n.Urgency != UrgencyNormal && n.Urgency != UrgencyHigh:
		return fmt.Errorf("urgency %q is unknown; use low, normal or high", n.Urgency)
	case len(n.ID) > 128:
		return fmt.Errorf("id has %d bytes, at most 128 are allowed", len(n.ID))
	}
	for _, s := range []struct{ field, value string }{{"title", n.Title}, {"body", n.Body}} {
		if !utf8.ValidString(s.value) {
			return fmt.Errorf("%s is not valid UTF-8", s.field)
		}
	}
	for _, l := range []struct {
		field, value string
		app          bool
	}{{"link", n.Link, appLinks}, {"icon", n.Icon, false}, {"image", n.Image, false}} {
		if err := checkLink(l.value, l.app); err != nil {
			return fmt.Errorf("%s %w", l.field, err)
		}
	}
	for key := range n.Data {
		if key == "" || len(key) > 128 {
			return errors.New("data has a key that is empty or longer than 128 bytes")
		}
	}
	return nil
}

const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func checkLink(link string, app bool) error {
	if link == "" {
		return nil
	}
	u, err := url.Parse(link)
	if err != nil || len(link) > 2048 || strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("is no URL of at most 2048 bytes; write it as https://example.com/page")
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" {
			return errors.New("has no host; write it as https://example.com/page")
		}
		return nil
	case "", "javascript", "data", "vbscript", "file", "blob":
		return errors.New("must be an absolute https URL")
	}
	if !app {
		return errors.New("must be an absolute https URL")
	}
	return nil
}

// Options are common to all senders. The zero value is for production.
type Options struct {
	// Client sends the requests. Default a client of this sender's own, to
	// public addresses only, HTTP/2 where the service speaks it. It must not
	// follow redirects.
	Client *http.Client
	// AllowPrivate permits private addresses and http, for push services of one's own.
	AllowPrivate bool
	// Timeout bounds one send, including fetching a token. Default 15 s.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Client == nil {
		o.Client = exchange.NewClient(exchange.TransportOptions{AllowPrivate: o.AllowPrivate})
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// baseURL is the address of a service: the usual one, unless the credentials name another
// server that speaks the same interface.
func (o *Options) baseURL(given, usual string) (string, error) {
	if given == "" {
		return usual, nil
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(given) > 2048 || u.Scheme != "https" && (u.Scheme != "http" || !o.AllowPrivate) {
		return "", errors.New("push: base_url must be an absolute https URL without a password, query or fragment")
	}
	return strings.TrimRight(given, "/"), nil
}

// Open makes a sender from credentials in JSON: [WebCredentials], a Google
// service account as downloaded, or [APNsCredentials].
func Open(kind Kind, credentials []byte, o Options) (Sender, error) {
	switch kind {
	case KindWeb:
		c, err := decode[WebCredentials](credentials)
		if err != nil {
			return nil, err
		}
		return NewWebPush(c, o)
	case KindFCM:
		return NewFCM(credentials, o)
	case KindAPNs:
		c, err := decode[APNsCredentials](credentials)
		if err != nil {
			return nil, err
		}
		return NewAPNs(c, o)
	default:
		return nil, fmt.Errorf("push: kind %q is unknown; use web, fcm or apns", kind)
	}
}

// Validate reports what is wrong with credentials as Open would, without
// talking to anyone. allowPrivate is [Options.AllowPrivate].
func Validate(kind Kind, credentials []byte, allowPrivate bool) error {
	s, err := Open(kind, credentials, Options{AllowPrivate: allowPrivate})
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

const maxCredentials = 64 << 10

func decode[T any](raw []byte) (T, error) {
	var c T
	if len(raw) > maxCredentials {
		return c, fmt.Errorf("push: credentials have %d bytes, at most %d are allowed", len(raw), maxCredentials)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("push: credentials are not what is expected: %s", jsonform.Explain(err))
	}
	return c, nil
}

// failed sorts a request that got no answer.
func failed(err error) outcome.Result {
	if errors.Is(err, exchange.ErrSent) {
		return outcome.Failed(outcome.Ambiguous, "network", err)
	}
	if errors.Is(err, exchange.ErrPrivateAddress) {
		return outcome.Failed(outcome.Permanent, "private_address", err)
	}
	return outcome.Failed(outcome.Temporary, "network", err)
}

// status sorts what is alike everywhere; ok is false for other statuses.
func (o *Options) status(a *exchange.Answer, code, text string) (r outcome.Result, ok bool) {
	if a.Status == http.StatusTooManyRequests || a.Status >= 500 || a.Status == http.StatusRequestTimeout {
		r = outcome.New(outcome.Temporary, code, text)
		r.RetryAfter = exchange.RetryAfter(a.Header, o.Now())
		return r, true
	}
	return r, false
}
