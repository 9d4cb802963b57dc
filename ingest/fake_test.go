package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// The state machine is what stands behind both.
var (
	_ Submitter = (*node.Node)(nil)
	_ Apps      = (*node.Node)(nil)
)

const testSecret = "sk_live_test"

// testNow is the present in tests: 2024-06-01T12:00:00Z.
var testNow = time.UnixMilli(1717243200000).UTC()

// fakeApps knows a few accounts, all with the same secret.
type fakeApps map[string]resolver.App

func (a fakeApps) App(id []byte) (resolver.App, bool) {
	app, ok := a[string(id)]
	return app, ok
}

func testApps() fakeApps {
	hash := sha256.Sum256([]byte(testSecret))
	apps := fakeApps{}
	for i, id := range []string{"app_1", "app_busy", "app_full", "app_slow", "app_failed", "app_refused"} {
		apps[id] = resolver.App{Account: uint64(i + 1), SecretHash: hash, Active: true}
	}
	apps["app_inactive"] = resolver.App{Account: 99, SecretHash: hash}
	return apps
}

// fakeNode decodes records and answers them in the simplest way that has
// profiles, duplicates and refusals.
type fakeNode struct {
	mu       sync.Mutex
	profiles map[string]resolver.ProfileID
	keys     map[string]resolver.ProfileID
	nextRow  uint64
	records  []string // what was stored, in readable form
	stored   int      // events
	discard  bool     // keep no records
	hold     chan struct{}
	holding  chan struct{}
}

func newFakeNode() *fakeNode {
	return &fakeNode{profiles: map[string]resolver.ProfileID{}, keys: map[string]resolver.ProfileID{}}
}

func (n *fakeNode) Submit(ctx context.Context, account uint64, rec []byte, out *resolver.Outcome) error {
	switch account {
	case 2:
		return fmt.Errorf("apply queue: %w", resolver.ErrOverloaded)
	case 3:
		return fmt.Errorf("append: %w", eventlog.ErrQueueFull)
	case 4:
		<-ctx.Done()
		return ctx.Err()
	case 5:
		return fmt.Errorf("append: %w", eventlog.ErrFailed)
	}
	if n.hold != nil {
		n.holding <- struct{}{}
		<-n.hold
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	env, body, err := eventlog.DecodeEnvelope(rec)
	if err != nil {
		return err
	}
	if env.Account != account || env.StampMs != testNow.UnixMilli() || env.ID == (eventlog.RecordID{}) {
		return fmt.Errorf("bad envelope %+v", env)
	}
	var dump strings.Builder
	if env.Kind == eventlog.KindImport {
		var head eventlog.ImportHead
		if head, body, err = eventlog.DecodeImportHead(body); err != nil {
			return err
		}
		fmt.Fprintf(&dump, "import file=%x… rows=[%d,%d) flows=%v\n", head.File[:2], head.FirstRow, head.FirstRow+uint64(head.Rows), head.TriggerFlows)
		again := head.FirstRow < n.nextRow
		n.nextRow = max(n.nextRow, head.FirstRow+uint64(head.Rows))
		out.NextRow = n.nextRow
		if again {
			r, err := eventlog.NewEventsReader(body)
			out.Events = slices.Repeat([]resolver.EventOutcome{{Status: resolver.EventDuplicate}}, r.Len())
			return err
		}
	} else if env.Kind != eventlog.KindEvents {
		return fmt.Errorf("bad kind %d", env.Kind)
	}
	r, err := eventlog.NewEventsReader(body)
	if err != nil {
		return err
	}
	if account == 6 {
		out.Refusal = &resolver.Refusal{Code: "invalid", Message: "the whole record was refused"}
		return nil
	}
	out.Events = out.Events[:0]
	var e eventlog.Event
	for r.Next(&e) {
		out.Events = append(out.Events, n.apply(&e))
		if !n.discard {
			dumpEvent(&dump, &e)
		}
	}
	if !n.discard {
		n.records = append(n.records, dump.String())
	}
	return r.Err()
}

func (n *fakeNode) apply(e *eventlog.Event) resolver.EventOutcome {
	if first, ok := n.keys[string(e.IdempotencyKey)]; ok {
		return resolver.EventOutcome{Status: resolver.EventDuplicate, Profile: first}
	}
	if string(e.ExternalID) == "guest" {
		return resolver.EventOutcome{Status: resolver.EventRefused, Refusal: &resolver.Refusal{
			Code: "invalid", Field: "user.external_id", Message: `user.external_id "guest" identifies nobody`}}
	}
	who := string(bytes.Join([][]byte{e.Email, e.ExternalID, e.Phone}, []byte{0}))
	id, ok := n.profiles[who]
	if !ok {
		binary.BigEndian.PutUint64(id[8:], uint64(len(n.profiles)+1))
		n.profiles[who] = id
	}
	if len(e.IdempotencyKey) > 0 {
		n.keys[string(e.IdempotencyKey)] = id
	}
	n.stored++
	return resolver.EventOutcome{Status: resolver.EventAccepted, Profile: id}
}

// dumpEvent writes one line of the fields that are present.
func dumpEvent(w io.Writer, e *eventlog.Event) {
	fmt.Fprintf(w, "%s", e.Type)
	for _, f := range []struct {
		name string
		text []byte
	}{
		{"email", e.Email}, {"external_id", e.ExternalID}, {"phone", e.Phone}, {"first", e.FirstName}, {"last", e.LastName}, {"key", e.IdempotencyKey},
	} {
		if len(f.text) > 0 {
			fmt.Fprintf(w, " %s=%q", f.name, f.text)
		}
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{"geo", e.Geo}, {"attributes", e.Attributes}, {"properties", e.Properties}} {
		if len(f.text) > 0 {
			fmt.Fprintf(w, " %s=%s", f.name, f.text)
		}
	}
	if e.HasTime {
		fmt.Fprintf(w, " time=%s", time.UnixMilli(e.TimeMs).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	fmt.Fprintln(w)
}

// testOptions have a fixed clock and repeatable ids.
func testOptions() Options {
	return Options{
		Now:     func() time.Time { return testNow },
		Rand:    rand.NewChaCha8([32]byte{1}),
		Timeout: 50 * time.Millisecond,
		Metrics: metrics.NewSet(),
	}
}

func route(h *Handler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/api/v1/events":
			h.Event(ctx)
		case "/api/v1/events/batch":
			h.Batch(ctx)
		case "/api/v1/events/import":
			h.Import(ctx)
		default:
			ctx.Error("elsewhere", 404)
		}
	}
}

// serve starts a server in memory.
func serve(t testing.TB, node Submitter, opts Options) (*fasthttp.Client, *Handler) {
	t.Helper()
	h, err := New(node, testApps(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ln := fasthttputil.NewInmemoryListener()
	servertest.Serve(t, NewServer(opts, route(h)), ln)
	client := &fasthttp.Client{Dial: func(string) (net.Conn, error) { return ln.Dial() }}
	t.Cleanup(client.CloseIdleConnections) // before the server ends: it waits for connections
	return client, h
}
