package api

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/tokens"
)

// watch opens the stream and returns its lines.
func (s *service) watch(query ...string) (lines <-chan string, stop func()) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://muster.test"+Prefix+"/events/live"+strings.Join(query, ""), nil)
	ok(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := s.client.Do(req)
	ok(s.t, err)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream is answered %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		for in := bufio.NewScanner(res.Body); in.Scan(); {
			if in.Text() != "" {
				out <- in.Text()
			}
		}
	}()
	return out, func() { res.Body.Close() }
}

func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case l := <-lines:
		return l
	case <-time.After(time.Minute):
		t.Fatal("nothing came in a minute")
		return ""
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	lines, stop := s.watch()
	defer stop()
	if l := next(t, lines); l != ": watching" {
		t.Fatalf("have %q", l)
	}
	id := s.event(`{"event_type":"seen","properties":{"n":1},"user":{"email":"a@x.io"}}`)
	if l := next(t, lines); l != "event: event" {
		t.Fatalf("have %q", l)
	}
	want := fmt.Sprintf(`data: {"profile_id":%q,"event_type":"seen","timestamp":"2025-03-01T12:00:00.000Z","properties":{"n":1},"outcome":"accepted","identity":{"email":"a@x.io"},"transitions":[]}`, id)
	if l := next(t, lines); l != want {
		t.Errorf("have %s\nwant %s", l, want)
	}
	// The service stops: the stream ends, and says so.
	s.api.Close()
	if l := next(t, lines); l != "event: end" {
		t.Errorf("have %q", l)
	}
	for range lines {
	}
}

// TestLiveHeartbeat: there are signs of life, and they end with the session.
func TestLiveHeartbeat(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.Heartbeat = 5 * time.Millisecond })
	lines, stop := s.watch()
	defer stop()
	next(t, lines)
	for range 3 {
		if l := next(t, lines); l != ": alive" {
			t.Fatalf("have %q", l)
		}
	}
	s.want("DELETE", "/session", "", nil)
	end := time.After(time.Minute)
	for {
		select {
		case l, open := <-lines:
			if !open {
				return
			}
			if l != ": alive" {
				t.Fatalf("have %q", l)
			}
		case <-end:
			t.Fatal("the stream outlives its session")
		}
	}
}

// TestLiveDropped: a watcher that is too slow learns how much it missed.
func TestLiveDropped(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	lines, stop := s.watch()
	defer stop()
	next(t, lines)
	var batch []string
	for i := range 5000 {
		batch = append(batch, fmt.Sprintf(`{"event_type":"seen","properties":{"text":%q},"user":{"email":"a%d@x.io"}}`, strings.Repeat("x", 500), i))
	}
	res, b := s.send("POST", "/api/v1/events/batch", `{"events":[`+strings.Join(batch, ",")+`]}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	if res.StatusCode != 202 || !strings.Contains(string(b), `"accepted":5000`) {
		t.Fatalf("the batch is answered %d %.100s", res.StatusCode, b)
	}
	events, dropped := 0, 0
	for events+dropped < 5000 {
		switch l := next(t, lines); l {
		case "event: event":
			events++
			next(t, lines)
		case "event: dropped":
			if _, err := fmt.Sscanf(next(t, lines), `data: {"count":%d}`, &dropped); err != nil {
				t.Fatal(err)
			}
		}
	}
	if dropped == 0 || events == 0 {
		t.Errorf("%d events came, %d were dropped", events, dropped)
	}
}

// TestLiveWatchersBounded (Q1).
func TestLiveWatchersBounded(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	account, _ := tokens.Account(s.token, tokens.Session)
	n := 0
	for {
		w, free := s.node.Watch(account)
		if !free {
			break
		}
		defer w.Close()
		n++
	}
	if status, a := s.get("/events/live"); status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("with %d watchers another is answered %d %s", n, status, a.Message)
	}
}
