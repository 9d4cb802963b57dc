package muster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRequestAsTheServerReadsIt: every field is where the API has it, with the
// credentials, and small requests are not compressed.
func TestRequestAsTheServerReadsIt(t *testing.T) {
	s := serving(t, recording)
	c := connect(t, s.URL+"/", Config{random: strings.NewReader("0123456789abcdef")})
	at := time.Date(2026, 11, 1, 10, 0, 0, 123_987_654, time.FixedZone("", 3600))
	ok(t, c.Send(t.Context(), Event{
		Type: "item_purchased", Timestamp: at, Properties: map[string]any{"value": 79.9, "title": "<a & b>"},
		User: User{Email: "ann@example.com", ExternalID: "42", Phone: "+491701234567", FirstName: "Ann", LastName: "Lee",
			Geo: map[string]any{"country": "DE"}, Attributes: map[string]any{"plan": "pro"}},
	}))
	ok(t, c.Send(t.Context(), Event{Type: "signed_up", User: User{Email: "b@example.com"}, IdempotencyKey: "signup-1"}))
	ok(t, c.Flush(bounded(t)))
	got := s.got()
	if len(got) != 1 {
		t.Fatalf("%d requests, not one", len(got))
	}
	h := got[0].header
	if h.Get("X-App-Id") != "app_1" || h.Get("X-App-Secret") != "secret" || h.Get("Content-Type") != "application/json" || h.Get("Content-Encoding") != "" {
		t.Errorf("headers %v", h)
	}
	text, err := json.Marshal(got[0].events)
	ok(t, err)
	want := `[{"event_type":"item_purchased","user":{"email":"ann@example.com","external_id":"42","phone":"+491701234567","first_name":"Ann","last_name":"Lee","geo":{"country":"DE"},"attributes":{"plan":"pro"}},` +
		`"properties":{"title":"\u003ca \u0026 b\u003e","value":79.9},"idempotency_key":"30313233343536373839616263646566","timestamp":"2026-11-01T09:00:00.123Z"},` +
		`{"event_type":"signed_up","user":{"email":"b@example.com"},"idempotency_key":"signup-1"}]`
	if string(text) != want {
		t.Errorf("it sent\n%s\nnot\n%s", text, want)
	}
	if st := c.Stats(); st != (Stats{Added: 2, Recorded: 2}) {
		t.Errorf("stats %+v", st)
	}
}

// TestLargeRequestsAreCompressed: and are the same text after decompression.
func TestLargeRequestsAreCompressed(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := serving(t, recording)
		c := connect(t, s.URL, Config{NoCompression: plain, clock: newTestClock(false)}) // time stands still: Flush sends
		sendAll(t, c, 300)
		ok(t, c.Flush(bounded(t)))
		r := s.got()[0]
		if len(r.events) != 300 || r.events[299].User.ExternalID != "299" {
			t.Errorf("%d events arrived", len(r.events))
		}
		if plain != (r.raw == r.text) || !plain && r.raw > r.text/2 {
			t.Errorf("NoCompression %v: %d bytes for %d", plain, r.raw, r.text)
		}
	}
}

