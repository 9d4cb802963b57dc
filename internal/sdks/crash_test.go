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
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

// kills is how often the server is killed while an SDK sends.
const kills = 10

// injecting passes requests on. Every 40th is answered 429, 503, or 503 after the server has
// taken it; one whose answer does not come has its connection cut.
type injecting struct {
	*httptest.Server
	requests, failed, cut atomic.Int64
}

func newInjecting(t *testing.T, origin string) *injecting {
	t.Helper()
	to, err := url.Parse(origin)
	ok(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	p := &injecting{}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {
		p.cut.Add(1)
		panic(http.ErrAbortHandler)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := p.requests.Add(1)
		if n%40 != 0 {
			proxy.ServeHTTP(w, r)
			return
		}
		p.failed.Add(1)
		status := []int{429, 503, 0}[n/40%3]
		if status == 0 {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			status = 503
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"success":false,"code":"overloaded","message":"a test"}`)
	}))
	t.Cleanup(p.Close)
	return p
}

// signIn returns the token of a session: other than a key's, its requests have no rate.
func (s *service) signIn(email, password string) (token string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"email": email, "password": password})
	ok(s.t, err)
	res, err := http.Post(s.origin+"/console/api/v1/session", "application/json", bytes.NewReader(body))
	ok(s.t, err)
	defer res.Body.Close()
	var answer struct{ Data struct{ Token string } }
	ok(s.t, json.NewDecoder(res.Body).Decode(&answer))
	if answer.Data.Token == "" {
		s.t.Fatalf("signing in: %s", res.Status)
	}
	return answer.Data.Token
}

// stored is how many events of a type the server has, an error while it is down.
func (s *service) stored(token, eventType string) (int, error) {
	req, err := http.NewRequest("GET", s.origin+"/console/api/v1/catalog", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the catalog: %s", res.Status)
	}
	var answer struct {
		Data []struct {
			Key   string `json:"key"`
			Count int    `json:"count"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, err
	}
	for _, x := range answer.Data {
		if x.Key == eventType {
			return x.Count, nil
		}
	}
	return 0, nil
}

// TestSDKsThroughCrashes: nothing is lost, doubled, or told to the application while the
// server is killed ten times and requests fail.
func TestSDKsThroughCrashes(t *testing.T) {
	if !testlevel.Long() {
		t.Skip("takes minutes; set MUSTER_LONG=1")
	}
	events := 100_000
	if text := os.Getenv("MUSTER_SDK_EVENTS"); text != "" {
		var err error
		events, err = strconv.Atoi(text)
		ok(t, err)
	}
	t.Setenv("EVENTS", fmt.Sprint(events))
	for language, of := range map[string]func(*testing.T) []sdk{"Node.js": sdksOfNode, "Python": sdksOfPython, "Go": sdksOfGo} {
		t.Run(language, func(t *testing.T) {
			for _, x := range of(t) {
				t.Run(x.name, func(t *testing.T) { x.crash(t, events) })
			}
		})
	}
}

func (x *sdk) crash(t *testing.T, events int) {
	c := serverprocess.Start(t)
	b, err := os.ReadFile(c.Credentials())
	ok(t, err)
	var credentials struct {
		APIKey   string `json:"api_key"`
		Email    string `json:"console_email"`
		Password string `json:"console_password"`
	}
	ok(t, json.Unmarshal(b, &credentials))
	s := &service{t, c.Origin, credentials.APIKey}
	token := s.signIn(credentials.Email, credentials.Password)
	key := s.source("server")
	proxy := newInjecting(t, s.origin)
	_, short, _ := strings.Cut(x.name, "-")
	if x.name == "go-segment" {
		short = "go"
	}
	eventType := "loaded_" + short

	begun := time.Now()
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := x.visit(proxy.URL, key, x.name, 0, 1000)
		done <- result{out, err}
	}()
	var r result
	killed := 0
	for ended := false; !ended; {
		select {
		case r = <-done:
			ended = true
		case <-time.After(20 * time.Millisecond):
			// Kills are spread over the events.
			if n, err := s.stored(token, eventType); killed < kills && err == nil && n >= events*(2*killed+1)/(2*kills) {
				c.Kill()
				killed++
				c.Restart()
			}
		}
	}
	if r.err != nil || !strings.HasSuffix(strings.TrimSpace(r.out), "done") || strings.Contains(r.out, "error:") {
		t.Errorf("the program printed %.2000q, %v", r.out, r.err)
	}
	n, err := s.stored(token, eventType)
	ok(t, err)
	t.Logf("%d events in %s, %d kills, %d of %d requests failed, %d connections cut", n, time.Since(begun).Round(time.Second), killed, proxy.failed.Load(), proxy.requests.Load(), proxy.cut.Load())
	if n != events || killed != kills {
		t.Errorf("the server has %d events of %d, after %d kills", n, events, killed)
	}
}
