package keyapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/logbuffer"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/node"
)

func TestMain(m *testing.M) { servertest.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// emptyHistory stores nothing and knows nothing of the past.
type emptyHistory struct {
	mu       sync.Mutex
	position map[int]int64
	// building keeps segments from being built.
	building bool
}

func (h *emptyHistory) Position(_ context.Context, partition int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position[partition], nil
}

func (h *emptyHistory) Append(_ context.Context, b *query.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.position == nil {
		h.position = map[int]int64{}
	}
	h.position[b.Partition] = max(h.position[b.Partition], b.To)
	return nil
}

func (h *emptyHistory) Replay(ctx context.Context, _ query.ReplayQuery, _ func(*query.ReplayBlock) error) error {
	if h.building {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h *emptyHistory) Timeline(context.Context, query.TimelineQuery) ([]query.TimelineEntry, error) {
	return nil, nil
}
func (h *emptyHistory) Activity(context.Context, query.ActivityQuery) (*roaring.Bitmap, error) {
	return roaring.New(), nil
}
func (h *emptyHistory) Transitions(context.Context, query.TransitionsQuery) ([]query.Transition, error) {
	return nil, nil
}
func (h *emptyHistory) ProfileTransitions(context.Context, query.ProfileTransitionsQuery) ([]query.Transition, error) {
	return nil, nil
}
func (h *emptyHistory) Series(context.Context, query.SeriesQuery) ([]query.SeriesRow, error) {
	return nil, nil
}
func (h *emptyHistory) Moves(context.Context, query.MovesQuery) ([]query.MovesRow, error) {
	return nil, nil
}

func (h *emptyHistory) Deeds(context.Context, query.DeedsQuery) ([]query.Deed, error) {
	return nil, nil
}
func (h *emptyHistory) Erase(context.Context, query.EraseQuery) error { return nil }
func (h *emptyHistory) Usage(context.Context) (query.Usage, error)    { return query.Usage{}, nil }
func (h *emptyHistory) Close() error                                  { return nil }

// service is a whole service on an in-memory listener.
type service struct {
	t       testing.TB
	clock   *servertest.Clock
	node    *node.Node
	api     *API
	console *api.API
	creds   api.Credentials
	account uint64
	client  *http.Client
	token   string
	log     *logbuffer.Buffer
}

// noSender takes any campaign. One that is sent fails the test.
type noSender struct{ Campaigns }

func (noSender) CheckProviders(*resolver.View, *campaigns.Campaign, []campaigns.Content) error {
	return nil
}

// newService starts a service with one account. change may set options, and
// routes of tests.
func newService(t testing.TB, change func(*Options), more ...keycall.Route) *service {
	t.Helper()
	return newServiceWith(t, &emptyHistory{}, change, more...)
}

func newServiceWith(t testing.TB, history query.History, change func(*Options), more ...keycall.Route) *service {
	t.Helper()
	s := &service{t: t, clock: servertest.NewClock(time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)), log: &logbuffer.Buffer{}}
	s.node = servertest.Node(t, 2, node.Options{History: history, Now: s.clock.Now})
	var err error
	s.creds, err = api.NewCredentials(rand.Reader, "http://muster.test")
	ok(t, err)
	ok(t, s.creds.Bootstrap(t.Context(), s.node, rand.Reader))
	s.account, _ = api.ParseAPIKey(s.creds.APIKey)

	set := metrics.NewSet()
	in := ingest.Options{Now: s.clock.Now, Rand: rand.Reader, Metrics: set}
	events, err := ingest.New(s.node, s.node, in)
	ok(t, err)
	s.console, err = api.New(api.Options{Node: s.node, History: history, Now: s.clock.Now, Rand: rand.Reader, LastUsed: api.LastUsedOptions{APIKey: func(account uint64, key string) int64 { return s.api.LastUsed(account, key) }},
		Heartbeat: 20 * time.Millisecond, PublishWait: 5 * time.Second})
	ok(t, err)
	opts := Options{Node: s.node, Console: s.console, Campaigns: noSender{}, History: history, Events: events, Now: s.clock.Now, Rand: rand.Reader, Metrics: set, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
		FlushInterval: time.Hour}
	if change != nil {
		change(&opts)
	}
	s.api, err = New(opts)
	ok(t, err)
	s.api.surfaceA.routes = append(s.api.surfaceA.routes, more...)
	s.api.surfaceC.routes = append(s.api.surfaceC.routes, more...)
	for _, x := range []*surface{s.api.surfaceA, s.api.surfaceC} {
		x.metrics = newSurfaceMetrics(set, x)
	}
	r := api.NewRouter()
	events.Register(r.ANY)
	s.console.Register(r)
	s.api.Register(r)
	t.Cleanup(s.api.Close)
	s.client = servertest.Client(t, ingest.NewServer(in, r.Handler))
	t.Cleanup(s.console.Close)
	var d struct{ Token string }
	s.console1("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword), &d)
	s.token = d.Token
	return s
}

// send makes a request with the headers given as pairs.
func (s *service) send(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	res, b := servertest.Send(s.t, s.client, method, "http://muster.test"+path, body, headers...)
	return res, string(b)
}

// with makes a request with a key.
func (s *service) with(key, method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	return s.send(method, path, body, append([]string{"Authorization", "Bearer " + key}, headers...)...)
}

// console1 makes a call of the console that must succeed.
func (s *service) console1(method, path, body string, data any) {
	s.t.Helper()
	res, b := s.send(method, api.Prefix+path, body, "Authorization", "Bearer "+s.token)
	var a struct{ Data json.RawMessage }
	ok(s.t, json.Unmarshal([]byte(b), &a))
	if res.StatusCode != 200 {
		s.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	if data != nil {
		ok(s.t, json.Unmarshal(a.Data, data))
	}
}

// keyRecord is an API key as the console answers it.
type keyRecord struct {
	ID          string `json:"_id"`
	Key, Name   string
	Permissions []string
	CreatedBy   string  `json:"created_by"`
	CreatedAt   string  `json:"created_at"`
	LastUsedAt  *string `json:"last_used_at"`
	Revoked     bool
	RevokedAt   *string `json:"revoked_at"`
}

func (s *service) newKey(permissions ...string) keyRecord {
	s.t.Helper()
	var k keyRecord
	s.console1("POST", "/api-keys", fmt.Sprintf(`{"name":"k","permissions":["%s"]}`, strings.Join(permissions, `","`)), &k)
	return k
}

// failureOf reads an answer that must be a failure and returns its message.
func failureOf(t testing.TB, status int, body string) string {
	t.Helper()
	var a struct{ Status, Message, Code string }
	ok(t, json.Unmarshal([]byte(body), &a))
	if a.Status != "failure" && a.Status != "error" || a.Message == "" {
		t.Fatalf("%d %s is no failure", status, body)
	}
	return a.Message
}