// TestBatches: a request goes out when it is full by events, or by bytes, or when its
// oldest event is old enough, and not before.
func TestBatches(t *testing.T) {
	text, err := (&Event{Type: "item_viewed", User: User{ExternalID: "0"}, Properties: map[string]any{"n": 0}, IdempotencyKey: strings.Repeat("0", 32)}).encode()
	ok(t, err)
	sizes := func(s *fakeServer) (list []int) {
		for _, r := range s.got() {
			list = append(list, len(r.events))
		}
		return list
	}
	t.Run("events", func(t *testing.T) {
		s := serving(t, recording)
		c := connect(t, s.URL, Config{BatchEvents: 3, clock: newTestClock(false)})
		sendAll(t, c, 7)
		ok(t, c.Close(bounded(t)))
		if got := sizes(s); !slices.Equal(got, []int{3, 3, 1}) {
			t.Errorf("batches of %v", got)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		// Room for ten to the byte: their texts, the commas between them, and the frame.
		s := serving(t, recording)
		most := 10*len(text) + 9 + batchOverhead
		c := connect(t, s.URL, Config{BatchBytes: most, clock: newTestClock(false)})
		for range 21 {
			ok(t, c.Send(t.Context(), event(0)))
		}
		ok(t, c.Close(bounded(t)))
		if got := sizes(s); !slices.Equal(got, []int{10, 10, 1}) {
			t.Errorf("batches of %v", got)
		}
		if r := s.got()[0]; r.text != most {
			t.Errorf("a full request has %d bytes, not %d", r.text, most)
		}
	})
	t.Run("age", func(t *testing.T) {
		s := serving(t, recording)
		clock := newTestClock(false)
		c := connect(t, s.URL, Config{BatchAge: 5 * time.Second, clock: clock})
		sendAll(t, c, 2)
		<-clock.made
		clock.advance(5*time.Second - time.Millisecond) // nothing is due yet
		sendAll(t, c, 1)
		clock.advance(time.Millisecond)
		eventually(t, func() bool {
			clock.advance(5 * time.Second) // the sender may have read the clock before, and set its timer since
			return c.Stats().Recorded > 0
		})
		if got := sizes(s); !slices.Equal(got, []int{3}) {
			t.Errorf("batches of %v", got)
		}
	})
}

// TestEventsGoOutByThemselves: no flush is needed, also after the queue was empty.
func TestEventsGoOutByThemselves(t *testing.T) {
	s := serving(t, recording)
	c := connect(t, s.URL, Config{BatchAge: time.Millisecond})
	for i := range 20 {
		ok(t, c.Send(t.Context(), event(i)))
		eventually(t, func() bool { return c.Stats().Recorded == uint64(i+1) })
	}
}

// TestAnswers has what becomes of three events for each answer of a server.
func TestAnswers(t *testing.T) {
	refusing := func(w http.ResponseWriter, r received) { // the second event, as often as it comes
		w.WriteHeader(202)
		var results []string
		for _, e := range r.events {
			if e.User.ExternalID == "1" {
				results = append(results, `{"success":false,"profile_id":"","error":"user.email must be a string"}`)
			} else {
				results = append(results, `{"success":true,"profile_id":"prf_0","error":null,"warning":"user.phone not added"}`)
			}
		}
		fmt.Fprintf(w, `{"success":false,"accepted":2,"total":3,"results":[%s]}`, strings.Join(results, ","))
	}
	failingWith := func(code int) answer { // as long as the second event is among them
		return func(w http.ResponseWriter, r received) {
			if slices.ContainsFunc(r.events, func(e wireEvent) bool { return e.User.ExternalID == "1" }) {
				status(code, `{"success":false,"profile_id":"","error":"no good"}`)(w, r)
				return
			}
			recording(w, r)
		}
	}
	broken := func(w http.ResponseWriter, _ received) { panic(http.ErrAbortHandler) }
	cut := func(w http.ResponseWriter, _ received) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(202)
		io.WriteString(w, `{"success":true,"acc`)
	}
	text := func(code int, body string) answer { return status(code, body) }
	const recordedAll, droppedAll, droppedOne = "all recorded", "all dropped", "second dropped"
	for _, x := range []struct {
		name    string
		answers []answer
		want    string
		retries uint64
		status  int    // of the RefusedError
		message string // of it
	}{
		{"202", []answer{recording}, recordedAll, 0, 0, ""},
		{"an event is refused", []answer{refusing}, droppedOne, 0, 202, "user.email must be a string"},
		{"bad credentials", []answer{text(202, `{"success":false,"accepted":0,"total":0,"results":[],"error":"invalid app credentials"}`)}, droppedAll, 0, 202, "invalid app credentials"},
		{"400 for one of them", []answer{failingWith(400)}, droppedOne, 0, 400, "no good"},
		{"413 for one of them", []answer{failingWith(413)}, droppedOne, 0, 413, "no good"},
		{"200 of a page", []answer{text(200, "<html>\n Hello\n")}, droppedAll, 0, 200, "<html> Hello"},
		{"301", []answer{status(301, "", "Location", "https://other.example.com/")}, droppedAll, 0, 301, `it redirects to "https://other.example.com/"; set Config.URL to where the server is`},
		{"307", []answer{status(307, "", "Location", "https://other.example.com/")}, droppedAll, 0, 307, `it redirects to "https://other.example.com/"; set Config.URL to where the server is`},
		{"401", []answer{text(401, `{"error":"who?"}`)}, droppedAll, 0, 401, "who?"},
		{"403", []answer{text(403, ``)}, droppedAll, 0, 403, "the answer has no text"},
		{"404", []answer{text(404, strings.Repeat("x", 5000))}, droppedAll, 0, 404, strings.Repeat("x", maxMessage)},
		{"405", []answer{text(405, `{}`)}, droppedAll, 0, 405, "{}"},
		{"415", []answer{text(415, `no`)}, droppedAll, 0, 415, "no"},
		{"431", []answer{text(431, `no`)}, droppedAll, 0, 431, "no"},
		{"501", []answer{text(501, `no`)}, droppedAll, 0, 501, "no"},
		{"505", []answer{text(505, `no`)}, droppedAll, 0, 505, "no"},
		{"408", []answer{text(408, ``), recording}, recordedAll, 1, 0, ""},
		{"429", []answer{text(429, ``), recording}, recordedAll, 1, 0, ""},
		{"500", []answer{text(500, ``), recording}, recordedAll, 1, 0, ""},
		{"502", []answer{text(502, `<html>`), recording}, recordedAll, 1, 0, ""},
		{"503 twice", []answer{text(503, ``), text(503, ``), recording}, recordedAll, 2, 0, ""},
		{"504", []answer{text(504, ``), recording}, recordedAll, 1, 0, ""},
		{"the connection breaks", []answer{broken, recording}, recordedAll, 1, 0, ""},
		{"the answer is cut short", []answer{cut, recording}, recordedAll, 1, 0, ""},
		{"202 of a page", []answer{text(202, "<html>"), recording}, recordedAll, 1, 0, ""},
		{"202 with a result too few", []answer{text(202, `{"results":[{"success":true},{"success":true}]}`), recording}, recordedAll, 1, 0, ""},
		{"503, then 400 for one of them", []answer{text(503, ``), failingWith(400)}, droppedOne, 1, 400, "no good"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			s := serving(t, x.answers...)
			var lost dropped
			var warned []string
			clock := newTestClock(false)
			c := connect(t, s.URL, Config{OnDropped: lost.add, OnWarning: func(e Event, w string) { warned = append(warned, e.User.ExternalID+": "+w) }, clock: clock, BatchAge: time.Hour, BatchEvents: 3})
			sendAll(t, c, 3) // one batch, which is full
			clock.run()
			ok(t, c.Close(bounded(t)))
			var gone []string
			for _, d := range lost.all() {
				gone = append(gone, d.Event.User.ExternalID)
				var refused *RefusedError
				if !errors.As(d.Err, &refused) || refused.StatusCode != x.status || refused.Message != x.message {
					t.Errorf("dropped because of %v, want status %d: %s", d.Err, x.status, x.message)
				}
				if d.MayBeRecorded != strings.HasPrefix(x.name, "503, then") {
					t.Errorf("MayBeRecorded is %v", d.MayBeRecorded)
				}
				if d.Event.Type != "item_viewed" || len(d.Event.IdempotencyKey) != 32 {
					t.Errorf("dropped %+v", d.Event)
				}
			}
			want := map[string][]string{recordedAll: nil, droppedAll: {"0", "1", "2"}, droppedOne: {"1"}}[x.want]
			if !slices.Equal(gone, want) {
				t.Errorf("dropped %v, want %v", gone, want)
			}
			if st := c.Stats(); st != (Stats{Added: 3, Recorded: uint64(3 - len(want)), Dropped: uint64(len(want)), Retries: x.retries}) {
				t.Errorf("stats %+v", st)
			}
			if x.name == "an event is refused" && !slices.Equal(warned, []string{"0: user.phone not added", "2: user.phone not added"}) {
				t.Errorf("warnings %q", warned)
			}
			keys := map[string]string{}
			for _, r := range s.got() {
				for _, e := range r.events {
					if first, seen := keys[e.User.ExternalID]; seen && first != e.IdempotencyKey {
						t.Errorf("event %s has another key in a retry", e.User.ExternalID)
					}
					keys[e.User.ExternalID] = e.IdempotencyKey
				}
			}
		})
	}
}

