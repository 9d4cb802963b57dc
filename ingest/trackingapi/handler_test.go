package trackingapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/sources"
)

// The state machine is what stands behind the handler.
var _ Node = (*node.Node)(nil)

// fakeNode decodes records and refuses events of the user "refused".
type fakeNode struct {
	mu     sync.Mutex
	keys   map[[32]byte]sources.Access
	events []string
	shown  []string
	names  []eventtypes.Name
	uses   []sources.Use
	err    error // of Submit
}

func (n *fakeNode) WriteKey(account uint64, hash [32]byte) (sources.Access, bool) {
	s, ok := n.keys[hash]
	return s, ok && s.Account == account
}

func (n *fakeNode) NoteRefusedCall(source *sources.Access, call string, raw []byte, reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shown = append(n.shown, call+" "+string(raw)+" — "+reason)
}

func (n *fakeNode) Command(_ context.Context, _ uint64, name string, args any) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != eventtypes.CommandName {
		return nil, fmt.Errorf("command %s", name)
	}
	n.names = append(n.names, args.(eventtypes.Names).Types...)
	return nil, nil
}

func (n *fakeNode) RecordSourceUses(_ context.Context, uses []sources.Use) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.uses = append(n.uses, uses...)
	return nil
}

func (n *fakeNode) Submit(_ context.Context, account uint64, rec []byte, out *resolver.Outcome) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return n.err
	}
	env, body, err := eventlog.DecodeEnvelope(rec)
	if err != nil || env.Account != account || env.Kind != eventlog.KindEvents || env.StampMs < received {
		return fmt.Errorf("envelope %+v: %w", env, err)
	}
	list, err := eventlog.NewEventsReader(body)
	if err != nil {
		return err
	}
	var ev eventlog.Event
	for list.Next(&ev) {
		n.events = append(n.events, shownEvent(&ev))
		o := resolver.EventOutcome{Status: resolver.EventAccepted}
		if string(ev.ExternalID) == "refused" {
			o = resolver.EventOutcome{Status: resolver.EventRefused, Refusal: &resolver.Refusal{Message: "not this one"}}
		}
		out.Events = append(out.Events, o)
	}
	return list.Err()
}

// world is a handler with keys of sources.
type world struct {
	t    *testing.T
	h    *Handler
	node *fakeNode
	now  time.Time
	set  *metrics.Set
	// The keys of a server and a browser, of a disabled source, of a deactivated account,
	// and of a browser source of the server's account.
	server, browser, disabled, dead, other string
}

func newWorld(t *testing.T, change func(*Options)) *world {
	w := &world{t: t, node: &fakeNode{keys: map[[32]byte]sources.Access{}}, now: time.UnixMilli(received), set: metrics.NewSet()}
	random := rand.NewChaCha8([32]byte{1})
	key := func(s sources.Access) string {
		text, err := NewKey(random, s.Account)
		if err != nil {
			t.Fatal(err)
		}
		s.KeyHash = sha256.Sum256([]byte(text))
		s.UserIDIs = sources.UserIDIsExternalID
		s.SourceID, s.KeyID = fmt.Sprint("src_", len(w.node.keys)), "wky_1"
		w.node.keys[s.KeyHash] = s
		return text
	}
	w.server = key(sources.Access{Account: 7, Enabled: true, AccountAlive: true})
	w.browser = key(sources.Access{Account: 7, Enabled: true, AccountAlive: true, Public: true, AllowedOrigins: []string{"https://shop.example"}})
	w.disabled = key(sources.Access{Account: 7, AccountAlive: true})
	w.dead = key(sources.Access{Account: 8, Enabled: true})
	w.other = key(sources.Access{Account: 9, Enabled: true, AccountAlive: true})
	opts := Options{Node: w.node, Memory: ingest.NewMemory(256 << 20), Now: func() time.Time { return w.now }, Rand: random, Metrics: w.set}
	if change != nil {
		change(&opts)
	}
	var err error
	if w.h, err = New(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.h.Close)
	return w
}

