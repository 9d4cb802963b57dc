package muster

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bounded is a context for what must not take long.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition that another goroutine makes true. It polls with a pause,
// since the client signals nothing for tests. This module depends on no other, so it cannot
// use muster's internal/eventually.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for ctx := bounded(t); !is(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("it did not come about")
		}
	}
}

// testClock is a clock that a test moves. With jump, each timer moves it, and fires at
// once.
type testClock struct {
	mu     sync.Mutex
	now    time.Time
	jump   bool
	waits  []time.Duration // of all timers
	timers []testTimer     // that have not fired
	made   chan struct{}   // gets a value for each timer
}

type testTimer struct {
	at    time.Time
	fired chan time.Time
}

func newTestClock(jump bool) *testClock {
	return &testClock{now: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC), jump: jump, made: make(chan struct{}, 1000)}
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.timers = slices.DeleteFunc(c.timers, func(t testTimer) bool {
		due := !t.at.After(c.now)
		if due {
			t.fired <- c.now
		}
		return due
	})
}

// run lets the clock jump over all waits from now on, and ends those that wait.
func (c *testClock) run() {
	c.mu.Lock()
	c.jump = true
	c.mu.Unlock()
	c.advance(time.Minute)
}

func (c *testClock) After(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, d)
	fired := make(chan time.Time, 1)
	if c.jump {
		c.now = c.now.Add(d)
		fired <- c.now
	} else {
		c.timers = append(c.timers, testTimer{c.now.Add(d), fired})
	}
	c.made <- struct{}{}
	return fired, func() {}
}

func (c *testClock) waited() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.waits...)
}

// received is a request as the server sees it.
type received struct {
	header http.Header
	raw    int // bytes of the body as it came
	text   int // bytes after decompression
	events []wireEvent
}

// answer is what a server answers one request with.
type answer func(w http.ResponseWriter, r received)

// recording answers as a server does that records all.
func recording(w http.ResponseWriter, r received) {
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"success":true,"accepted":%d,"total":%[1]d,"results":[%s]}`, len(r.events),
		strings.TrimSuffix(strings.Repeat(`{"success":true,"profile_id":"prf_0","error":null},`, len(r.events)), ","))
}

// status answers with a status and a text.
func status(code int, body string, headers ...string) answer {
	return func(w http.ResponseWriter, _ received) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// fakeServer answers each request with the next of its answers, and with the last one
// from then on.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []answer
	requests []received
}

func serving(t *testing.T, answers ...answer) *fakeServer {
	t.Helper()
	s := &fakeServer{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/api/v1/events/batch" {
			t.Errorf("%s %s was called", r.Method, r.URL.Path)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client broke it off
		}
		got := received{header: r.Header.Clone(), raw: len(body)}
		if r.Header.Get("Content-Encoding") == "gzip" {
			packed, err := gzip.NewReader(strings.NewReader(string(body)))
			if err == nil {
				body, err = io.ReadAll(packed)
			}
			if err != nil {
				t.Error(err)
			}
		}
		got.text = len(body)
		var batch struct{ Events []wireEvent }
		if err := json.Unmarshal(body, &batch); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		got.events = batch.Events
		s.mu.Lock()
		s.requests = append(s.requests, got)
		next := s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
		s.mu.Unlock()
		next(w, got)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *fakeServer) got() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.requests...)
}

// dropped collects what a client drops.
type dropped struct {
	mu   sync.Mutex
	list []Dropped
}

func (d *dropped) add(x Dropped) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, x)
}

func (d *dropped) all() []Dropped {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Dropped(nil), d.list...)
}

// connect returns a client of a server, which is closed with the test.
func connect(t *testing.T, url string, cfg Config) *Client {
	t.Helper()
	cfg.URL, cfg.AppID, cfg.AppSecret = url, "app_1", "secret"
	if cfg.jitter == nil {
		cfg.jitter = func() float64 { return 1 }
	}
	c, err := New(cfg)
	ok(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.Close(ctx)
	})
	return c
}

// event is the event of a number.
func event(n int) Event {
	return Event{Type: "item_viewed", User: User{ExternalID: fmt.Sprint(n)}, Properties: map[string]any{"n": n}}
}

// sendAll sends the events of the numbers from 0 on.
func sendAll(t *testing.T, c *Client, n int) {
	t.Helper()
	for i := range n {
		ok(t, c.Send(t.Context(), event(i)))
	}
}