// TestBackoff: waits double up to the bound, half of each at random, and a server's
// Retry-After is a lower bound with a bound of its own.
func TestBackoff(t *testing.T) {
	date := newTestClock(true).now.Add(40 * time.Second).Format(http.TimeFormat)
	far := newTestClock(true).now.Add(1000 * time.Hour).Format(http.TimeFormat)
	answers := []answer{
		status(503, ``), status(503, ``), status(503, ``, "Retry-After", "7"), status(503, ``, "Retry-After", "soon"), status(503, ``, "Retry-After", "-1"),
		status(429, ``, "Retry-After", "0"), status(503, ``, "Retry-After", "86400"), status(503, ``, "Retry-After", "9223372036"), status(503, ``, "Retry-After", far), status(503, ``), status(503, ``), status(503, ``), recording,
	}
	s := serving(t, append([]answer{status(503, ``, "Retry-After", date)}, answers...)...)
	clock := newTestClock(true)
	c := connect(t, s.URL, Config{clock: clock, BatchAge: -1, BatchEvents: 1})
	ok(t, c.Send(t.Context(), event(1)))
	ok(t, c.Close(bounded(t)))
	ms := time.Millisecond
	want := []time.Duration{40_100 * ms, 200 * ms, 400 * ms, 7_100 * ms, 1_600 * ms, 3_200 * ms, 6_400 * ms, 300_100 * ms, 300_100 * ms, 300_100 * ms, 30_000 * ms, 30_000 * ms, 30_000 * ms}
	if got := clock.waited(); !slices.Equal(got, want) {
		t.Errorf("waits\n%v, want\n%v", got, want)
	}
	low := &Client{cfg: Config{jitter: func() float64 { return 0 }}}
	if got := low.backoff(3, 0); got != 200*ms {
		t.Errorf("the shortest third wait is %v", got)
	}
	if got := low.backoff(math.MaxInt, 0); got != maxBackoff/2 {
		t.Errorf("the shortest of all later waits is %v", got)
	}
}

