package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/internal/messages"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver/contacts"
)

// receiver is a real HTTP server that takes webhooks.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status func(n int) int // of the n-th request, from 0
	refuse string          // part of bodies that are answered with 500
	now    int             // requests under way
	most   int
	hold   chan struct{} // requests wait until it is closed, nil for none
	got    []received
}

type received struct {
	id, body string
	header   http.Header
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: func(int) int { return 204 }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		n := len(r.got)
		r.got = append(r.got, received{req.Header.Get(webhook.HeaderID), string(body), req.Header})
		status := r.status(n)
		if r.refuse != "" && strings.Contains(string(body), r.refuse) {
			status = 500
		}
		r.now++
		r.most = max(r.most, r.now)
		hold := r.hold
		r.mu.Unlock()
		if hold != nil {
			<-hold
		}
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
		w.WriteHeader(status)
		if status >= 300 {
			_, _ = io.WriteString(w, "no thanks")
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// wait waits until n requests have come.
func (r *receiver) wait(t *testing.T, n int) (got []received) {
	t.Helper()
	eventually.Succeeds(t, func() error {
		r.mu.Lock()
		got = append([]received{}, r.got...)
		r.mu.Unlock()
		if len(got) < n {
			return fmt.Errorf("%d requests came, expected %d", len(got), n)
		}
		return nil
	})
	return got
}

// carryOut starts what carries out webhooks.
func (s *service) carryOut(t *testing.T) (stop func()) {
	t.Helper()
	client, err := webhook.NewClient(webhook.Options{Guard: webhook.Guard{AllowPrivate: true}, Now: s.clock.Now})
	ok(t, err)
	o, err := messaging.NewOutbox(messaging.OutboxOptions{Node: s.node, Mailer: messaging.CaptureMailer{Store: &capture.Store{}}, Webhooks: client,
		PublicURL: "http://muster.test", Now: s.clock.Now, Rand: func() uint64 { return 1 << 63 }, Metrics: metrics.NewSet(), Poll: 5 * time.Millisecond})
	ok(t, err)
	return func() { o.Close(); client.Close() }
}

type hookAnswer struct {
	ID          string `json:"_id"`
	Secret      string
	Status      string
	Failures    uint64
	Delivered   uint64
	Waiting     int
	DeadLetters int    `json:"dead_letters"`
	LastError   string `json:"last_error"`
}

func (s *service) hook(url, events string) (h hookAnswer) {
	s.t.Helper()
	s.want("POST", "/webhooks", fmt.Sprintf(`{"url":%q,"events":[%q],"description":"d"}`, url, events), &h)
	return h
}

// orderedHook is hook of an endpoint whose deliveries go out in order.
func (s *service) orderedHook(url, events string) (h hookAnswer) {
	s.t.Helper()
	s.want("POST", "/webhooks", fmt.Sprintf(`{"url":%q,"events":[%q],"ordered":true}`, url, events), &h)
	return h
}

func (s *service) addContact(email string) {
	s.t.Helper()
	_, err := s.node.Command(s.t.Context(), s.account(), contacts.CommandCreate, contacts.Create{Email: email})
	ok(s.t, err)
}

func (s *service) account() uint64 {
	account, _ := accounts.ParseAPIKey(s.creds.APIKey)
	return account
}

// until waits until the endpoint is as told.
func (s *service) until(id string, is func(hookAnswer) bool) (h hookAnswer) {
	s.t.Helper()
	eventually.Succeeds(s.t, func() error {
		s.want("GET", "/webhooks/"+id, "", &h)
		if !is(h) {
			return fmt.Errorf("the webhook stays %+v", h)
		}
		return nil
	})
	return h
}

func TestWebhookIsDeliveredSignedInOrder(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.AllowPrivate = true })
	to := newReceiver(t)
	h := s.orderedHook(to.URL, "contact.created")
	var again hookAnswer
	s.want("GET", "/webhooks/"+h.ID, "", &again)
	if again.Secret != "" || !strings.HasPrefix(h.Secret, webhook.SecretPrefix) {
		t.Fatalf("the secret is shown once: %+v, then %+v", h, again)
	}
	to.status = func(n int) int { return map[bool]int{true: 500, false: 200}[n < 2] }
	defer s.carryOut(t)()
	for i := range 5 {
		s.addContact(fmt.Sprintf("u%d@x.io", i))
	}
	to.wait(t, 1)
	s.until(h.ID, func(h hookAnswer) bool { return h.Failures == 1 })
	s.clock.Advance(10 * time.Second)
	to.wait(t, 2)
	if h := s.until(h.ID, func(h hookAnswer) bool { return h.Failures == 2 }); h.Waiting != 5 || h.LastError == "" {
		t.Fatalf("%+v", h)
	}
	s.clock.Advance(20 * time.Second)
	got := to.wait(t, 7)
	if got[0].id != got[1].id || got[1].id != got[2].id {
		t.Errorf("a retry has another id: %v", got[:3])
	}
	old, err := webhook.ParseSecret(h.Secret)
	ok(t, err)
	for i, x := range got[2:] {
		if !strings.Contains(x.body, fmt.Sprintf(`"email":"u%d@x.io"`, i)) || !strings.Contains(x.body, `"type":"contact.created"`) {
			t.Errorf("delivery %d: %s", i, x.body)
		}
		ok(t, webhook.Verify(x.header.Get, []byte(x.body), []webhook.Secret{old}, s.clock.Now()))
	}
	// Both secrets sign for a day.
	var rotated hookAnswer
	s.want("POST", "/webhooks/"+h.ID+"/rotate", "", &rotated)
	fresh, err := webhook.ParseSecret(rotated.Secret)
	ok(t, err)
	for i, both := range []bool{true, false} {
		s.want("POST", "/webhooks/"+h.ID+"/test", "", nil)
		x := to.wait(t, 8+i)[7+i]
		ok(t, webhook.Verify(x.header.Get, []byte(x.body), []webhook.Secret{fresh}, s.clock.Now()))
		if err := webhook.Verify(x.header.Get, []byte(x.body), []webhook.Secret{old}, s.clock.Now()); (err == nil) != both {
			t.Errorf("the old secret: %v", err)
		}
		s.clock.Advance(24 * time.Hour)
	}
}

