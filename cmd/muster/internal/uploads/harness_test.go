package uploads

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/view"
)

func TestMain(m *testing.M) { servertest.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noHistory takes rows and keeps none.
type noHistory struct {
	query.History
	mu       sync.Mutex
	position int64
}

func (h *noHistory) Position(context.Context, int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position, nil
}

func (h *noHistory) Append(_ context.Context, b *query.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.position = max(h.position, b.To)
	return nil
}

func (h *noHistory) Erase(context.Context, query.EraseQuery) error { return nil }

// world is a node with an account, and uploads in a directory.
type world struct {
	t       *testing.T
	node    *node.Node
	account uint64
	dir     string
	clock   *servertest.Clock
	// elsewhere says that another node owns the account.
	elsewhere atomic.Bool
	log       bytes.Buffer // of the uploads; to be read after a Close
	*Uploads
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), clock: servertest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	w.node = servertest.Node(t, 1, node.Options{History: &noHistory{}, Now: w.clock.Now, Feed: node.FeedOptions{Delay: time.Millisecond}})
	creds, err := api.NewCredentials(rand.Reader, "http://muster.test")
	ok(t, err)
	ok(t, creds.Bootstrap(t.Context(), w.node, rand.Reader))
	w.account = w.node.Accounts()[0]
	w.open(16 << 20)
	t.Cleanup(func() { w.Close() })
	return w
}

// open opens the uploads, again after a Close.
func (w *world) open(limit int64) {
	w.t.Helper()
	var err error
	w.Uploads, err = Open(Options{Dir: w.dir, Node: w.node, Now: w.clock.Now, Rand: rand.Reader, Bytes: limit,
		OwnedElsewhere: func(int) bool { return w.elsewhere.Load() }, Logger: slog.New(slog.NewTextHandler(&w.log, nil))})
	ok(w.t, err)
}

func (w *world) read(fn func(v *resolver.View)) {
	w.t.Helper()
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error { fn(v); return nil }))
}

// profile is the profile with an e-mail.
func (w *world) profile(email string) (p *view.Profile) {
	w.t.Helper()
	w.read(func(v *resolver.View) {
		o, found := v.Profiles().Find(resolver.IdentityEmail, email)
		if !found {
			w.t.Fatalf("no profile has the e-mail %s", email)
		}
		var err error
		p, err = v.Profiles().Get(o)
		ok(w.t, err)
	})
	return p
}

func (w *world) upload(kind, text string) api.Import {
	w.t.Helper()
	x, err := w.Create(w.account, api.ImportFile{Name: kind + ".csv", Kind: kind, Text: text})
	ok(w.t, err)
	return x
}

func (w *world) begin(id string, p api.ImportPlan) {
	w.t.Helper()
	_, err := w.Start(w.t.Context(), w.account, id, p)
	ok(w.t, err)
}

// until waits until an import is as wanted.
func (w *world) until(id string, wanted func(api.Import) bool) (x api.Import) {
	w.t.Helper()
	eventually.Succeeds(w.t, func() (err error) {
		x, err = w.Get(w.account, id)
		ok(w.t, err)
		if !wanted(x) {
			return fmt.Errorf("the import is %+v", x)
		}
		return nil
	})
	return x
}

func hasEnded(x api.Import) bool { return x.EndedAt != nil }

func text(s string) *string { return &s }
