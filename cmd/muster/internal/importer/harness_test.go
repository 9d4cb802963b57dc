package importer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

func TestMain(m *testing.M) { servertest.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rowsHistory keeps what the rows of history say: type, time and properties.
type rowsHistory struct {
	query.History
	mu       sync.Mutex
	position int64
	rows     []string
}

func (h *rowsHistory) Position(context.Context, int) (int64, error) { return h.position, nil }

func (h *rowsHistory) Append(_ context.Context, b *query.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range b.Rows() {
		if b.Offset[i] >= h.position {
			h.rows = append(h.rows, string(b.EventType.At(i))+" "+time.UnixMilli(b.TimeMs[i]).UTC().Format(time.RFC3339)+" "+string(b.Properties.At(i)))
		}
	}
	h.position = max(h.position, b.To)
	return nil
}

var now = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a node with an account, in this process or behind a server.
type world struct {
	t       *testing.T
	node    *node.Node
	history *rowsHistory
	creds   api.Credentials
	account uint64
	client  *http.Client
	// broken, when set, may answer a request in the server's place; the server's
	// own answer is thrown away when it returns true behind it.
	broken func(before bool, ctx *fasthttp.RequestCtx) bool
}

func newWorld(t *testing.T, options ingest.Options) *world {
	t.Helper()
	w := &world{t: t, history: &rowsHistory{}}
	clock := func() time.Time { return now }
	w.node = servertest.Node(t, 1, node.Options{History: w.history, Now: clock, Feed: node.FeedOptions{Delay: time.Millisecond}})
	var err error
	w.creds, err = api.NewCredentials(rand.Reader, "http://muster.test")
	ok(t, err)
	ok(t, w.creds.Bootstrap(t.Context(), w.node, rand.Reader))
	w.account = w.node.Accounts()[0]

	options.Now, options.Rand = clock, rand.Reader
	h, err := ingest.New(w.node, w.node, options)
	ok(t, err)
	w.client = servertest.Client(t, ingest.NewServer(options, func(ctx *fasthttp.RequestCtx) {
		if w.broken != nil && w.broken(true, ctx) {
			return
		}
		h.Import(ctx)
		if w.broken != nil && w.broken(false, ctx) {
			ctx.Response.Reset()
			ctx.SetStatusCode(503)
		}
	}))
	return w
}

// targets are the two ways into the account.
func (w *world) target(kind string) Target {
	if kind == "server" {
		return ToServer(Server{Client: w.client, URL: w.creds.BaseURL, AppID: w.creds.AppID, AppSecret: w.creds.AppSecret})
	}
	n, err := ToNode(w.node, w.account, false, func() time.Time { return now }, rand.Reader)
	ok(w.t, err)
	return n
}

// settings changes the account's settings.
func (w *world) settings(change func(*resolver.Settings)) {
	w.t.Helper()
	var s resolver.Settings
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error { s = v.Settings(); return nil }))
	change(&s)
	args, err := json.Marshal(s)
	ok(w.t, err)
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: w.account, StampMs: now.UnixMilli()}
	_, err = rand.Read(env.ID[:])
	ok(w.t, err)
	var out resolver.Outcome
	ok(w.t, w.node.Submit(w.t.Context(), w.account, eventlog.AppendCommand(env.Append(nil), resolver.CommandSettingsSet, args), &out))
	if out.Refusal != nil {
		w.t.Fatal(out.Refusal)
	}
}

// stored waits for history and returns its rows.
func (w *world) stored() []string {
	w.t.Helper()
	var cut query.Cut
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error { cut = v.Cut(); return nil }))
	ok(w.t, w.node.WaitHistory(w.t.Context(), cut))
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return append([]string{}, w.history.rows...)
}

// source opens a file with the content, under the name.
func source(t *testing.T, name, content string) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	ok(t, os.WriteFile(path, []byte(content), 0o600))
	s, err := Open(t.Context(), path, nil, t.TempDir())
	ok(t, err)
	t.Cleanup(s.Close)
	return s
}

// rowsOf reads all rows of a text.
func rowsOf(t *testing.T, f Format, text string) ([]row, error) {
	t.Helper()
	return rowsWith(t, f, text, CSVOptions{})
}

// rowsWith reads a file as Run does, after a look at its columns.
func rowsWith(t *testing.T, f Format, text string, o CSVOptions) ([]row, error) {
	t.Helper()
	if f == CSV {
		var err error
		if o.found, err = kindsOf(strings.NewReader(strings.TrimPrefix(text, "\xef\xbb\xbf")), o); err != nil {
			return nil, err
		}
	}
	r, err := newRowReader(f, strings.NewReader(text), o)
	if err != nil {
		return nil, err
	}
	var out []row
	for {
		var x row
		if err := r.next(&x); err == io.EOF {
			return out, nil
		} else if err != nil {
			return out, err
		}
		x.json = bytes.Clone(x.json)
		out = append(out, x)
	}
}
