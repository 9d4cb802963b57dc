package muster_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/muster-go"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program is the server that MUSTER_BINARY names, or builds that of this repository. With this module
// alone it cannot.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the server")
	}
	if binary := os.Getenv("MUSTER_BINARY"); binary != "" {
		return binary
	}
	if _, err := os.Stat("../cmd/muster/main.go"); err != nil {
		t.Skip("the sources of the server are not beside this module")
	}
	binary := filepath.Join(t.TempDir(), "muster")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/muster")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// server is muster serve in a process of its own, always at the same address. Package
// serverprocess does the same for other tests; this module imports nothing of the server's.
type server struct {
	t                    *testing.T
	binary, dir, address string
	cmd                  *exec.Cmd
	creds                struct {
		BaseURL         string `json:"base_url"`
		AppID           string `json:"app_id"`
		AppSecret       string `json:"app_secret"`
		ConsoleEmail    string `json:"console_email"`
		ConsolePassword string `json:"console_password"`
	}
}

func newServer(t *testing.T) *server {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	s := &server{t: t, binary: program(t), dir: t.TempDir(), address: free.Addr().String()}
	ok(t, free.Close())
	s.start()
	t.Cleanup(s.kill)
	text, err := os.ReadFile(filepath.Join(s.dir, "credentials.json"))
	ok(t, err)
	ok(t, json.Unmarshal(text, &s.creds))
	return s
}

// start returns when the server takes requests.
func (s *server) start(args ...string) {
	s.t.Helper()
	s.cmd = exec.Command(s.binary, append([]string{"serve", "--data", filepath.Join(s.dir, "data"), "--listen", s.address, "--credentials", filepath.Join(s.dir, "credentials.json")}, args...)...)
	var errs bytes.Buffer
	s.cmd.Stderr = &errs
	out, err := s.cmd.StdoutPipe()
	ok(s.t, err)
	ok(s.t, s.cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ready: ") {
			return
		}
	}
	s.cmd.Wait()
	s.t.Fatalf("the server did not start:\n%s", errs.String())
}

// kill ends the server as kill -9 does.
func (s *server) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// console calls the console API.
func (s *server) console(method, path, body, token string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.address+"/console/api/v1"+path, strings.NewReader(body))
	ok(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	ok(s.t, err)
	if res.StatusCode != 200 {
		s.t.Fatalf("%s %s: %s", method, path, res.Status)
	}
	return res
}

// stored is an event as the server has it.
type stored struct {
	Timestamp  time.Time
	Properties struct {
		Sender, N int
	}
}