// TestGivesUp: an event is tried for GiveUpAfter and not longer; then it is dropped, and
// what follows is tried.
func TestGivesUp(t *testing.T) {
	for _, x := range []struct {
		after    time.Duration
		requests int
		certain  bool
		first    answer
	}{
		{10 * time.Second, 7, false, status(503, "down")}, // 0.1 + 0.2 + … + 3.2 s are over, 6.4 more would be too long
		{-1, 1, false, status(500, "down")},
		{-1, 1, true, status(429, "down")},
	} {
		down := slices.Repeat([]answer{x.first}, x.requests)
		s := serving(t, append(down, recording)...)
		var lost dropped
		c := connect(t, s.URL, Config{clock: newTestClock(true), BatchAge: -1, GiveUpAfter: x.after, BatchEvents: 1, OnDropped: lost.add})
		sendAll(t, c, 2)
		ok(t, c.Close(bounded(t)))
		var gaveUp *RetryError
		list := lost.all()
		if len(list) != 1 || list[0].Event.User.ExternalID != "0" || !errors.As(list[0].Err, &gaveUp) || gaveUp.Attempts != x.requests || list[0].MayBeRecorded == x.certain {
			t.Errorf("dropped %+v", list)
		}
		if got := s.got(); len(got) != x.requests+1 || got[x.requests].events[0].User.ExternalID != "1" {
			t.Errorf("%d requests, not %d", len(got), x.requests+1)
		}
	}
}

// TestRequestTimeout: a server that does not answer is tried again.
// TestHalvesHaveNoMoreTime: a batch that is divided after hours of attempts is given up when
// the batch would have been; else its keys could be tried for longer than the server knows
// them.
func TestHalvesHaveNoMoreTime(t *testing.T) {
	clock := newTestClock(false)
	began := clock.Now()
	away := status(503, "")
	answers := make([]answer, 0, 200)
	for range 100 { // some 50 minutes
		answers = append(answers, away)
	}
	answers = append(answers, status(413, ""), away)
	var lost dropped
	c := connect(t, serving(t, answers...).URL, Config{clock: clock, BatchAge: time.Hour, GiveUpAfter: time.Hour, BatchEvents: 4, OnDropped: lost.add})
	sendAll(t, c, 4) // one batch, which is full
	clock.run()
	ok(t, c.Flush(bounded(t)))
	if took := clock.Now().Sub(began); took > time.Hour+time.Minute || len(lost.all()) != 4 {
		t.Fatalf("%d events were given up after %v", len(lost.all()), took)
	}
}

