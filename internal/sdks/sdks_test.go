package sdks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/foreign"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

func TestMain(m *testing.M) { serverprocess.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// absent skips a test for want of a tool, or fails it where all tools are required.
func absent(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("MUSTER_REQUIRE_SDKS") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func cacheDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		absent(t, "SDKs are not tested: no cache directory (set XDG_CACHE_HOME): %v", err)
	}
	return filepath.Join(cache, "muster-sdks")
}

// node returns a folder with the packages and the script for Node.js.
func node(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			absent(t, "SDKs for Node.js are not tested: %s is missing; install Node.js 20 or later with npm (Debian: nodejs, npm)", tool)
		}
	}
	dir, err := foreign.Cached(cacheDir(t), "npm", "testdata/node/package-lock.json", func(dir string) error {
		for _, name := range []string{"package.json", "package-lock.json"} {
			if err := foreign.CopyFile(filepath.Join("testdata/node", name), filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		// Packages for other machines, which are optional, need not be there.
		return foreign.Run(dir, "npm", "install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	if err != nil {
		absent(t, "SDKs for Node.js are not tested: %v", err)
	}
	project := t.TempDir()
	ok(t, foreign.CopyFile("testdata/node/visit.mjs", filepath.Join(project, "visit.mjs")))
	ok(t, os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(project, "node_modules")))
	return project
}

// python returns the interpreter of an environment with the packages.
func python(t *testing.T) string {
	t.Helper()
	if err := exec.Command("python3", "-c", "import ensurepip, venv").Run(); err != nil {
		absent(t, "SDKs for Python are not tested: Python's venv is missing; install it (Debian: python3, python3-venv)")
	}
	venv, err := foreign.Cached(cacheDir(t), "python", "testdata/python/requirements.txt", func(dir string) error {
		if err := foreign.Run(".", "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return foreign.Run(".", filepath.Join(dir, "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
			"--require-hashes", "--requirement", "testdata/python/requirements.txt")
	})
	if err != nil {
		absent(t, "SDKs for Python are not tested: %v", err)
	}
	return filepath.Join(venv, "bin/python")
}

// golang returns the program with the SDK for Go.
func golang(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "visit")
	if err := foreign.Run("testdata/go", "go", "build", "-o", program, "."); err != nil {
		absent(t, "the SDK for Go is not tested: %v", err)
	}
	return program
}

// service is a muster that runs.
type service struct {
	t      *testing.T
	origin string
	apiKey string
}

func (s *service) call(method, path, body string, out any) {
	s.t.Helper()
	ok(s.t, s.try(method, path, body, out))
}

// try is call for what may be refused.
func (s *service) try(method, path, body string, out any) error {
	s.t.Helper()
	req, err := http.NewRequest(method, s.origin+"/api/v1"+path, strings.NewReader(body))
	ok(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.apiKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	var answer struct {
		Status, Message string
		Data            json.RawMessage
	}
	ok(s.t, json.Unmarshal(b, &answer))
	if answer.Status != "success" {
		return fmt.Errorf("%s %s %s: %s", method, path, body, b)
	}
	if out != nil {
		ok(s.t, json.Unmarshal(answer.Data, out))
	}
	return nil
}

// source makes a source and returns its key.
func (s *service) source(kind string) string {
	s.t.Helper()
	var made struct {
		Key string `json:"write_key"`
	}
	s.call("POST", "/sources", fmt.Sprintf(`{"name":"%s","kind":"%s"}`, kind, kind), &made)
	return made.Key
}

// event is an event of a profile.
type event struct {
	Type       string         `json:"event_type"`
	Properties map[string]any `json:"properties"`
	Timestamp  time.Time      `json:"timestamp"`
}

// visitor is what is known of the person of a visit, but for what each run has of its own.
type visitor struct {
	Identities   map[string][]string `json:"identities"`
	AnonymousIDs []string            `json:"anonymous_ids"`
	FirstName    string              `json:"first_name"`
	LastName     string              `json:"last_name"`
	Geo          map[string]any      `json:"geo"`
	Attributes   map[string]any      `json:"attributes"`
	Segments     []string            `json:"segments"` // ids
	ID           string              `json:"profile_id"`
	Events       []event             `json:"-"`
}

// visitor reads what became of a visit.
func (s *service) visitor(name string) (v visitor, raw string) {
	s.t.Helper()
	s.call("GET", "/profiles?external_id=u-"+name, "", &v)
	var list struct{ Events []event }
	s.call("GET", "/profiles/"+v.ID+"/events?limit=100", "", &list)
	v.Events = list.Events
	slices.SortFunc(v.Events, func(a, b event) int { return strings.Compare(a.Type, b.Type) })
	b, err := json.Marshal(v)
	ok(s.t, err)
	return v, strings.ReplaceAll(string(b), name, "NAME")
}

// want is what each SDK's visit must become. Segments are judged by their names.
const want = `{"identities":{"email":["NAME@shop.example"],"external_id":["u-NAME"],"phone":[]},"anonymous_ids":["d-NAME"],"first_name":"Ann","last_name":"Lee",` +
	`"geo":{"city":"Berlin","country":"DE"},"attributes":{"group_id":"acme","plan":"pro"}}`

var wantEvents = []event{
	{Type: "group_identified", Properties: map[string]any{"group_id": "acme", "industry": "shops"}},
	{Type: "identified", Properties: map[string]any{}},
	{Type: "order_completed", Properties: map[string]any{"total": 79.9, "currency": "EUR", "products": []any{"sku-7"}}},
	{Type: "page_viewed", Properties: map[string]any{"name": "Home", "url": "https://shop.example/"}},
	{Type: "product_viewed", Properties: map[string]any{"sku": "sku-7"}},
	{Type: "screen_viewed", Properties: map[string]any{"name": "Receipt"}},
}

// wantSegments are the names of the segments that the person of a visit is in.
var wantSegments = []string{"bought for 50", "looked before buying"}

func (s *service) makeSegments() {
	s.t.Helper()
	activity := func(event, more string) string {
		return fmt.Sprintf(`{"kind":"activity","event":%q,"window":{"last_days":3},%s}`, event, more)
	}
	for name, definition := range map[string]string{
		wantSegments[0]:      activity("order_completed", `"aggregate":{"fn":"sum","property":"total","op":">","value":50}`),
		wantSegments[1]:      activity("product_viewed", `"count":{"op":">=","value":1}`),
		"bought for 100":     activity("order_completed", `"aggregate":{"fn":"sum","property":"total","op":">","value":100}`),
		"viewed it two ways": activity("product_viewed", `"count":{"op":">=","value":2}`),
	} {
		s.call("POST", "/segments", fmt.Sprintf(`{"name":%q,"definition":%s}`, name, definition), nil)
	}
}

// check judges what became of a visit that was made between two times.
func (s *service) check(name string, begun, ended time.Time) {
	s.t.Helper()
	v, raw := s.visitor(name)
	segments := []string{}
	for _, x := range v.Segments {
		var segment struct{ Name string }
		s.call("GET", "/segments/"+x, "", &segment)
		segments = append(segments, segment.Name)
	}
	slices.Sort(segments)
	if !slices.Equal(segments, wantSegments) {
		s.t.Errorf("the person is in the segments %q, want %q", segments, wantSegments)
	}
	var have, wanted visitor
	ok(s.t, json.Unmarshal([]byte(raw), &have))
	ok(s.t, json.Unmarshal([]byte(want), &wanted))
	have.Segments, have.ID, have.Events = nil, "", nil
	if !reflect.DeepEqual(have, wanted) {
		s.t.Errorf("the profile is %s, want %s", raw, want)
	}
	for i := range max(len(v.Events), len(wantEvents)) {
		if i >= len(v.Events) || i >= len(wantEvents) || v.Events[i].Type != wantEvents[i].Type || !reflect.DeepEqual(v.Events[i].Properties, wantEvents[i].Properties) {
			s.t.Errorf("the events are %+v", v.Events)
			break
		}
		if at := v.Events[i].Timestamp; at.Before(begun.Add(-time.Second)) || at.After(ended.Add(time.Second)) {
			s.t.Errorf("%s was between %s and %s, not at %s", v.Events[i].Type, begun, ended, at)
		}
	}
}

// sdk is one SDK, with the program that sends a visit.
type sdk struct {
	name string
	// visit sends the visit of a name with a clock that is off, and returns what the program
	// printed.
	visit func(origin, key, name string, off time.Duration, retries int) (string, error)
	// clock says that its clock can be set.
	clock bool
}

// visitTime bounds a program that visits. RudderStack's SDK for Node.js took over ten minutes for
// 100,000 events and a server that is killed ten times.
const visitTime = time.Hour

func sdksOfNode(t *testing.T) (out []sdk) {
	project := node(t)
	for _, name := range []string{"segment", "rudder", "posthog"} {
		out = append(out, sdk{"node-" + name, func(origin, key, run string, off time.Duration, retries int) (string, error) {
			return foreign.OutputWithin(visitTime, project, "node", "visit.mjs", name, origin, key, run, fmt.Sprint(off.Milliseconds()), fmt.Sprint(retries))
		}, true})
	}
	return out
}

func sdksOfPython(t *testing.T) (out []sdk) {
	interpreter := python(t)
	for _, name := range []string{"segment", "rudder"} {
		out = append(out, sdk{"python-" + name, func(origin, key, run string, off time.Duration, retries int) (string, error) {
			return foreign.OutputWithin(visitTime, ".", interpreter, "testdata/python/visit.py", name, origin, key, run, fmt.Sprint(off.Milliseconds()), fmt.Sprint(retries))
		}, true})
	}
	return out
}

func sdksOfGo(t *testing.T) []sdk {
	program := golang(t)
	return []sdk{{"go-segment", func(origin, key, run string, _ time.Duration, _ int) (string, error) {
		return foreign.OutputWithin(visitTime, ".", program, origin, key, run)
	}, false}}
}

// TestSDKs: the SDKs of others send to muster with nothing but host and key changed.
func TestSDKs(t *testing.T) {
	testlevel.SkipQuick(t, "runs SDKs")
	server := serverprocess.Start(t)
	b, err := os.ReadFile(server.Credentials())
	ok(t, err)
	var credentials struct {
		APIKey string `json:"api_key"`
	}
	ok(t, json.Unmarshal(b, &credentials))
	s := &service{t, server.Origin, credentials.APIKey}
	s.makeSegments()
	t.Run("Chromium", func(t *testing.T) { testBrowser(t, &service{t, s.origin, s.apiKey}) })
	for language, of := range map[string]func(*testing.T) []sdk{"Node.js": sdksOfNode, "Python": sdksOfPython, "Go": sdksOfGo} {
		t.Run(language, func(t *testing.T) {
			for _, x := range of(t) {
				t.Run(x.name, func(t *testing.T) { x.test(t, &service{t, s.origin, s.apiKey}) })
			}
		})
	}
}

func (x *sdk) test(t *testing.T, s *service) {
	key := s.source("server")
	sends := func(t *testing.T, origin, name string, off time.Duration, retries int) (begun, ended time.Time) {
		t.Helper()
		begun = time.Now()
		out, err := x.visit(origin, key, name, off, retries)
		if err != nil || !strings.HasSuffix(strings.TrimSpace(out), "done") || strings.Contains(out, "error:") {
			t.Fatalf("the program printed %q, %v", out, err)
		}
		return begun, time.Now()
	}
	t.Run("a visit", func(t *testing.T) {
		begun, ended := sends(t, s.origin, x.name, 0, 0)
		(&service{t, s.origin, s.apiKey}).check(x.name, begun, ended)
	})
	t.Run("a clock that is off", func(t *testing.T) {
		if !x.clock {
			t.Skip("its clock cannot be set")
		}
		for _, off := range []time.Duration{3 * time.Hour, -3 * time.Hour} {
			name := fmt.Sprintf("%s-%d", x.name, int(off.Hours()))
			begun, ended := sends(t, s.origin, name, off, 0)
			(&service{t, s.origin, s.apiKey}).check(name, begun, ended)
		}
	})
	t.Run("a server that fails at first", func(t *testing.T) {
		flaky := newFlaky(t, s.origin)
		begun, ended := sends(t, flaky.URL, x.name+"-again", 0, 8)
		(&service{t, s.origin, s.apiKey}).check(x.name+"-again", begun, ended)
		if n := flaky.requests.Load(); n < int64(len(failures))+1 {
			t.Errorf("%d requests, the SDK did not try again", n)
		}
	})
	t.Run("a wrong key", func(t *testing.T) {
		out, err := x.visit(s.origin, "wk_wrong", x.name, 0, 0)
		if err != nil || !strings.Contains(out, "error:") || !strings.Contains(out, "401") {
			t.Fatalf("the program printed %q, %v", out, err)
		}
	})
	t.Run("a source that is disabled", func(t *testing.T) {
		var list []struct {
			ID   string `json:"_id"`
			Used string `json:"last_used_at"`
		}
		s := &service{t, s.origin, s.apiKey}
		s.call("GET", "/sources", "", &list)
		id := list[len(list)-1].ID
		if list[len(list)-1].Used == "" {
			t.Error("the source does not show that it was used")
		}
		s.call("PATCH", "/sources/"+id, `{"enabled":false}`, nil)
		out, err := x.visit(s.origin, key, x.name, 0, 0)
		if err != nil || !strings.Contains(out, "error:") || !strings.Contains(out, "401") {
			t.Fatalf("the program printed %q, %v", out, err)
		}
	})
}

// failures are what a flaky server answers at first: each kind that SDKs try again for.
var failures = []int{503, 429, 0}

// flaky is a proxy that fails at first. Its last failure comes after the server has taken
// the events: they are sent again.
type flaky struct {
	*httptest.Server
	requests atomic.Int64
}

func newFlaky(t *testing.T, origin string) *flaky {
	t.Helper()
	to, err := url.Parse(origin)
	ok(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	f := &flaky{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(f.requests.Add(1)) - 1
		if n >= len(failures) {
			proxy.ServeHTTP(w, r)
			return
		}
		status := failures[n]
		if status == 0 {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			status = 503
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		_, _ = io.Copy(w, bytes.NewReader([]byte(`{"success":false,"code":"overloaded","message":"a test"}`)))
	}))
	t.Cleanup(f.Close)
	return f
}

// TestPinned: no file names where packages come from.
func TestPinned(t *testing.T) {
	address := regexp.MustCompile(`"resolved"|--(extra-)?index-url [^-]|--find-links [^-]`)
	for _, file := range []string{"testdata/node/package-lock.json", "testdata/python/requirements.txt"} {
		b, err := os.ReadFile(file)
		ok(t, err)
		if address.Match(b) {
			t.Errorf("%s says where packages come from", file)
		}
	}
}
