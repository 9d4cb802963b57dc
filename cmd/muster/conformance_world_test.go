package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
)

// obj is a JSON object.
type obj = map[string]any

// world is what all rules share.
type world struct {
	server *server
	dir    string
	trust  func(*exec.Cmd) // has a server trust the certificate of remote
	relay  *postbox
	remote *remote
	admin  string // token of the system's administrator
	client *http.Client
	names  atomic.Int64
}

// newWorld starts the server and what stands around it.
func newWorld(t *testing.T, args []string) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), relay: newPostbox(t), remote: newRemote(t), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	t.Cleanup(w.client.CloseIdleConnections)
	// Push services are reached over TLS, with the certificate of this file.
	roots := filepath.Join(w.dir, "roots.pem")
	ok(t, os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.remote.secure.Certificate().Raw}), 0o600))
	w.trust = func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+roots) }
	var others []*server
	args = append(args, "--smtp", w.relay.addr, "--smtp-tls", "none", "--allow-private-webhooks")
	if slices.Contains(args, "--cluster-secret") {
		// Two nodes more, each with a part of the companies. Whoever makes the
		// first one writes its credentials where serve looks for them.
		credentials, addr := filepath.Join(w.dir, "credentials.json"), freeAddr(t)
		args = append(args, "--public-url", "http://"+addr, "--credentials", credentials)
		for range 2 {
			others = append(others, launchWith(t, t.TempDir(), w.trust, args...))
			others[len(others)-1].untilReady()
		}
		args = append(args, "--listen", addr)
	}
	w.server = serveWith(t, w.dir, w.trust, args...)
	w.server.creds.SetOrigin(w.server.origin)
	for _, node := range others {
		// A partition that moves takes along neither the rate of a key nor who
		// listens; that is not what is looked at here.
		node.untilMetric("muster_cluster_partitions_assigned 1", "muster_cluster_partitions_loading 0")
	}
	w.admin = w.signIn(t, w.server.creds.ConsoleEmail, w.server.creds.ConsolePassword)
	return w
}

// freeAddr is an address without a listener. Its port is none of those that the
// system gives to processes asking for any, which could get it before it is used.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 1000 {
		ln, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (w *world) signIn(t *testing.T, email, password string) string {
	t.Helper()
	return w.do(t, "POST", api.Prefix+"/session", obj{"email": email, "password": password}).http(200).str("data.token")
}

// do makes a request; headers are pairs. body is a text as it is, or a value for
// JSON, or nil.
func (w *world) do(t *testing.T, method, path string, body any, headers ...string) *answer {
	t.Helper()
	text, isText := body.(string)
	if !isText && body != nil {
		b, err := json.Marshal(body)
		ok(t, err)
		text = string(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, w.server.origin+path, strings.NewReader(text))
	ok(t, err)
	if text != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := w.client.Do(req)
	ok(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	ok(t, err)
	a := &answer{t: t, what: fmt.Sprintf("%s %s %.200s", method, path, text), status: res.StatusCode, header: res.Header, raw: raw}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&a.body) != nil {
		a.body = nil
	}
	return a
}

// name is a text that occurs nowhere else.
func (w *world) name(about string) string { return fmt.Sprintf("%s%d", about, w.names.Add(1)) }

func (w *world) mail(about string) string { return w.name(about) + "@people.example" }

// company is a company made for a part, with API access.
type company struct {
	id, account, app, secret string
	email, password          string

	mu    sync.Mutex
	token string
	key   string
	uses  int
}

// perKey is how many requests a key makes before another takes its place: less
// than the limit of a minute.
const perKey = 100

func (w *world) asAdmin(t *testing.T, method, path string, body any) *answer {
	t.Helper()
	return w.do(t, method, api.Prefix+path, body, "Authorization", "Bearer "+w.admin)
}

func (w *world) company(t *testing.T) *company {
	t.Helper()
	return w.companyOf(t, obj{"name": w.name("company"), "email": w.mail("owner")})
}

// companyOf makes a company of these fields.
func (w *world) companyOf(t *testing.T, fields obj) *company {
	t.Helper()
	made := w.asAdmin(t, "POST", "/companies", fields).http(200)
	c := &company{
		id: made.str("data._id"), account: made.str("data.account_id"), app: made.str("data.app_id"), secret: made.str("data.app_secret"),
		email: made.str("data.console_email"), password: made.str("data.console_password"), key: made.str("data.api_key"),
	}
	w.asAdmin(t, "PATCH", "/companies/"+c.id, obj{"api_access": true}).http(200)
	return c
}

// remote plays push services, and the receivers of webhooks.
type remote struct {
	secure *httptest.Server // push services
	plain  *httptest.Server // receivers, and providers of texts

	mu    sync.Mutex
	push  map[string][]http.Header // what came at a path
	hooks map[string][]delivery    // by path
	fails map[string]int           // how often a path is to fail yet
}

// delivery is a webhook that came.
type delivery struct {
	header http.Header
	body   []byte
	at     time.Time
}

func newRemote(t *testing.T) *remote {
	r := &remote{push: map[string][]http.Header{}, hooks: map[string][]delivery{}, fails: map[string]int{}}
	r.secure = httptest.NewTLSServer(http.HandlerFunc(r.takePush))
	r.plain = httptest.NewServer(http.HandlerFunc(r.takeHook))
	t.Cleanup(r.secure.Close)
	t.Cleanup(r.plain.Close)
	return r
}

// takePush calls the devices below /dead/ dead.
func (r *remote) takePush(w http.ResponseWriter, req *http.Request) {
	io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	r.push[req.URL.Path] = append(r.push[req.URL.Path], req.Header)
	r.mu.Unlock()
	if strings.HasPrefix(req.URL.Path, "/dead/") {
		w.WriteHeader(http.StatusGone)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func (r *remote) pushed(path string) int { return len(r.pushes(path)) }

// pushes are the headers of the push messages that came at a path.
func (r *remote) pushes(path string) []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]http.Header{}, r.push[path]...)
}

// takeHook answers below the paths of WhatsApp's Cloud API and of Twilio as these do.
func (r *remote) takeHook(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks[req.URL.Path] = append(r.hooks[req.URL.Path], delivery{req.Header, body, time.Now()})
	if r.fails[req.URL.Path] > 0 {
		r.fails[req.URL.Path]--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	switch {
	case strings.HasPrefix(req.URL.Path, "/v21.0/"):
		io.WriteString(w, `{"messaging_product":"whatsapp","messages":[{"id":"wamid.1"}]}`)
	case strings.HasPrefix(req.URL.Path, "/2010-04-01/"):
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"sid":"SM1","status":"queued"}`)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (r *remote) received(path string) []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery{}, r.hooks[path]...)
}