// TestDeepEvents: an event that is nested too deep is an error of Send, and no panic when it
// is dropped.
func TestDeepEvents(t *testing.T) {
	nested := func(n int) Event {
		var v any = "x"
		for range n {
			v = []any{v}
		}
		e := event(1)
		e.Properties = map[string]any{"a": v, "[": `"[[`}
		return e
	}
	var lost dropped
	c := connect(t, serving(t, status(400, `{"error":"too deep"}`)).URL, Config{OnDropped: lost.add})
	if err := c.Send(t.Context(), nested(20_000)); err == nil || !strings.Contains(err.Error(), "nested 20002 levels deep") {
		t.Fatal(err)
	}
	ok(t, c.Send(t.Context(), nested(900)))
	ok(t, c.Flush(bounded(t)))
	if n := len(lost.all()); n != 2 {
		t.Fatalf("%d events were dropped", n)
	}
}

func TestRequestTimeout(t *testing.T) {
	hang := make(chan struct{})
	s := serving(t, func(http.ResponseWriter, received) { <-hang }, recording)
	defer close(hang)
	c := connect(t, s.URL, Config{RequestTimeout: time.Second, BatchAge: -1})
	sendAll(t, c, 1)
	ok(t, c.Close(bounded(t)))
	if st := c.Stats(); st.Recorded != 1 || st.Retries < 1 {
		t.Errorf("stats %+v", st)
	}
}

// TestNobodyListens: events wait for a server that is not there, and are known not to be
// recorded.
func TestNobodyListens(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	var lost dropped
	c := connect(t, s.URL, Config{clock: newTestClock(true), GiveUpAfter: time.Minute, OnDropped: lost.add})
	sendAll(t, c, 1)
	ok(t, c.Close(bounded(t)))
	if list := lost.all(); len(list) != 1 || list[0].MayBeRecorded || !errors.As(list[0].Err, new(*RetryError)) {
		t.Errorf("dropped %+v", list)
	}
}

