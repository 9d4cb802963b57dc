package peer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/tlspair"
)

func TestMain(m *testing.M) { servertest.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// table is a [Table] that a test writes.
type table struct {
	// pair is the nodes' certificate, tls how they call each other; nil: plain HTTP.
	pair *tlspair.Pair
	tls  func(host string) *tls.Config

	mu       sync.Mutex
	owners   map[int]cluster.Node
	gone     map[string]bool // ids
	all      []cluster.Node
	changed  chan struct{}
	refreshs int
}

func newTable() *table {
	return &table{owners: map[int]cluster.Node{}, gone: map[string]bool{}, changed: make(chan struct{})}
}

func (x *table) set(partition int, n cluster.Node) {
	x.change(func() { x.owners[partition] = n })
}

func (x *table) change(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
	close(x.changed)
	x.changed = make(chan struct{})
}

func (x *table) Owner(partition int) (cluster.Node, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, ok := x.owners[partition]
	return n, ok
}

func (x *table) Nodes() (out []cluster.Node) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.all {
		if !x.gone[n.ID] {
			out = append(out, n)
		}
	}
	return out
}

func (x *table) Changed() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.changed
}

func (x *table) Refresh() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refreshs++
}

// state is a [Node] that a test writes.
type state struct {
	mu      sync.Mutex
	owns    map[int]bool
	looks   map[int]int // by partition, how often it was asked for
	changed chan struct{}
	submit  func(partition int, record []byte) ([]byte, error)
}

func (s *state) Partitions() int { return 3 }

func (s *state) Owns(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks[partition]++
	return s.owns[partition]
}

// tried waits until a request has looked for a partition's owner in vain at least once
// since the given number of looks, and looks again.
func (s *state) tried(t *testing.T, partition, since int) {
	t.Helper()
	eventually.Holds(t, "an owner was looked for in vain", func() bool { return s.looked(partition) >= since+3 })
}

// looked is how often a partition was asked for.
func (s *state) looked(partition int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks[partition]
}

func (s *state) own(partition int, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owns[partition] = is
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *state) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *state) SubmitCommand(_ context.Context, partition int, record []byte) ([]byte, error) {
	return s.submit(partition, record)
}

// member is a node with a server of its own.
type member struct {
	cluster.Node
	t      *testing.T
	peers  *Peers
	state  *state
	memory *ingest.Memory
	server *Server
	router *Router
	http   *ingest.Server
	after  func(rc *fasthttp.RequestCtx) // behind a client's request, if set
	tls    bool
	// handle answers what is the node's.
	handle fasthttp.RequestHandler
	answer Answer
}

const secret = "a secret of the tests"

// testPartition is in a header of the tests' requests.
const testPartition = "X-Partition"

func newMember(t *testing.T, x *table, id, secretText string, wait time.Duration) *member {
	t.Helper()
	ln := servertest.Listen(t)
	m := &member{Node: cluster.Node{ID: id, Address: ln.Addr().String()}, t: t, memory: ingest.NewMemory(64 << 20), tls: x.pair != nil}
	m.state = &state{owns: map[int]bool{}, looks: map[int]int{}, changed: make(chan struct{}), submit: func(int, []byte) ([]byte, error) { return nil, nil }}
	m.handle = func(rc *fasthttp.RequestCtx) { fmt.Fprintf(rc, "%s here", id) }
	s, err := NewSecret(secretText)
	ok(t, err)
	m.peers, err = New(Options{TLS: x.tls, Secret: s, Table: x, Self: id, Memory: m.memory, BodyBytes: 4 << 20, Wait: wait, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ok(t, err)
	m.peers.Start(m.state)
	m.server = NewServer(m.peers, func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(404) })
	m.router = NewRouter(m.peers, RouterOptions{
		Partition: func(rc *fasthttp.RequestCtx) (int, bool) {
			rc.Request.Header.Cookie("session") // where accounts are looked for, too
			h := rc.Request.Header.Peek(testPartition)
			if len(h) == 0 {
				return 0, false
			}
			return int(h[0] - '0'), true
		},
		Handler: func(rc *fasthttp.RequestCtx) { m.handle(rc) },
		Refuse: func(rc *fasthttp.RequestCtx, status int, text string) {
			rc.SetStatusCode(status)
			rc.SetBodyString("refused: " + text)
		},
	})
	m.server.Open(m.router, func(ctx context.Context, name string, partitions []int, args []byte) (any, error) {
		return m.answer(ctx, name, partitions, args)
	})
	m.http = ingest.NewServer(ingest.Options{BodyBytes: 4 << 20, ServerOptions: ingest.ServerOptions{Internal: Is, HeaderRoom: HeadRoom}}, func(rc *fasthttp.RequestCtx) {
		if Is(rc) {
			m.server.Handle(rc)
			return
		}
		m.router.Handle(rc)
		if m.after != nil {
			m.after(rc)
		}
	})
	served := make(chan error, 1)
	if x.pair != nil {
		ln = tls.NewListener(ln, x.pair.Server())
	}
	go func() { served <- m.http.Serve(ln) }()
	x.change(func() { x.all = append(x.all, m.Node) })
	// Not servertest.Serve, which waits for all connections: other nodes may keep theirs open
	// until they end themselves, so that a stop has a time.
	t.Cleanup(func() {
		m.peers.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		m.http.ShutdownWithContext(ctx)
		<-served
	})
	return m
}

// two are a node that owns nothing, and one that owns partition 1.
func two(t *testing.T, wait time.Duration) (x *table, router, owner *member) {
	t.Helper()
	x = newTable()
	router, owner = newMember(t, x, "router", secret, wait), newMember(t, x, "owner", secret, wait)
	owner.state.own(1, true)
	x.set(1, owner.Node)
	return x, router, owner
}

// send makes a request of partition 1 through a node.
func (m *member) send(method, path string, body []byte, headers ...string) (*http.Response, string) {
	m.t.Helper()
	scheme := "http://"
	if m.tls {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(m.t.Context(), method, scheme+m.Address+path, bytes.NewReader(body))
	ok(m.t, err)
	req.Header.Set(testPartition, "1")
	req.Host = "example.com"
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	ok(m.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(m.t, err)
	return res, string(b)
}
