package keyapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/logbuffer"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/inbound"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// world is a service of several companies with all that requests can meet, over
// raw connections: requests may be ones that no client library would send.
type world struct {
	t       testing.TB
	clock   *servertest.Clock
	fs      *vfs.MemFS
	history *rowHistory
	capture *capture.Store
	logs    *logbuffer.Buffer
	owner   *company // administers the system

	log        eventlog.Log
	node       *node.Node
	api        *API
	operations []operation.Group
	router     *router.Router
	ln         *fasthttputil.InmemoryListener
	conn       net.Conn
	reader     *bufio.Reader
	closers    []func() // the newest last
	fresh      int
	partitions int
	haste      bool // time runs
}

// company is one of a world's, with a person and an API key who may everything
// there.
type company struct {
	*world
	api.Credentials
	account uint64
	token   string
	word    string // in whatever a person of the company names
}

func newWorld(t testing.TB, partitions int) *world {
	t.Helper()
	w := &world{t: t, clock: servertest.NewClock(time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)), fs: vfs.NewMem(), history: &rowHistory{}, logs: &logbuffer.Buffer{}}
	var err error
	w.capture, err = capture.Open(capture.Options{Dir: t.TempDir()})
	ok(t, err)
	t.Cleanup(func() { ok(t, w.capture.Close()) })
	w.partitions = partitions
	w.open("state")
	t.Cleanup(w.close)
	creds, err := api.NewCredentials(rand.Reader, "http://muster.test")
	ok(t, err)
	ok(t, creds.Bootstrap(t.Context(), w.node, rand.Reader))
	w.owner = w.signedIn(creds, "owner")
	return w
}

// open starts everything on what the files hold. It opens the log itself, for that keeps its
// beginning, and for a test starts other nodes on it.
func (w *world) open(dir string) {
	w.t.Helper()
	t := w.t
	logger := slog.New(slog.NewTextHandler(w.logs, nil))
	log, err := file.Open("log", file.Options{FS: w.fs, Partitions: w.partitions})
	ok(t, err)
	w.log = wholeLog{log}
	w.closers = append(w.closers, func() { ok(t, log.Close()) })
	w.node, err = node.Open(context.Background(), node.Options{FS: w.fs, Dir: dir, Log: w.log, History: w.history, Now: w.clock.Now, Rand: rand.Reader,
		Logger: logger, Feed: node.FeedOptions{Delay: time.Hour}})
	ok(t, err)
	w.closers = append(w.closers, func() { ok(t, w.node.Close(context.Background())) })

	// Nothing leaves this process: whatever is sent to is gone.
	client := &http.Client{Transport: goneTransport{}}
	set := metrics.NewSet()
	d, err := messaging.New(context.Background(), messaging.Options{
		Node: w.node, Mailer: messaging.CaptureMailer{Store: w.capture}, Capture: w.capture, PublicURL: "http://127.0.0.1:8080",
		Now: w.clock.Now, Sleep: w.sleep,
		Runs: 64, Metrics: set, Logger: logger, Push: push.Options{Client: client, Now: w.clock.Now}, Text: text.Options{Client: client, Now: w.clock.Now},
	})
	ok(t, err)
	w.closers = append(w.closers, d.Close, client.CloseIdleConnections)
	in := ingest.Options{Now: w.clock.Now, Rand: rand.Reader, Metrics: set, Logger: logger}
	events, err := ingest.New(w.node, w.node, in)
	ok(t, err)
	console, err := api.New(api.Options{Node: w.node, History: w.history, Now: w.clock.Now, Rand: rand.Reader, Logger: logger, Captured: api.CapturedOptions{Messages: w.capture}, Imports: &fakeImports{},
		Heartbeat: 20 * time.Millisecond, Providers: api.ProviderOptions{DNS: noDNS{}, SNS: inbound.NewSNS(noFetcher{})},
		LastUsed: api.LastUsedOptions{APIKey: func(account uint64, key string) int64 { return w.api.LastUsed(account, key) }}})
	ok(t, err)
	w.api, err = New(Options{Node: w.node, History: w.history, Events: events, Console: console, Campaigns: d, Now: w.clock.Now, Rand: rand.Reader, Metrics: set, Logger: logger,
		FlushInterval: time.Hour, PerMinute: 1 << 20})
	ok(t, err)
	w.closers = append(w.closers, w.api.Close)
	w.operations = slices.Concat(w.api.Operations(), events.Operations(), console.Operations(), w.api.SessionOperations())
	w.router = api.NewRouter()
	events.Register(w.router.ANY)
	console.Register(w.router)
	w.api.Register(w.router)
	w.ln = fasthttputil.NewInmemoryListener()
	stop := servertest.Start(ingest.NewServer(in, w.router.Handler), w.ln)
	w.closers = append(w.closers, func() {
		console.Close()
		w.hangUp()
		ok(t, stop())
	})
}