// TestQueueIsBounded: by events and by bytes, those of the running request included. The
// event that does not fit is refused at once, with the same news for OnDropped.
func TestQueueIsBounded(t *testing.T) {
	text, err := (&Event{Type: "item_viewed", User: User{ExternalID: "0"}, Properties: map[string]any{"n": 0}, IdempotencyKey: strings.Repeat("0", 32)}).encode()
	ok(t, err)
	for name, cfg := range map[string]Config{"events": {QueueEvents: 12}, "bytes": {QueueBytes: 12*len(text) + len(text) - 1}} {
		t.Run(name, func(t *testing.T) {
			begun, hold := make(chan struct{}), make(chan struct{})
			s := serving(t, func(w http.ResponseWriter, r received) { close(begun); <-hold; recording(w, r) }, recording)
			var lost dropped
			cfg.OnDropped, cfg.BatchEvents, cfg.clock = lost.add, 2, newTestClock(false)
			c := connect(t, s.URL, cfg)
			for range 2 {
				ok(t, c.Send(t.Context(), event(0)))
			}
			<-begun
			for range 10 {
				ok(t, c.Send(t.Context(), event(0)))
			}
			if st := c.Stats(); st.Queued != 12 || st.Bytes != 12*len(text) {
				t.Errorf("stats %+v", st)
			}
			late := event(0)
			late.IdempotencyKey = strings.Repeat("1", 32)
			if err := c.Send(t.Context(), late); !errors.Is(err, ErrQueueFull) {
				t.Errorf("a full queue says %v", err)
			}
			if list := lost.all(); len(list) != 1 || !errors.Is(list[0].Err, ErrQueueFull) || list[0].Event.IdempotencyKey != late.IdempotencyKey {
				t.Errorf("dropped %+v", list)
			}
			close(hold)
			ok(t, c.Flush(bounded(t)))
			ok(t, c.Send(t.Context(), late))
			ok(t, c.Close(bounded(t)))
			if st := c.Stats(); st != (Stats{Added: 13, Recorded: 13, Refused: 1}) {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// TestWaitForRoom: Send waits for room, for its context, and for Close.
func TestWaitForRoom(t *testing.T) {
	begun, hold := make(chan struct{}), make(chan struct{})
	s := serving(t, func(w http.ResponseWriter, r received) { close(begun); <-hold; recording(w, r) }, recording)
	c := connect(t, s.URL, Config{QueueEvents: 1, BatchAge: -1, WaitForRoom: true})
	sendAll(t, c, 1)
	<-begun
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Send(short, event(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that ends: %v", err)
	}
	sent := make(chan error)
	go func() { sent <- c.Send(context.Background(), event(2)) }()
	eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.mu.room != nil
	})
	select {
	case err := <-sent:
		t.Errorf("it did not wait for room: %v", err)
	default:
	}
	close(hold)
	ok(t, <-sent)
	ok(t, c.Flush(bounded(t)))
	if got := s.got(); len(got) != 2 || got[1].events[0].User.ExternalID != "2" {
		t.Errorf("requests %+v", got)
	}

	// Close wakes the waiters.
	begun2, hold2 := make(chan struct{}), make(chan struct{})
	s = serving(t, func(w http.ResponseWriter, r received) { close(begun2); <-hold2; recording(w, r) }, recording)
	c = connect(t, s.URL, Config{QueueEvents: 1, BatchAge: -1, WaitForRoom: true})
	sendAll(t, c, 1)
	<-begun2
	go func() { sent <- c.Send(context.Background(), event(1)) }()
	eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.mu.room != nil
	})
	closed := make(chan error)
	go func() { closed <- c.Close(context.Background()) }()
	if err := <-sent; !errors.Is(err, ErrClosed) {
		t.Errorf("Send says %v at Close", err)
	}
	close(hold2)
	ok(t, <-closed)
}

// TestBadEvents: what cannot be sent is an error that names the field; nothing of it is
// queued.
func TestBadEvents(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	user := User{Email: "a@example.com"}
	for _, x := range []struct {
		name string
		ctx  context.Context
		e    Event
		want string
	}{
		{"no type", t.Context(), Event{User: user}, "Event.Type is empty"},
		{"no identifier", t.Context(), Event{Type: "x"}, "Event.User has no identifier"},
		{"not a number", t.Context(), Event{Type: "x", User: user, Properties: map[string]any{"value": math.NaN()}}, "cannot be written as JSON"},
		{"too large", t.Context(), Event{Type: "x", User: user, Properties: map[string]any{"text": strings.Repeat("x", 2000)}}, "too large: it has 2"},
		{"context over", ended, Event{Type: "x", User: user}, "context canceled"},
	} {
		var lost dropped
		c := connect(t, "http://127.0.0.1:1", Config{BatchBytes: 1024, OnDropped: lost.add, clock: newTestClock(false)})
		if err := c.Send(x.ctx, x.e); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
		if len(lost.all()) != 1 {
			t.Errorf("%s: dropped %v", x.name, lost.all())
		}
		if st := c.Stats(); st != (Stats{Refused: 1}) {
			t.Errorf("%s: stats %+v", x.name, st)
		}
	}
}

// TestEventsAreCopied: a caller may change its maps after Send, and a dropped event has
// large numbers as they were.
func TestEventsAreCopied(t *testing.T) {
	s := serving(t, status(400, `{"error":"no"}`))
	var lost dropped
	c := connect(t, s.URL, Config{OnDropped: lost.add})
	properties := map[string]any{"id": int64(9007199254740993)}
	at := time.Date(2026, 11, 1, 10, 0, 0, 5_000_000, time.UTC)
	ok(t, c.Send(t.Context(), Event{Type: "x", User: User{Email: "a@example.com"}, Properties: properties, Timestamp: at}))
	properties["id"] = "changed"
	ok(t, c.Flush(bounded(t)))
	e := lost.all()[0].Event
	if fmt.Sprint(e.Properties["id"]) != "9007199254740993" || !e.Timestamp.Equal(at) {
		t.Errorf("dropped %+v", e)
	}
	first := s.got()[0].events[0]
	ok(t, c.Send(t.Context(), e))
	ok(t, c.Flush(bounded(t)))
	if again := s.got()[1].events[0]; again.IdempotencyKey != first.IdempotencyKey || again.Timestamp != first.Timestamp {
		t.Errorf("sent again: %+v, first %+v", again, first)
	}
}

// TestCloseWithinItsDeadline: what is not recorded by then is dropped, every event once,
// and only those of the running request may be recorded.
func TestCloseWithinItsDeadline(t *testing.T) {
	begun, hold := make(chan struct{}), make(chan struct{})
	s := serving(t, recording, func(http.ResponseWriter, received) { close(begun); <-hold })
	defer close(hold)
	var lost dropped
	c := connect(t, s.URL, Config{BatchEvents: 2, OnDropped: lost.add})
	sendAll(t, c, 7)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := c.Close(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "5 events were not sent") {
		t.Errorf("Close says %v", err)
	}
	var got []string
	for _, d := range lost.all() {
		got = append(got, fmt.Sprint(d.Event.User.ExternalID, d.MayBeRecorded))
		if !errors.Is(d.Err, ErrNotSent) {
			t.Errorf("dropped because of %v", d.Err)
		}
	}
	if want := []string{"2true", "3true", "4false", "5false", "6false"}; !slices.Equal(got, want) {
		t.Errorf("dropped %v, want %v", got, want)
	}
	if err := c.Send(t.Context(), event(8)); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close says %v", err)
	}
	if st := c.Stats(); st != (Stats{Added: 7, Recorded: 2, Dropped: 5, Refused: 1}) {
		t.Errorf("stats %+v", st)
	}
}

// TestCloseEndsAWait: Close's deadline ends a wait between two attempts.
func TestCloseEndsAWait(t *testing.T) {
	s := serving(t, status(503, "", "Retry-After", "300"))
	var lost dropped
	clock := newTestClock(false)
	c := connect(t, s.URL, Config{BatchAge: -1, OnDropped: lost.add, clock: clock})
	sendAll(t, c, 1)
	<-clock.made
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close says %v", err)
	}
	if list := lost.all(); len(list) != 1 || !errors.Is(list[0].Err, ErrNotSent) || !list[0].MayBeRecorded || len(s.got()) != 1 {
		t.Errorf("dropped %+v", list)
	}
}