// ask makes a request. Headers are names and values in turn.
func (w *world) ask(method, path string, body []byte, headers ...string) *fasthttp.RequestCtx {
	w.t.Helper()
	ctx := new(fasthttp.RequestCtx)
	var req fasthttp.Request
	req.Header.SetMethod(method)
	req.SetRequestURI("http://muster.example" + path)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	req.SetBody(body)
	ctx.Init(&req, nil, nil)
	w.h.Before(func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(404) })(ctx)
	return ctx
}

func basic(key string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))
}

func packed(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}

const track = `{"type":"track","userId":"u","event":"x"}`

// TestEveryPathIsTaken: all paths of the SDKs record an event and answer alike.
func TestEveryPathIsTaken(t *testing.T) {
	w := newWorld(t, nil)
	segment := `{"type":"track","event":"x","userId":"u","groupId":"g","previousId":"p","mergeProperties":[{"type":"email","value":"a@x.io"},{"type":"phone","value":"1"}]}`
	for path, e := range endpoints {
		t.Run(path, func(t *testing.T) {
			w.node.events = nil
			body := segment
			if e.dialect == posthogDialect {
				body = fmt.Sprintf(`{"api_key":%q,"event":"x","distinct_id":"u"}`, w.server)
			}
			ctx := w.ask("POST", path, []byte(body), "Authorization", basic(w.server))
			if ctx.Response.StatusCode() != 200 || string(ctx.Response.Body()) != `{"success":true}` || string(ctx.Response.Header.ContentType()) != "application/json" {
				t.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
			want := 1
			if e.metrics {
				want = 0
			}
			if len(w.node.events) != want {
				t.Errorf("%q", w.node.events)
			}
			if !Is([]byte(path)) || !refusal.IsTracking([]byte(path)) {
				t.Error("the path is not known as one of the tracking API")
			}
			for _, method := range []string{"GET", "PUT", "HEAD"} {
				if ctx := w.ask(method, path, nil); ctx.Response.StatusCode() != 405 || string(ctx.Response.Header.Peek("Allow")) != "POST, OPTIONS" {
					t.Errorf("%s: %d", method, ctx.Response.StatusCode())
				}
			}
		})
	}
	for _, path := range []string{"/v1/events", "/v1", "/v1/x", "/v1/projects/settings", "/v1/projects//settings", "/v1/projects/a/b/settings"} {
		if w.ask("POST", path, nil).Response.StatusCode() != 404 || Is([]byte(path)) || !strings.HasPrefix(path, "/v1/projects") && refusal.IsTracking([]byte(path)) {
			t.Errorf("%s is taken", path)
		}
	}
}

// TestWriteKeys: where the key may stand, and what a wrong one is answered.
func TestWriteKeys(t *testing.T) {
	w := newWorld(t, nil)
	const invalid, off = `{"success":false,"code":"invalid_write_key"`, `{"success":false,"code":"source_disabled"`
	body := func(key string) string {
		return fmt.Sprintf(`{"batch":[%s],"writeKey":%q}`, track, key)
	}
	for _, c := range []struct {
		name, header, body, want string
	}{
		{"basic", basic(w.server), track, `{"success":true}`},
		{"basic without a colon", "Basic " + base64.StdEncoding.EncodeToString([]byte(w.server)), track, `{"success":true}`},
		{"basic without padding", "basic " + base64.RawStdEncoding.EncodeToString([]byte(w.server+":x")), track, `{"success":true}`},
		{"bearer", "Bearer " + w.server, track, `{"success":true}`},
		{"in the batch", "", body(w.server), `{"success":true}`},
		{"in the event", "", fmt.Sprintf(`{"batch":[{"type":"track","userId":"u","event":"x","writeKey":%q}]}`, w.server), `{"success":true}`},
		{"in a call of its own", "", fmt.Sprintf(`{"type":"track","userId":"u","event":"x","writeKey":%q}`, w.server), `{"success":true}`},
		{"the header comes first", basic(w.server), body(w.server), `{"success":true}`},
		{"none", "", track, invalid},
		{"unknown", basic("wk_" + strings.Repeat("A", 43)), track, invalid},
		{"no write key", basic("svc_live_x"), track, invalid},
		{"of the right account, and wrong", basic(w.server[:len(w.server)-2] + "AA"), track, invalid},
		{"no base64", "Basic ***", track, invalid},
		{"another scheme", "Digest x", track, invalid},
		{"unknown in the body", "", body("wk_x"), invalid},
		{"of a disabled source", basic(w.disabled), track, off},
		{"of a disabled source, in the body", "", body(w.disabled), off},
		{"of an account that is deactivated", basic(w.dead), track, invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := w.ask("POST", "/v1/batch", []byte(c.body), "Authorization", c.header)
			status := 401
			if c.want == `{"success":true}` {
				status = 200
			}
			if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != status || !strings.HasPrefix(got, c.want) {
				t.Errorf("%d %s", ctx.Response.StatusCode(), got)
			}
		})
	}
	// A key of its own stands for its event alone, and for its account alone.
	w.node.events = nil
	ctx := w.ask("POST", "/v1/batch", fmt.Appendf(nil, `{"batch":[{"type":"alias","userId":"u","previousId":"p","writeKey":%q},{"type":"alias","userId":"u","previousId":"q"},{"type":"track","userId":"v","event":"x","writeKey":%q}]}`, w.browser, w.other),
		"Authorization", basic(w.server))
	if got := string(ctx.Response.Body()); len(w.node.events) != 1 || w.node.events[0] != "aliased external_id=u previous=q" ||
		!strings.Contains(got, `"rejected":[{"index":0,"messageId":null,"code":"not_allowed"`) || !strings.Contains(got, `{"index":2,"messageId":null,"code":"invalid_write_key"`) {
		t.Errorf("%q, %s", w.node.events, got)
	}
	// What came under a public key is not made more by another.
	w.node.events = nil
	ctx = w.ask("POST", "/v1/batch", fmt.Appendf(nil, `{"batch":[{"type":"alias","userId":"u","previousId":"p","writeKey":%q},{"type":"track","userId":"u","event":"x","writeKey":%q}]}`, w.server, w.server), "Authorization", basic(w.browser))
	if got := string(ctx.Response.Body()); len(w.node.events) != 1 || w.node.events[0] != "x external_id=u public" || !strings.Contains(got, `"rejected_count":1`) {
		t.Errorf("%q, %s", w.node.events, got)
	}
}

