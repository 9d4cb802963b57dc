package muster

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config says where events go, and how. Zero values stand for the defaults.
type Config struct {
	// URL is the address of the server, such as "https://muster.example.com"; the path
	// /api/v1/events/batch is added, so a base_url that ends in /api/v1 is taken as well.
	// Required.
	URL string
	// AppID and AppSecret are the company's credentials for events. Required.
	AppID, AppSecret string

	// BatchEvents is the maximum number of events in a request: 1 to 10,000; default 500.
	BatchEvents int
	// BatchBytes is the maximum size of a request's JSON in bytes, before compression: 1 KiB
	// to 8 MiB (what a server takes by default); default 1 MiB.
	BatchBytes int
	// BatchAge is the longest time that an event waits for others to share its request: up
	// to 1 hour; default 1 s. Negative: events are sent at once.
	BatchAge time.Duration

	// QueueEvents is the maximum number of events in memory, those of the running request
	// included: at least 1; default 100,000.
	QueueEvents int
	// QueueBytes is the maximum size of these events' JSON in bytes: at least 1 KiB;
	// default 64 MiB.
	QueueBytes int
	// WaitForRoom has Send wait for room in a full queue, until its context ends. It is
	// for programs that would rather be slower than lose events, such as imports. It is
	// not for handlers of requests: these would wait for as long as the server is away.
	WaitForRoom bool

	// RequestTimeout is the maximum time of one attempt: 1 s to 10 minutes; default 60 s.
	// The server itself answers within 30 s of having the whole request.
	RequestTimeout time.Duration
	// GiveUpAfter is the time after an event's first attempt at which it is no longer tried
	// again: up to 48 hours; default 24 hours. Negative: events are tried once. The bound
	// keeps every retry within the 72 hours for which the server knows an idempotency key.
	GiveUpAfter time.Duration
	// NoCompression sends JSON as it is. Without it, requests from 1 KiB on are compressed
	// with gzip.
	NoCompression bool

	// OnDropped is called once for each event that is not recorded, also for those for
	// which Send returns an error. Calls come from the client's goroutine and from
	// those that call Send, so it must be safe for concurrent use, return soon, and not call
	// Close or Flush; with WaitForRoom it must not call Send either. Nil: events are
	// dropped without a word.
	OnDropped func(Dropped)
	// OnWarning is called for each event that the server recorded with a remark, such as an
	// identifier that was left out. The rules of OnDropped hold. May be nil.
	OnWarning func(event Event, warning string)
	// Logger gets a line for each failed attempt. Nil: silent.
	Logger *slog.Logger
	// HTTPClient makes the requests. Its redirects are not followed, since they would carry
	// the secret to another address. Nil: a client of its own, with the proxy of the
	// environment.
	HTTPClient *http.Client

	clock  clock          // nil: the system's
	random io.Reader      // of idempotency keys; nil: crypto/rand
	jitter func() float64 // in [0, 1); nil: math/rand
}

// clock is the time, and timers.
type clock interface {
	Now() time.Time
	// After returns a channel that gets a value once d has passed, and what releases it.
	After(d time.Duration) (<-chan time.Time, func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

const (
	maxBatchEvents = 10_000
	maxBatchBytes  = 8 << 20
	minBytes       = 1 << 10
	maxGiveUpAfter = 48 * time.Hour
)

// withDefaults returns the configuration with defaults for what is not set.
func (c Config) withDefaults() Config {
	number := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	duration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
		*d = max(*d, 0) // a negative one means none
	}
	number(&c.BatchEvents, 500)
	number(&c.BatchBytes, 1<<20)
	number(&c.QueueEvents, 100_000)
	number(&c.QueueBytes, 64<<20)
	duration(&c.BatchAge, time.Second)
	duration(&c.GiveUpAfter, 24*time.Hour)
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 60 * time.Second
	}
	if c.HTTPClient == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		c.HTTPClient = &http.Client{Transport: transport}
	}
	own := *c.HTTPClient
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.HTTPClient = &own
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.clock == nil {
		c.clock = systemClock{}
	}
	if c.random == nil {
		c.random = rand.Reader
	}
	if c.jitter == nil {
		c.jitter = mathrand.Float64
	}
	return c
}

// endpoint returns where batches go, or what is wrong with the configuration.
func (c *Config) endpoint() (string, error) {
	bounds := func(name string, value, low, high int) error {
		if value < low || value > high {
			return fmt.Errorf("muster: Config.%s is %d; it must be from %d to %d", name, value, low, high)
		}
		return nil
	}
	const noBound = int(^uint(0) >> 1)
	for _, err := range []error{
		bounds("BatchEvents", c.BatchEvents, 1, maxBatchEvents),
		bounds("BatchBytes", c.BatchBytes, minBytes, maxBatchBytes),
		bounds("QueueEvents", c.QueueEvents, 1, noBound),
		bounds("QueueBytes", c.QueueBytes, minBytes, noBound),
	} {
		if err != nil {
			return "", err
		}
	}
	switch {
	case c.AppID == "":
		return "", fmt.Errorf("muster: Config.AppID is empty; take app_id of the credentials file, or make an app in the console's settings")
	case c.AppSecret == "":
		return "", fmt.Errorf("muster: Config.AppSecret is empty; take app_secret of the credentials file, or make an app in the console's settings")
	case !sendable(c.AppID) || !sendable(c.AppSecret):
		return "", fmt.Errorf("muster: Config.AppID or AppSecret has a space, a line break or another character that a header cannot have; remove it")
	case c.BatchAge > time.Hour:
		return "", fmt.Errorf("muster: Config.BatchAge is %v; it must be at most 1h", c.BatchAge)
	case c.RequestTimeout < time.Second || c.RequestTimeout > 10*time.Minute:
		return "", fmt.Errorf("muster: Config.RequestTimeout is %v; it must be from 1s to 10m", c.RequestTimeout)
	case c.GiveUpAfter > maxGiveUpAfter:
		return "", fmt.Errorf("muster: Config.GiveUpAfter is %v; it must be at most %v, since the server forgets idempotency keys after 72 hours", c.GiveUpAfter, maxGiveUpAfter)
	}
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return "", fmt.Errorf(`muster: Config.URL is empty; set the server's address, such as "https://muster.example.com"`)
	case err != nil:
		return "", fmt.Errorf("muster: Config.URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf(`muster: Config.URL is %q; it must begin with https:// or http:// and name a host`, c.URL)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", fmt.Errorf("muster: Config.URL has credentials, a query or a fragment; leave only the address")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v1") + "/api/v1/events/batch"
	return u.String(), nil
}

// sendable reports whether a header can have the text as it is.
func sendable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