func TestFailingEndpointHoldsBackNoOther(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.AllowPrivate = true })
	bad, good := newReceiver(t), newReceiver(t)
	bad.status = func(int) int { return 503 }
	s.orderedHook(bad.URL, "*")
	s.hook(good.URL, "contact.*")
	defer s.carryOut(t)()
	for i := range 20 {
		s.addContact(fmt.Sprintf("u%d@x.io", i))
	}
	good.wait(t, 40) // contact.subscribed and contact.created
	if n := len(bad.wait(t, 1)); n != 1 {
		t.Errorf("%d deliveries overtook the one that waits", n-1)
	}
}

func TestDeadLettersAreKeptAndReplayed(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.AllowPrivate = true })
	to := newReceiver(t)
	var mu sync.Mutex
	status := 410
	to.status = func(int) int { mu.Lock(); defer mu.Unlock(); return status }
	set := func(n int) { mu.Lock(); status = n; mu.Unlock() }
	h := s.orderedHook(to.URL, "contact.created")
	// Both are queued before the first is delivered: a webhook that is gone gets
	// nothing more in its queue.
	s.addContact("a@x.io")
	s.addContact("b@x.io")
	stop := s.carryOut(t)
	if h := s.until(h.ID, func(h hookAnswer) bool { return h.Status == "gone" }); h.DeadLetters != 1 || h.Waiting != 1 {
		t.Fatalf("%+v", h)
	}
	if status, _ := s.do("POST", "/webhooks/"+h.ID+"/dead-letters/replay", ""); status != 409 {
		t.Errorf("replay to who wants no more: %d", status)
	}
	stop()
	// After a restart of what carries out, attempts end in dead letters.
	set(500)
	s.want("PATCH", "/webhooks/"+h.ID, `{"status":"active"}`, nil)
	stop = s.carryOut(t)
	defer func() { stop() }()
	for attempt := 1; attempt <= webhook.MaxAttempts; attempt++ {
		s.until(h.ID, func(h hookAnswer) bool { return h.Failures == uint64(attempt)+1 })
		s.clock.Advance(13 * time.Hour) // half of the longest ceiling, see carryOut
	}
	s.until(h.ID, func(h hookAnswer) bool { return h.DeadLetters == 2 && h.Waiting == 0 })
	list := []messages.DeadLetter{}
	status1, a := s.do("GET", "/webhooks/"+h.ID+"/dead-letters?limit=1", "")
	if a.into(t, &list); status1 != 200 || len(list) != 1 || list[0].Event != "contact.created" || list[0].Attempts != 1 || a.Next == nil {
		t.Fatalf("%d %+v", status1, list)
	}
	first := list[0]
	_, a = s.do("GET", "/webhooks/"+h.ID+"/dead-letters?limit=1&cursor="+*a.Next, "")
	if a.into(t, &list); len(list) != 1 || list[0].Attempts != webhook.MaxAttempts || a.Next != nil {
		t.Fatalf("%+v", list)
	}
	set(200)
	s.want("POST", fmt.Sprintf("/webhooks/%s/dead-letters/%d/replay", h.ID, first.Seq), "", nil)
	got := to.wait(t, 2+webhook.MaxAttempts)
	if got[len(got)-1].id != first.WebhookID || got[0].id != first.WebhookID || got[len(got)-1].body != got[0].body {
		t.Errorf("what is replayed is another: %+v", got[len(got)-1])
	}
	var replayed struct{ Replayed, Left int }
	s.want("POST", "/webhooks/"+h.ID+"/dead-letters/replay", "", &replayed)
	if replayed.Replayed != 1 || replayed.Left != 0 {
		t.Errorf("%+v", replayed)
	}
	to.wait(t, 3+webhook.MaxAttempts)
	s.until(h.ID, func(h hookAnswer) bool { return h.Delivered == 2 && h.DeadLetters == 0 })
}