// TestBodies: how a body may come, and what is wrong with others.
func TestBodies(t *testing.T) {
	w := newWorld(t, nil)
	event := func(n int) string {
		return `{"type":"track","userId":"u","event":"x","properties":{"a":"` + strings.Repeat("x", n) + `"}}`
	}
	batch := func(event string, n int) string { return `{"batch":[` + strings.Repeat(event+",", n-1) + event + `]}` }
	for _, c := range []struct {
		name, key, body, contentType, coding string
		status                               int
		want                                 string
	}{
		{"any content type", w.server, track, "application/x-www-form-urlencoded", "", 200, `{"success":true}`},
		{"text", w.server, track, "text/plain", "", 200, `{"success":true}`},
		{"gzip", w.server, string(packed(track)), "", "gzip", 200, `{"success":true}`},
		{"gzip that does not say so", w.server, string(packed(track)), "application/json", "", 200, `{"success":true}`},
		{"JSON that says it is gzip", w.server, track, "", "gzip", 200, `{"success":true}`},
		{"broken gzip", w.server, string(packed(track)[:20]), "", "gzip", 400, "invalid_request"},
		{"zstd", w.server, "(\xb5/\xfd", "", "zstd", 400, "invalid_request"},
		{"no JSON", w.server, `{"batch":[`, "", "", 400, "invalid_json"},
		{"behind the JSON", w.server, track + "x", "", "", 400, "invalid_json"},
		{"nothing", w.server, "", "", "", 400, "invalid_json"},
		{"a number", w.server, "7", "", "", 400, "invalid_json"},
		{"no batch", w.server, `{"sentAt":"2025-01-01T00:00:00Z"}`, "", "", 400, "batch is missing"},
		{"a batch that is none", w.server, `{"batch":7}`, "", "", 400, "batch is missing"},
		{"an empty batch", w.server, `{"batch":[]}`, "", "", 200, `{"success":true}`},
		{"a list of events", w.server, `[` + track + `]`, "", "", 200, `{"success":true}`},
		{"an event of a browser", w.browser, event(31 << 10), "", "", 200, `{"success":true}`},
		{"a long event of a browser", w.browser, event(33 << 10), "", "", 200, `"code":"payload_too_large","message":"the event is longer than 32768 bytes`},
		{"a long batch of a browser", w.browser, batch(event(30<<10), 17), "", "", 400, "payload_too_large"},
		{"a long batch of a browser, packed", w.browser, string(packed(batch(event(30<<10), 17))), "", "", 400, "payload_too_large"},
		{"a batch of a server", w.server, batch(event(30<<10), 17), "", "", 200, `{"success":true}`},
		{"too many events of a browser", w.browser, batch(`{}`, 2501), "", "", 400, "payload_too_large"},
		{"too many events of a server", w.server, batch(`{}`, 10_001), "", "", 400, "payload_too_large"},
		{"a long body", w.server, batch(event(60<<10), 140), "", "", 400, "payload_too_large"},
		{"a bomb", w.server, string(packed(strings.Repeat(" ", 100<<20))), "", "", 400, "payload_too_large"},
		{"deep", w.server, strings.Repeat("[", 1<<20), "", "", 400, "invalid_json"},
		{"context that is bad", w.server, `{"batch":[` + track + `],"context":{"a":1,"a":2}}`, "", "", 400, "context.a occurs twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := w.ask("POST", "/v1/batch", []byte(c.body), "Authorization", basic(c.key), "Content-Type", c.contentType, "Content-Encoding", c.coding)
			if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != c.status || !strings.Contains(got, c.want) || !json.Valid([]byte(got)) {
				t.Errorf("%d %.300s", ctx.Response.StatusCode(), got)
			}
			// The same, where the key is found in the body alone, is bounded alike.
			if rest, is := strings.CutPrefix(c.body, `{"batch"`); is {
				ctx := w.ask("POST", "/v1/batch", []byte(fmt.Sprintf(`{"writeKey":%q,"batch"`, c.key)+rest))
				if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != c.status || !strings.Contains(got, c.want) {
					t.Errorf("with the key in the body: %d %.300s", ctx.Response.StatusCode(), got)
				}
			}
		})
	}
}

