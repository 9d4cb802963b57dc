package api

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/operation/operationtest"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// service is a whole service on an in-memory listener: real node, log, ingest
// and console API.
type service struct {
	t       testing.TB
	clock   *servertest.Clock
	node    *node.Node
	history query.History
	api     *API
	ops     *Ops
	creds   accounts.Credentials
	handler fasthttp.RequestHandler
	client  *http.Client
	token   string
}

// stored waits until history has all rows of now.
func (s *service) stored() {
	s.t.Helper()
	account, _ := resolver.ParseAppID([]byte(s.creds.AppID))
	var now query.Cut
	ok(s.t, s.node.Read(s.t.Context(), account, func(v *resolver.View) error { now = v.Cut(); return nil }))
	ok(s.t, s.node.WaitHistory(s.t.Context(), now))
}

// newService starts a service with one account, signed in.
func newService(t testing.TB, history query.History, change func(*Options)) *service {
	t.Helper()
	return newServiceOn(t, history, 1, change)
}

// newServiceOn is newService with a log of several partitions; another account
// can be made in each of the others.
func newServiceOn(t testing.TB, history query.History, partitions int, change func(*Options)) *service {
	t.Helper()
	s := &service{t: t, clock: servertest.NewClock(time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)), history: history}
	s.node = servertest.Node(t, partitions, node.Options{History: history, Now: s.clock.Now})
	var err error
	s.creds, err = accounts.NewCredentials(rand.Reader, "http://muster.test")
	ok(t, err)
	ok(t, s.creds.Bootstrap(t.Context(), s.node, rand.Reader))

	set := metrics.NewSet()
	in := ingest.Options{Now: s.clock.Now, Rand: rand.Reader, Metrics: set}
	h, err := ingest.New(s.node, s.node, in)
	ok(t, err)
	opts := Options{Node: s.node, History: history, Now: s.clock.Now, Rand: rand.Reader, Metrics: set, Providers: ProviderOptions{Events: h, PublicURL: "https://muster.test"}}
	if change != nil {
		change(&opts)
	}
	s.api, err = New(opts)
	ok(t, err)
	r := NewRouter()
	h.Register(r.ANY)
	s.api.Register(r)
	s.handler = r.Handler
	s.ops = NewOps(set, nil)
	t.Cleanup(RegisterStateMetrics(set, s.node, func(w io.Writer) { io.WriteString(w, "muster_log_of_the_caller 1\n") }, history, s.clock.Now))
	s.client = servertest.Client(t, ingest.NewServer(in, s.ops.Handle))
	t.Cleanup(s.api.Close)
	s.ops.patience = time.Millisecond
	if status, _ := s.get("/console/api/v1/segments"); status != fasthttp.StatusServiceUnavailable {
		t.Fatalf("before the service is open a call is answered %d", status)
	}
	s.ops.Open(r.Handler, s.node.Err)
	s.token = s.signIn()
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is an envelope.
type answer struct {
	Status  string
	Message string
	Data    json.RawMessage
	Next    *string
	header  http.Header
}

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.Data))
	if err := d.Decode(v); err != nil {
		t.Fatalf("data %s: %v", a.Data, err)
	}
}

func (a answer) field() string {
	var f struct{ Field string }
	json.Unmarshal(a.Data, &f) // then there is none
	return f.Field
}

// send makes a request with the headers given as pairs, and returns the raw
// answer.
func (s *service) send(method, path, body string, headers ...string) (*http.Response, []byte) {
	s.t.Helper()
	return servertest.Send(s.t, s.client, method, "http://muster.test"+path, body, headers...)
}

// do calls the console API and checks the envelope.
func (s *service) do(method, path, body string, headers ...string) (int, answer) {
	s.t.Helper()
	if s.token != "" {
		headers = append([]string{"Authorization", "Bearer " + s.token}, headers...)
	}
	if strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/console") {
		path = Prefix + path
	}
	res, b := s.send(method, path, body, headers...)
	var a answer
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		s.t.Fatalf("%s %s: %d %s: %v", method, path, res.StatusCode, b, err)
	}
	a.header = res.Header
	s.judge(method, path, body, res, b)
	if want := map[bool]string{true: "success", false: "failure"}[res.StatusCode < 300]; a.Status != want {
		s.t.Errorf("%s %s: HTTP %d with status %q", method, path, res.StatusCode, a.Status)
	}
	if res.StatusCode >= 300 && a.Message == "" {
		s.t.Errorf("%s %s: HTTP %d without a message", method, path, res.StatusCode)
	}
	return res.StatusCode, a
}

// described is the document of the console's calls.
var described = sync.OnceValues(func() (*operationtest.Document, error) {
	b, err := operation.Document(new(API).Operations())
	if err != nil {
		return nil, err
	}
	return operationtest.ReadDocument(b)
})

// judge checks an exchange against the document: the answer, and a body that was
// accepted.
func (s *service) judge(method, path, body string, res *http.Response, answer []byte) {
	s.t.Helper()
	doc, err := described()
	ok(s.t, err)
	path, _, _ = strings.Cut(path, "?")
	o := doc.Find(method, path)
	if o == nil || res.StatusCode == http.StatusNotFound {
		return // a path of the test's own, or none
	}
	if err := doc.CheckAnswer(o, res.StatusCode, res.Header.Get("Content-Type"), answer); err != nil {
		s.t.Errorf("%s, answered %d: %v", o.Name(), res.StatusCode, err)
	}
	if res.StatusCode < 300 {
		if err := doc.CheckRequest(o, "application/json", body); err != nil {
			s.t.Errorf("%s: %v", o.Name(), err)
		}
	}
}

func (s *service) get(path string) (int, answer) { return s.do("GET", path, "") }

// want makes a call that must succeed and reads its data.
func (s *service) want(method, path, body string, v any) answer {
	s.t.Helper()
	status, a := s.do(method, path, body)
	if status != 200 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, a.Message)
	}
	if v != nil {
		a.into(s.t, v)
	}
	return a
}

func (s *service) signIn() string {
	s.t.Helper()
	var d struct{ Token string }
	s.want("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword), &d)
	return d.Token
}

// event sends an event and returns the profile's id.
func (s *service) event(body string) string {
	s.t.Helper()
	res, b := s.send("POST", "/api/v1/events", body, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	var a struct {
		Success   bool
		ProfileID string `json:"profile_id"`
		Error     *string
	}
	ok(s.t, json.Unmarshal(b, &a))
	if res.StatusCode != 202 || !a.Success {
		s.t.Fatalf("event %s: %d %s", body, res.StatusCode, b)
	}
	return a.ProfileID
}