func TestWebhookRequestsAreJudged(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	for body, field := range map[string]string{
		`{"url":"http://127.0.0.1:8080/","events":["*"]}`:        "url",
		`{"url":"http://169.254.169.254/latest","events":["*"]}`: "url",
		`{"url":"ftp://example.com/","events":["*"]}`:            "url",
		`{"events":["*"]}`:                                                       "url",
		`{"url":"https://hooks.example.com/"}`:                                   "events",
		`{"url":"https://hooks.example.com/","events":[]}`:                       "events",
		`{"url":"https://hooks.example.com/","events":["mail.*"]}`:               "events",
		`{"url":"https://hooks.example.com/","events":["*"],"status":"x"}`:       "status",
		`{"url":"https://hooks.example.com/","events":["*"],"secret":"whsec_x"}`: "secret",
	} {
		if status, a := s.do("POST", "/webhooks", body); status != 400 || a.field() != field {
			t.Errorf("%s: %d, field %q, %s", body, status, a.field(), a.Message)
		}
	}
	h := s.hook("https://hooks.example.com/", "*")
	for i := 1; i < 20; i++ {
		s.hook("https://hooks.example.com/", "*")
	}
	if status, _ := s.do("POST", "/webhooks", `{"url":"https://hooks.example.com/","events":["*"]}`); status != 409 {
		t.Errorf("too many: %d", status)
	}
	s.want("DELETE", "/webhooks/"+h.ID, "", nil)
	for _, x := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/rotate"}, {"POST", "/test"}, {"GET", "/dead-letters"}, {"POST", "/dead-letters/replay"}, {"POST", "/dead-letters/1/replay"}, {"POST", "/dead-letters/x/replay"}, {"GET", "/deliveries"}, {"GET", "/deliveries/x"}, {"POST", "/deliveries/x/redeliver"}} {
		body := map[bool]string{true: "{}"}[x[0] == "PATCH"]
		if status, _ := s.do(x[0], "/webhooks/"+h.ID+x[1], body); status != 404 {
			t.Errorf("%s %s of a webhook that is gone: %d", x[0], x[1], status)
		}
	}
	s.newUser("reader@x.io", "settings:read")
	reader := s.as("reader@x.io", "long enough password")
	reader.want("GET", "/webhooks", "", nil)
	reader.want("GET", "/webhooks/events", "", nil)
	if status, _ := reader.do("POST", "/webhooks", `{"url":"https://hooks.example.com/","events":["*"]}`); status != 403 {
		t.Errorf("a reader may create: %d", status)
	}
}