// events are all events of a type.
func (s *server) events(eventType string) (list []stored) {
	s.t.Helper()
	res := s.console("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword), "")
	defer res.Body.Close()
	var in struct{ Data struct{ Token string } }
	ok(s.t, json.NewDecoder(res.Body).Decode(&in))
	res = s.console("GET", "/export/events?event_type="+eventType, "", in.Data.Token)
	defer res.Body.Close()
	for dec := json.NewDecoder(res.Body); dec.More(); {
		var e stored
		ok(s.t, dec.Decode(&e))
		list = append(list, e)
	}
	return list
}

// TestServerIsKilledWhileEventsAreSent: the real server is killed ten times under load,
// and has each event once, in the order of Send, with nothing dropped.
func TestServerIsKilledWhileEventsAreSent(t *testing.T) {
	s := newServer(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	const senders, each, kills = 4, 10_000, 10
	c, err := muster.New(muster.Config{
		URL: s.creds.BaseURL, AppID: s.creds.AppID, AppSecret: s.creds.AppSecret,
		BatchEvents: 100, BatchAge: 50 * time.Millisecond, QueueEvents: 2_000, WaitForRoom: true,
		OnDropped: func(d muster.Dropped) { t.Errorf("dropped: %v", d.Err) },
	})
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+kills*20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for sender := range senders {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range each {
				if c.Send(ctx, muster.Event{Type: "item_viewed", User: muster.User{ExternalID: fmt.Sprint("sender-", sender)}, Properties: map[string]any{"sender": sender, "n": n}}) != nil {
					return // OnDropped has failed the test
				}
			}
		}()
	}
	// A kill comes after a random share of the events, so that they are spread over all
	// of them on a machine of any speed.
	for kill := range kills {
		from := uint64(kill * senders * each / kills)
		for at := from + random.Uint64N(senders*each/kills); c.Stats().Recorded < at && ctx.Err() == nil; {
			time.Sleep(time.Millisecond) // between two looks at the count
		}
		s.kill()
		s.start()
	}
	group.Wait()
	ok(t, c.Close(ctx))
	st := c.Stats()
	t.Logf("%+v", st)
	if st.Recorded != senders*each || st.Retries < kills/2 {
		t.Errorf("stats %+v", st)
	}
	list := s.events("item_viewed")
	if len(list) != senders*each {
		t.Errorf("the server has %d events, not %d", len(list), senders*each)
	}
	var seen [senders][each]time.Time
	for _, e := range list {
		at := &seen[e.Properties.Sender][e.Properties.N]
		if !at.IsZero() {
			t.Errorf("event %d of sender %d is there twice", e.Properties.N, e.Properties.Sender)
		}
		*at = e.Timestamp
	}
	for sender := range seen {
		for n := 1; n < each; n++ {
			if seen[sender][n].Before(seen[sender][n-1]) {
				t.Fatalf("event %d of sender %d was recorded before the one that was sent before it", n, sender)
			}
		}
	}
}

// TestAnswersOfTheServer: what the real server says of wrong credentials, of a bad event
// among good ones, and of a batch that is larger than it takes reaches OnDropped.
func TestAnswersOfTheServer(t *testing.T) {
	s := newServer(t)
	var lost []muster.Dropped
	cfg := muster.Config{URL: "http://" + s.address, AppID: s.creds.AppID, AppSecret: "wrong", OnDropped: func(d muster.Dropped) { lost = append(lost, d) }}
	run := func(list ...muster.Event) {
		t.Helper()
		lost = nil
		c, err := muster.New(cfg)
		ok(t, err)
		for _, e := range list {
			ok(t, c.Send(t.Context(), e))
		}
		ok(t, c.Close(t.Context()))
	}
	good := muster.Event{Type: "signed_up", User: muster.User{Email: "ann@example.com"}}
	refused := func(status int, text string, n int) {
		t.Helper()
		if len(lost) != n {
			t.Errorf("%d events were dropped, not %d", len(lost), n)
		}
		for _, d := range lost {
			if r, is := d.Err.(*muster.RefusedError); !is || r.StatusCode != status || !strings.Contains(r.Message, text) || d.MayBeRecorded {
				t.Errorf("dropped: %+v", d)
			}
		}
	}
	run(good, good)
	refused(202, "invalid app credentials", 2)

	cfg.AppSecret = s.creds.AppSecret
	bad := good
	bad.Type = "Signed Up"
	run(good, bad, good)
	refused(202, "event_type must be a key in snake case", 1)

	// The same key is the same event, also for another client.
	bad = good
	bad.IdempotencyKey = "signup-1"
	run(bad)
	run(bad)
	refused(0, "", 0)
	if n := len(s.events("signed_up")); n != 3 {
		t.Errorf("the server has %d events, not 3", n)
	}

	// A server that takes smaller bodies than the client is configured for gets
	// halves.
	s.kill()
	large := make([]muster.Event, 8)
	for i := range large {
		large[i] = muster.Event{Type: "page_viewed", User: good.User, Properties: map[string]any{"text": strings.Repeat("x", 30_000)}}
	}
	s.start("--max-body-bytes", "100000")
	run(large...)
	refused(0, "", 0)
	if n := len(s.events("page_viewed")); n != len(large) {
		t.Errorf("the server has %d events, not %d", n, len(large))
	}
}
