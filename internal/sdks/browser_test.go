package sdks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
)

// shop serves a page with Segment's SDK for browsers to Chromium.
type shop struct {
	*httptest.Server
	results chan result
}

// result is what the page says at its end.
type result struct {
	Anonymous string
	Errors    []string
}

func newShop(t *testing.T, project string) *shop {
	s := &shop{results: make(chan result, 1)}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("testdata/browser")))
	mux.Handle("/umd/", http.StripPrefix("/umd/", http.FileServer(http.Dir(filepath.Join(project, "node_modules/@segment/analytics-next/dist/umd")))))
	mux.HandleFunc("POST /result", func(w http.ResponseWriter, r *http.Request) {
		var x result
		if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
			x.Errors = append(x.Errors, err.Error())
		}
		s.results <- x
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// visit has Chromium open the page.
func (s *shop) visit(t *testing.T, muster, key, name string) result {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		absent(t, "the SDK for browsers is not tested: chromium is missing; install it (Debian: chromium)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Chromium's other processes write to its directory until they are gone, too.
	dir, err := os.MkdirTemp("", "muster-chromium-")
	ok(t, err)
	t.Cleanup(func() { eventually.Succeeds(t, func() error { return os.RemoveAll(dir) }) })
	page := s.URL + "/?" + url.Values{"muster": {muster}, "key": {key}, "name": {name}}.Encode()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--user-data-dir="+dir, "--remote-debugging-port=0", page)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	ok(t, cmd.Start())
	defer cmd.Wait() // it was killed
	defer cancel()
	select {
	case x := <-s.results:
		return x
	case <-ctx.Done():
		t.Fatal("the page said nothing")
	}
	return result{}
}

// testBrowser: Segment's SDK for browsers, with the key of a browser source.
func testBrowser(t *testing.T, s *service) {
	shop := newShop(t, node(t))
	var made struct {
		ID  string `json:"_id"`
		Key string `json:"write_key"`
	}
	s.call("POST", "/sources", fmt.Sprintf(`{"name":"Web","kind":"browser","allowed_origins":[%q]}`, shop.URL), &made)
	begun := time.Now()
	x := shop.visit(t, s.origin, made.Key, "web")
	if len(x.Errors) > 0 {
		t.Fatalf("%+v", x)
	}
	types := []string{}
	var v visitor
	eventually.Holds(t, "six events of the visitor", func() bool {
		v, _ = s.visitor("web") // it sends while the page continues
		return len(v.Events) == len(wantEvents)
	})
	for _, e := range v.Events {
		types = append(types, e.Type)
		if e.Timestamp.Before(begun.Add(-time.Second)) || e.Timestamp.After(time.Now().Add(time.Second)) {
			t.Errorf("%s was at %s", e.Type, e.Timestamp)
		}
		if e.Type == "page_viewed" && (e.Properties["name"] != "Home" || e.Properties["title"] != "Shop" || e.Properties["path"] != "/") {
			t.Errorf("the page is %v", e.Properties)
		}
	}
	want := []string{}
	for _, e := range wantEvents {
		want = append(want, e.Type)
	}
	if !slices.Equal(types, want) || !slices.Equal(v.AnonymousIDs, []string{x.Anonymous}) || v.FirstName != "Ann" || v.Attributes["plan"] != "pro" || v.Attributes["group_id"] != "acme" || v.Geo["city"] != "Berlin" || len(v.Segments) != len(wantSegments) {
		t.Errorf("anonymous id %s, %+v", x.Anonymous, v)
	}

	// A page of another origin gets nothing in.
	s.call("PATCH", "/sources/"+made.ID, `{"allowed_origins":["https://shop.example"]}`, nil)
	x = shop.visit(t, s.origin, made.Key, "stranger")
	if len(x.Errors) == 0 {
		t.Errorf("a page of another origin: %+v", x)
	}
	var found struct {
		ID string `json:"profile_id"`
	}
	if s.try("GET", "/profiles?external_id=u-stranger", "", &found) == nil {
		t.Errorf("a page of another origin made %s", found.ID)
	}
}