// TestOneBadEvent fails alone: it is named in the answer, counted and shown; the others are
// recorded.
func TestOneBadEvent(t *testing.T) {
	w := newWorld(t, nil)
	body := `{"batch":[{"type":"track","userId":"u","event":"Item Viewed","messageId":"m0"},{"type":"track","userId":"refused","event":"x","messageId":"m1"},{"type":"fly","userId":"u","messageId":"m2"},{"type":"track","userId":"u","event":"Item Viewed","messageId":"m3"}]}`
	ctx := w.ask("POST", "/v1/batch", []byte(body), "Authorization", basic(w.server))
	want := `{"success":true,"rejected_count":2,"rejected":[{"index":1,"messageId":"m1","code":"event_refused","message":"not this one"},` +
		`{"index":2,"messageId":"m2","code":"invalid_event","message":"type must be track, identify, page, screen, group or alias, not \"fly\""}]}`
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 200 || got != want {
		t.Errorf("%d %s\nwant %s", ctx.Response.StatusCode(), got, want)
	}
	if len(w.node.events) != 3 || len(w.node.shown) != 2 || !strings.HasPrefix(w.node.shown[0], ` {"type":"fly"`) || !strings.HasSuffix(w.node.shown[1], "— not this one") || !strings.HasPrefix(w.node.shown[1], `track {"type":"track","userId":"refused"`) {
		t.Errorf("recorded %q\nshown %q", w.node.events, w.node.shown)
	}
	for name, n := range map[string]uint64{
		`muster_tracking_events_total{source_kind="server",call="track",result="accepted"}`:  2,
		`muster_tracking_events_total{source_kind="server",call="track",result="refused"}`:   1,
		`muster_tracking_events_total{source_kind="server",call="unknown",result="refused"}`: 1,
		`muster_tracking_requests_total{status="200"}`:                                       1,
	} {
		if got := w.set.GetOrCreateCounter(name).Get(); got != n {
			t.Errorf("%s is %d, want %d", name, got, n)
		}
	}
	// The catalog gets the name of the type once.
	w.ask("POST", "/v1/batch", []byte(body), "Authorization", basic(w.server))
	if len(w.node.names) != 2 || w.node.names[0] != (eventtypes.Name{Key: "item_viewed", Name: "Item Viewed"}) {
		t.Errorf("%+v", w.node.names)
	}
}