// TestFlushEndsWithItsContext, and the events stay queued for the server.
func TestFlushEndsWithItsContext(t *testing.T) {
	s := serving(t, status(503, ""), recording)
	clock := newTestClock(false)
	c := connect(t, s.URL, Config{clock: clock})
	sendAll(t, c, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush says %v", err)
	}
	if st := c.Stats(); st.Queued != 1 || st.Dropped != 0 {
		t.Errorf("stats %+v", st)
	}
}

// TestNothingLostOrDoubledInOrder: whatever a server does between having a request and
// answering it, it records each event once and in the order of Send. Several goroutines
// send at the same time.
func TestNothingLostOrDoubledInOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	seen := map[string]bool{}
	var recorded []wireEvent
	record := func(r received) {
		for _, e := range r.events {
			if !seen[e.IdempotencyKey] {
				seen[e.IdempotencyKey] = true
				recorded = append(recorded, e)
			}
		}
	}
	s := serving(t, func(w http.ResponseWriter, r received) {
		mu.Lock()
		defer mu.Unlock()
		switch random.IntN(8) {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			record(r)
			panic(http.ErrAbortHandler)
		case 2:
			status(503, "", "Retry-After", "1")(w, r)
		case 3:
			record(r)
			status(502, "<html>")(w, r)
		case 4:
			if len(r.events) > 1 {
				status(413, "")(w, r)
				return
			}
			fallthrough
		default:
			record(r)
			recording(w, r)
		}
	})
	var lost dropped
	c := connect(t, s.URL, Config{BatchEvents: 20, clock: newTestClock(true), OnDropped: lost.add})
	const senders, each = 4, 500
	var group sync.WaitGroup
	for sender := range senders {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range each {
				if err := c.Send(t.Context(), Event{Type: "x", User: User{ExternalID: fmt.Sprint(sender)}, Properties: map[string]any{"n": i}}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	ok(t, c.Close(bounded(t)))
	mu.Lock()
	defer mu.Unlock()
	if len(lost.all()) > 0 || len(recorded) != senders*each {
		t.Errorf("seed %d: %d events recorded, not %d; dropped %v", seed, len(recorded), senders*each, lost.all())
	}
	last := map[string]int{}
	for _, e := range recorded {
		n := int(e.Properties["n"].(float64))
		if n != last[e.User.ExternalID] {
			t.Fatalf("seed %d: sender %s: event %d comes where %d should", seed, e.User.ExternalID, n, last[e.User.ExternalID])
		}
		last[e.User.ExternalID]++
	}
	if st := c.Stats(); st.Recorded != senders*each || st.Retries == 0 {
		t.Errorf("seed %d: stats %+v", seed, st)
	}
}

// TestConfig: a bad field is named, with what to do.
func TestConfig(t *testing.T) {
	good := Config{URL: "https://muster.example.com", AppID: "app_1", AppSecret: "s"}
	for _, x := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.URL = "" }, "Config.URL is empty"},
		{func(c *Config) { c.URL = "muster.example.com" }, "Config.URL is"},
		{func(c *Config) { c.URL = "ftp://muster.example.com" }, "Config.URL is"},
		{func(c *Config) { c.URL = "https://a:b@muster.example.com" }, "Config.URL has credentials"},
		{func(c *Config) { c.URL = "https://muster.example.com/?x=1" }, "Config.URL has credentials"},
		{func(c *Config) { c.URL = "http://[" }, "Config.URL"},
		{func(c *Config) { c.AppID = "" }, "Config.AppID is empty"},
		{func(c *Config) { c.AppSecret = "" }, "Config.AppSecret is empty"},
		{func(c *Config) { c.AppSecret = "s\n" }, "Config.AppID or AppSecret has"},
		{func(c *Config) { c.BatchEvents = 10_001 }, "Config.BatchEvents is 10001; it must be from 1 to 10000"},
		{func(c *Config) { c.BatchEvents = -1 }, "Config.BatchEvents is -1"},
		{func(c *Config) { c.BatchBytes = 1023 }, "Config.BatchBytes is 1023"},
		{func(c *Config) { c.BatchBytes = 8<<20 + 1 }, "Config.BatchBytes is"},
		{func(c *Config) { c.QueueEvents = -1 }, "Config.QueueEvents is -1"},
		{func(c *Config) { c.QueueBytes = 1 }, "Config.QueueBytes is 1"},
		{func(c *Config) { c.BatchAge = 2 * time.Hour }, "Config.BatchAge is 2h"},
		{func(c *Config) { c.RequestTimeout = time.Millisecond }, "Config.RequestTimeout is 1ms"},
		{func(c *Config) { c.GiveUpAfter = 49 * time.Hour }, "Config.GiveUpAfter is 49h"},
	} {
		cfg := good
		x.change(&cfg)
		if c, err := New(cfg); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		} else if c != nil {
			t.Error("a client beside an error")
		}
	}
	for url, want := range map[string]string{
		"https://muster.example.com":         "https://muster.example.com/api/v1/events/batch",
		"https://muster.example.com/api/v1/": "https://muster.example.com/api/v1/events/batch",
		"http://127.0.0.1:8080/muster/":      "http://127.0.0.1:8080/muster/api/v1/events/batch",
	} {
		cfg := good
		cfg.URL = url
		cfg = cfg.withDefaults()
		if got, err := cfg.endpoint(); err != nil || got != want {
			t.Errorf("%s: %s %v", url, got, err)
		}
	}
}

// TestPackerKeepsItsBuffers: packing a batch that is not larger than one before allocates
// nothing.
func TestPackerKeepsItsBuffers(t *testing.T) {
	batch := slices.Repeat([]queued{{text: bytes.Repeat([]byte("x"), 100)}}, 100)
	var p packer
	p.pack(batch, true)
	if n := testing.AllocsPerRun(10, func() { p.pack(batch, true) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