// sleep lets the time pass that a campaign waits.
func (w *world) sleep(ctx context.Context, d time.Duration) error {
	time.Sleep(time.Millisecond) // not to wait for: a campaign that looks without a pause would starve what it waits for
	if w.haste && d >= time.Second {
		d = time.Hour // a test of a campaign may wait for weeks
	}
	w.clock.Advance(d)
	return ctx.Err()
}

func (w *world) close() {
	for _, f := range slices.Backward(w.closers) {
		f()
	}
	w.closers = nil
}

// wholeLog keeps its beginning, for a start from nothing else.
type wholeLog struct{ eventlog.Log }

func (wholeLog) Trim(int, int64) error { return nil }

// goneTransport plays every server there is.
type goneTransport struct{}

func (goneTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 410, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

type noDNS struct{}

func (noDNS) LookupTXT(_ context.Context, name string) ([]string, error) {
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

type noFetcher struct{}

func (noFetcher) Fetch(context.Context, string) ([]byte, error) { return nil, errors.New("no network") }

// response is an answer as it came.
type response struct {
	status int
	header http.Header
	body   string
}

func (w *world) hangUp() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// raw sends a request as it stands, headers given as pairs, and reads the answer;
// of a stream only its head.
func (w *world) raw(method, target, body string, headers ...string) response {
	w.t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: muster.test\r\n", method, target)
	for i := 0; i < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	if body != "" || method != "GET" && method != "HEAD" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	for try := 0; ; try++ {
		reused := w.conn != nil
		if !reused {
			var err error
			w.conn, err = w.ln.Dial()
			ok(w.t, err)
			w.reader = bufio.NewReader(w.conn)
		}
		ok(w.t, w.conn.SetReadDeadline(time.Now().Add(30*time.Second)))
		_, werr := w.conn.Write(b.Bytes())
		res, err := http.ReadResponse(w.reader, &http.Request{Method: method})
		if err != nil {
			w.hangUp()
			if reused && try == 0 {
				continue // the server had closed it
			}
			w.t.Fatalf("%s %.200q: no answer: %v, %v\n%.2000q", method, target, err, werr, b.String())
		}
		out := response{status: res.StatusCode, header: res.Header}
		if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			w.hangUp()
			return out
		}
		content, err := io.ReadAll(res.Body)
		ok(w.t, err)
		if out.body = string(content); res.Close || werr != nil {
			w.hangUp()
		}
		return out
	}
}

// newCompany adds one whose account is in the partition, and everything it may do.
func (w *world) newCompany(word string, partition, partitions int) *company {
	w.t.Helper()
	for {
		w.fresh++
		var made struct {
			ID string `json:"_id"`
			api.Credentials
		}
		w.owner.console("POST", "/companies", fmt.Sprintf(`{"name":"%s %d","email":"boss%d@%s.example"}`, word, w.fresh, w.fresh, word), &made)
		w.owner.console("PATCH", "/companies/"+made.ID, `{"api_access":true}`, nil)
		w.owner.console("POST", "/companies/"+made.ID+"/credits", `{"amount":1000000}`, nil)
		if n, _ := api.ParseAPIKey(made.APIKey); n%uint64(partitions) == uint64(partition) {
			return w.signedIn(made.Credentials, word)
		}
	}
}

func (w *world) signedIn(creds api.Credentials, word string) *company {
	w.t.Helper()
	c := &company{world: w, Credentials: creds, word: word}
	c.account, _ = api.ParseAPIKey(creds.APIKey)
	c.AccountID, c.AppID = resolver.AccountID(c.account), resolver.AppID(c.account)
	c.signIn()
	return c
}

func (c *company) signIn() {
	c.t.Helper()
	res := c.raw("POST", api.Prefix+"/session", fmt.Sprintf(`{"email":%q,"password":%q}`, c.ConsoleEmail, c.ConsolePassword), "Content-Type", "application/json")
	var a struct{ Data struct{ Token string } }
	ok(c.t, json.Unmarshal([]byte(res.body), &a))
	if c.token = a.Data.Token; c.token == "" {
		c.t.Fatalf("sign in: %d %s", res.status, res.body)
	}
}

// headers are those with which the company makes a request of a path.
func (c *company) headers(path string) []string {
	switch {
	case strings.HasPrefix(path, api.Prefix):
		return []string{"Authorization", "Bearer " + c.token}
	case strings.HasPrefix(path, "/api/v1/events") && !strings.HasPrefix(path, "/api/v1/events/live"):
		return []string{"X-App-Id", c.AppID, "X-App-Secret", c.AppSecret}
	case strings.HasPrefix(path, "/api/v1"), strings.HasPrefix(path, "/v1"):
		return []string{"Authorization", "Bearer " + c.APIKey}
	}
	return nil
}

// send makes a request of the company's.
func (c *company) send(method, path, body string, headers ...string) response {
	c.t.Helper()
	all := append(c.headers(path), headers...)
	if body != "" && !slices.Contains(headers, "Content-Type") {
		all = append(all, "Content-Type", "application/json")
	}
	return c.raw(method, path, body, all...)
}

// must makes a request that must succeed, and reads its data.
func (c *company) must(method, path, body string, data any) (next string) {
	c.t.Helper()
	res := c.send(method, path, body)
	var a struct {
		Status string
		Data   json.RawMessage
		Next   string
	}
	ok(c.t, json.Unmarshal([]byte(res.body), &a))
	if (res.status != 200 || a.Status != "success") && c.haste {
		panic(errNotMade)
	} else if res.status != 200 || a.Status != "success" {
		c.t.Fatalf("%s %s %s: %d %s", method, path, body, res.status, res.body)
	}
	if data != nil {
		ok(c.t, json.Unmarshal(a.Data, data))
	}
	return a.Next
}

func (c *company) console(method, path, body string, data any) {
	c.t.Helper()
	c.must(method, api.Prefix+path, body, data)
}

// command runs a command of the company's account.
func (c *company) command(name string, args, reply any) {
	c.t.Helper()
	b, err := c.node.Command(context.Background(), c.account, name, args)
	ok(c.t, err)
	if reply != nil {
		ok(c.t, json.Unmarshal(b, reply))
	}
}

// name is a name that nothing else has.
func (c *company) name(prefix string) string {
	c.fresh++
	return prefix + strconv.Itoa(c.fresh) + c.word
}

// entry is an endpoint of the service, with the whole path.
type entry struct{ method, path string }

func (e entry) String() string { return e.method + " " + e.path }

// entries are all operations there are, but for health and metrics.
func (w *world) entries() (out []entry) {
	for _, g := range w.operations {
		for i := range g.Operations {
			if g.Tag != "Operations" {
				out = append(out, entry{g.Operations[i].Method, g.Surface.Prefix + g.Operations[i].Path})
			}
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path+" "+a.method, b.path+" "+b.method) })
	return out
}