// TestUsesOfKeys are shown at once and recorded at the end.
func TestUsesOfKeys(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/v1/track", []byte(track), "Authorization", basic(w.server))
	w.ask("POST", "/v1/track", []byte(track), "Authorization", basic(w.disabled))
	if w.h.LastUsed(7, "src_0", "wky_1") != received || w.h.LastUsed(7, "src_2", "wky_1") != 0 {
		t.Error("the use of a key is not shown")
	}
	w.h.flush()
	if len(w.node.uses) != 1 || w.node.uses[0] != (sources.Use{Account: 7, SourceID: "src_0", KeyID: "wky_1", AtMs: received}) || w.h.LastUsed(7, "src_0", "wky_1") != 0 {
		t.Errorf("%+v", w.node.uses)
	}
}

// TestFaultsOfTheService are answered so that SDKs try again.
func TestFaultsOfTheService(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.RetryAfter = 2500 * time.Millisecond })
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{fmt.Errorf("x: %w", eventlog.ErrQueueFull), 503, codeOverloaded},
		{resolver.ErrOverloaded, 503, codeOverloaded},
		{resolver.ErrNotOwner, 503, codeUnavailable},
		{eventlog.ErrNoSpace, 503, codeUnavailable},
		{context.DeadlineExceeded, 503, codeUnavailable},
		{fmt.Errorf("something"), 503, codeUnavailable},
		{eventlog.ErrTooLarge, 400, codeTooLarge},
	} {
		w.node.err = c.err
		ctx := w.ask("POST", "/v1/track", []byte(track), "Authorization", basic(w.server))
		retry := ""
		if c.status == 503 {
			retry = "3"
		}
		if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != c.status || !strings.Contains(got, c.code) || string(ctx.Response.Header.Peek("Retry-After")) != retry {
			t.Errorf("%v: %d %s, Retry-After %q", c.err, ctx.Response.StatusCode(), got, ctx.Response.Header.Peek("Retry-After"))
		}
	}
	for _, bad := range []func(*Options){
		func(o *Options) { o.RetryAfter = time.Hour }, func(o *Options) { o.Node = nil }, func(o *Options) { o.Memory = nil }, func(o *Options) { o.Now = nil }, func(o *Options) { o.BodyBytes = 1 }, func(o *Options) { o.Limits.Depth = 1 },
	} {
		o := w.h.opts
		bad(&o)
		if _, err := New(o); err == nil {
			t.Errorf("options %+v are taken", o)
		}
	}
}

// TestMemory (Q1): a request that finds no memory is answered to come again.
func TestMemory(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Memory = ingest.NewMemory(4 << 10) })
	ctx := w.ask("POST", "/v1/track", []byte(`{"userId":"u","event":"x","properties":{"a":"`+strings.Repeat("x", 8<<10)+`"}}`), "Authorization", basic(w.server))
	if ctx.Response.StatusCode() != 503 || string(ctx.Response.Header.Peek("Retry-After")) != "1" || len(w.node.events) != 0 {
		t.Errorf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
	if n := w.h.counters.turnedAway.Get(); n != 1 {
		t.Errorf("one request is counted as %d that were turned away", n)
	}
}

// TestBrowsers: pages may send with a browser's key from the origins of its source.
func TestBrowsers(t *testing.T) {
	w := newWorld(t, nil)
	ctx := w.ask("OPTIONS", "/v1/t", nil, "Origin", "https://shop.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-retry-count")
	for name, want := range map[string]string{"Access-Control-Allow-Origin": "https://shop.example", "Access-Control-Max-Age": "86400", "Access-Control-Allow-Headers": allowedHeaders, "Vary": "Origin"} {
		if got := string(ctx.Response.Header.Peek(name)); got != want || ctx.Response.StatusCode() != 204 {
			t.Errorf("%d, %s is %q", ctx.Response.StatusCode(), name, got)
		}
	}
	for _, c := range []struct {
		name, key, origin string
		status            int
	}{
		{"its page", w.browser, "https://shop.example", 200},
		{"an app, which has no origin", w.browser, "", 200},
		{"another page", w.browser, "https://evil.example", 403},
		{"a file", w.browser, "null", 403},
		{"a server", w.server, "", 200},
	} {
		for _, inBody := range []bool{false, true} {
			w.node.events = nil
			body, auth := track, basic(c.key)
			if inBody {
				body, auth = fmt.Sprintf(`{"type":"track","userId":"u","event":"x","writeKey":%q}`, c.key), ""
			}
			ctx := w.ask("POST", "/v1/t", []byte(body), "Authorization", auth, "Origin", c.origin)
			if got := string(ctx.Response.Header.Peek("Access-Control-Allow-Origin")); ctx.Response.StatusCode() != c.status || got != c.origin || (len(w.node.events) == 1) != (c.status == 200) {
				t.Errorf("%s: %d, allowed %q, %q", c.name, ctx.Response.StatusCode(), got, w.node.events)
			}
		}
	}

	settings := func(key, origin string) *fasthttp.RequestCtx {
		return w.ask("GET", "/v1/projects/"+key+"/settings", nil, "Origin", origin, "X-Forwarded-Proto", "https")
	}
	ctx = settings(w.browser, "https://shop.example")
	var answer struct {
		Integrations map[string]struct{ APIKey, APIHost, Protocol string }
	}
	if err := json.Unmarshal(ctx.Response.Body(), &answer); err != nil || ctx.Response.StatusCode() != 200 || string(ctx.Response.Header.Peek("Access-Control-Allow-Origin")) != "https://shop.example" {
		t.Fatalf("%d %s, %v", ctx.Response.StatusCode(), ctx.Response.Body(), err)
	}
	if s := answer.Integrations["Segment.io"]; s.APIKey != w.browser || s.APIHost != "muster.example/v1" || s.Protocol != "https" {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		key, origin string
		status      int
	}{{w.browser, "https://evil.example", 403}, {"wk_x", "", 401}, {w.disabled, "", 401}} {
		if ctx := settings(c.key, c.origin); ctx.Response.StatusCode() != c.status {
			t.Errorf("settings of %q for %q: %d", c.key, c.origin, ctx.Response.StatusCode())
		}
	}
	if ctx := w.ask("POST", "/v1/projects/"+w.browser+"/settings", nil); ctx.Response.StatusCode() != 405 {
		t.Errorf("POST of settings: %d", ctx.Response.StatusCode())
	}
	if ctx := w.ask("OPTIONS", "/v1/projects/x/settings", nil, "Origin", "https://a.example"); ctx.Response.StatusCode() != 204 {
		t.Errorf("OPTIONS of settings: %d", ctx.Response.StatusCode())
	}
}

// TestLocate: which account a request is of, wherever its key stands, and the body is there
// for later readers.
func TestLocate(t *testing.T) {
	w := newWorld(t, nil)
	memory := ingest.NewMemory(1 << 20)
	for _, c := range []struct {
		name, method, path, auth string
		body                     []byte
		account                  uint64
	}{
		{"in the header", "POST", "/v1/t", basic(w.server), nil, 7},
		{"in the path", "GET", "/v1/projects/" + w.other + "/settings", "", nil, 9},
		{"in the body", "POST", "/v1/batch", "", []byte(`{"batch":[],"writeKey":"` + w.other + `"}`), 9},
		{"in a packed body", "POST", "/v1/batch", "", packed(`{"batch":[],"writeKey":"` + w.other + `"}`), 9},
		{"in the first event", "POST", "/v1/batch", "", []byte(`{"batch":[{"writeKey":"` + w.other + `"}]}`), 9},
		{"PostHog's", "POST", "/batch/", "", []byte(`{"api_key":"` + w.other + `","batch":[]}`), 9},
		{"PostHog's among the properties", "POST", "/e/", "", []byte(`[{"event":"x","properties":{"token":"` + w.other + `"}}]`), 9},
		{"nowhere", "POST", "/v1/batch", "", []byte(`{"batch":[]}`), 0},
		{"no JSON", "POST", "/v1/batch", "", []byte(`{"writeKey":"` + w.other + `"`), 0},
		{"a question of a browser", "OPTIONS", "/v1/t", "", nil, 0},
	} {
		ctx := new(fasthttp.RequestCtx)
		var req fasthttp.Request
		req.Header.SetMethod(c.method)
		req.SetRequestURI("http://x" + c.path)
		req.Header.Set("Authorization", c.auth)
		ctx.Init(&req, nil, nil)
		if c.body != nil {
			ctx.Request.SetBodyStream(bytes.NewReader(c.body), len(c.body))
		}
		account, ok := Locate(ctx, memory, 1<<20)
		if account != c.account || ok != (c.account != 0) {
			t.Errorf("%s: account %d, %v", c.name, account, ok)
		}
		if body, err := ingest.ReceiveBody(ctx, memory, 1<<20); err != nil || !bytes.Equal(body, c.body) {
			t.Errorf("%s: the body is %q afterwards, %v", c.name, body, err)
		}
	}
}

// TestKeys: a write key has the number of its account and 192 random bits.
func TestKeys(t *testing.T) {
	key, err := NewKey(bytes.NewReader(bytes.Repeat([]byte{0xff}, 100)), 0x0102030405060708)
	if err != nil || key != "wk_AQIDBAUGBwj_______________________________8"[:len(key)] && len(key) != 46 {
		t.Errorf("%q, %v", key, err)
	}
	if account, ok := ParseKey(key); !ok || account != 0x0102030405060708 {
		t.Errorf("account %x, %v", account, ok)
	}
	if b, err := base64.RawURLEncoding.DecodeString(key[3:]); err != nil || len(b) != 32 || binary.BigEndian.Uint64(b) != 0x0102030405060708 {
		t.Errorf("%x, %v", b, err)
	}
	for _, bad := range []string{"", "wk_", key[:45], key + "A", "sk_" + key[3:], key[:45] + "*"} {
		if _, ok := ParseKey(bad); ok {
			t.Errorf("%q is a key", bad)
		}
	}
	if _, err := NewKey(bytes.NewReader(nil), 1); err == nil {
		t.Error("no randomness is enough")
	}
}
