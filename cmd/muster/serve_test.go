package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
)

const (
	buyers  = `{"kind":"activity","event":"item_purchased"}`
	spender = `{"kind":"activity","event":"item_purchased","aggregate":{"fn":"sum","property":"value","op":">=","value":100}}`
)

// TestServe follows one data directory from nothing to a second start.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	info, err := os.Stat(filepath.Join(dir, "credentials.json"))
	ok(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("credentials have mode %o", info.Mode().Perm())
	}
	if s.creds.BaseURL != s.origin+"/api/v1" || s.creds.BaseURLV1 != s.origin+"/v1" || s.creds.ConsoleURL != s.origin+"/console" {
		t.Errorf("credentials lead to %s, the server is %s", s.creds.BaseURL, s.origin)
	}
	if n := strings.Count(s.log(), s.creds.AppSecret); n != 1 {
		t.Errorf("the App Secret was printed %d times", n)
	}
	id := s.event(`{"event_type":"item_purchased","user":{"email":"a@x.io"},"properties":{"value":60}}`)
	var p struct {
		ProfileID string `json:"profile_id"`
		Segments  []string
	}
	s.console("GET", "/profiles?email=a@x.io", "", &p)
	if p.ProfileID != id {
		t.Errorf("found %s, want %s", p.ProfileID, id)
	}
	var seg struct {
		ID    string `json:"_id"`
		Count *int
	}
	s.console("POST", "/segments", `{"name":"Spenders","definition":`+spender+`}`, &seg)
	if seg.Count == nil || *seg.Count != 0 {
		t.Errorf("counts %v, want 0", seg.Count)
	}
	if again := s.event(`{"event_type":"item_purchased","user":{"email":"a@x.io"},"properties":{"value":40}}`); again != id {
		t.Errorf("another profile: %s", again)
	}
	s.console("GET", "/segments/"+seg.ID, "", &seg)
	if *seg.Count != 1 {
		t.Errorf("counts %d, want 1", *seg.Count)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/nonsense": 404, "/debug/pprof/": 404, "/api/v1/events": 405} {
		if status := s.call("GET", path, "", nil); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	// No other process can have the directory.
	code, _, errs := muster(t, "", "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--start-timeout", "0s")
	if code != 1 || !strings.Contains(errs, "is held by ") {
		t.Errorf("a second server: %d %s", code, errs)
	}
	s.stop()

	before, err := os.ReadFile(filepath.Join(dir, "credentials.json"))
	ok(t, err)
	s = serve(t, dir, "--pprof")
	after, err := os.ReadFile(filepath.Join(dir, "credentials.json"))
	ok(t, err)
	if string(before) != string(after) || strings.Contains(s.log(), s.creds.AppSecret) {
		t.Error("the second start changed or printed the credentials")
	}
	s.console("GET", "/segments/"+seg.ID, "", &seg)
	s.console("GET", "/profiles/"+id, "", &p)
	if *seg.Count != 1 || len(p.Segments) != 1 || s.events("item_purchased") != 2 {
		t.Errorf("after a restart: count %d, profile in %q", *seg.Count, p.Segments)
	}
	if status := s.call("GET", "/debug/pprof/goroutine", "", nil); status != 200 {
		t.Errorf("--pprof: %d", status)
	}
	s.stop()
}

// TestKill (L1): what was acknowledged is there after kill -9.
func TestKill(t *testing.T) {
	t.Parallel()
	inModes(t, killsLoseNothing)
}

func killsLoseNothing(t *testing.T, args []string) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 3 {
		s := serve(t, dir, args...)
		if have := s.events("seen"); have != round*20 {
			t.Fatalf("round %d: %d events, want %d", round, have, round*20)
		}
		for i := range 20 {
			s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d-%d@x.io"}}`, round, i))
		}
		if n := s.preview(`{"kind":"activity","event":"seen"}`); n != 20*(round+1) {
			t.Errorf("round %d: %d profiles, want %d", round, n, 20*(round+1))
		}
		s.kill()
	}
}

// TestCredentialsBeforeCompany: a crash between the file and the record leaves
// credentials that the next start makes the company of.
func TestCredentialsBeforeCompany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	first := s.creds
	s.kill()
	file := filepath.Join(dir, "credentials.json")
	ok(t, os.RemoveAll(filepath.Join(dir, "data")))
	// After the record the file is of a company that is somewhere else.
	before, err := os.ReadFile(file)
	ok(t, err)
	for _, there := range []bool{false, true} { // such as a place where a disk is mounted
		if there {
			ok(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
		}
		line := refusedStart(t, dir)
		if b, _ := os.ReadFile(file); !strings.Contains(line, "Mount the disk that has its data") || string(b) != string(before) {
			t.Errorf("%s %s", line, b)
		}
		if left, err := os.ReadDir(filepath.Join(dir, "data")); (err == nil) != there || len(left) > 0 {
			t.Errorf("the refused start left %v, %v", left, err)
		}
	}
	ok(t, os.Remove(filepath.Join(dir, "data")))
	first.CompanyMade = false // as the crash leaves it
	ok(t, first.Save(file))
	s = serve(t, dir)
	if s.creds.AppSecret != first.AppSecret || s.creds.AccountID != first.AccountID || s.creds.ConsolePassword != first.ConsolePassword {
		t.Error("other credentials were made")
	}
	if s.creds.BaseURL != s.origin+"/api/v1" {
		t.Errorf("the credentials lead to %s, the server is %s", s.creds.BaseURL, s.origin)
	}
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.console("GET", "/settings", "", nil)
	s.stop()

	// What is not ours is not written over.
	file = filepath.Join(dir, "mine.json")
	ok(t, os.WriteFile(file, []byte(`{"my":"data"}`), 0o600))
	code, out, errs := muster(t, "", "serve", "--data", filepath.Join(dir, "other"), "--listen", "127.0.0.1:0", "--credentials", file)
	if b, _ := os.ReadFile(file); code != 1 || !strings.Contains(errs, "mine.json") || string(b) != `{"my":"data"}` || strings.Contains(out, "ready") {
		t.Errorf("%d %s %s", code, errs, b)
	}
}

// TestSecondSignal: a stop waits for requests under way, a second signal does
// not.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--drain-timeout", "1m")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.origin, "http://"))
	ok(t, err)
	defer conn.Close()
	// A request that never ends, of so much that its beginning comes to the handler.
	fmt.Fprintf(conn, "POST /api/v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-App-Id: %s\r\nX-App-Secret: %s\r\nContent-Length: 6000000\r\n\r\n%9000s", s.creds.AppID, s.creds.AppSecret, "{")
	eventually.Holds(t, "the request is under way", func() bool { return s.metric("muster_ingest_in_flight_bytes") != 0 })
	ok(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	s.until("stopping")
	time.Sleep(100 * time.Millisecond) // nothing may happen in a while: the stop waits for the request
	begun := time.Now()
	ok(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	if code := s.untilEnded(time.Minute); code != exitFailed || time.Since(begun) > 30*time.Second { // half of what it would wait
		t.Errorf("after the second signal: status %d in %s\n%s", code, time.Since(begun), s.log())
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, x := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "name a command"},
		{"help", 0, ""},
		{"version", 0, ""},
		{"nonsense", 2, "nonsense"},
		{"serve --help", 0, "MUSTER_DATA"},
		{"serve --nonsense", 2, "nonsense"},
		{"serve extra", 2, "extra"},
		{"serve --kafka localhost:9092", 2, "--kafka needs --clickhouse"},
		{"serve --kafka localhost --clickhouse clickhouse://localhost", 2, "HOST:PORT"},
		{"serve --kafka localhost:9092 --kafka-topic a/b --clickhouse clickhouse://localhost", 2, "--kafka-topic"},
		{"serve --kafka localhost:9092 --kafka-user me --clickhouse clickhouse://localhost", 2, "--kafka-sasl"},
		{"serve --kafka localhost:9092 --kafka-sasl NTLM --kafka-user me --kafka-password x --clickhouse clickhouse://localhost", 2, "SCRAM-SHA-512"},
		{"serve --clickhouse-ttl-days 3", 2, "needs --clickhouse"},
		{"serve --clickhouse localhost --listen 127.0.0.1:0 --data " + dir + "/bad", 1, "--clickhouse: history: ClickHouse: options: DSN cannot be read"},
		{"import --data x --kafka localhost:9092 f.csv", 2, "--kafka needs --clickhouse"},
		{"export --data x --kafka localhost:9092 events", 2, "--kafka needs --clickhouse"},
		{"serve --data=", 2, "--data"},
		{"serve --log-level loud", 2, "--log-level"},
		{"serve --log-format xml", 2, "use text or json"},
		{"serve --drain-timeout 10", 2, `invalid value "10" of --drain-timeout: use a duration with a unit, such as 10s`},
		{"serve --cache-bytes 1XB", 2, "use a number of bytes, such as 8388608 or 8MiB"},
		{"serve --max-backlog many", 2, "use a whole number, such as 100\nmuster serve --help lists the flags\n"},
		{"serve --skip-record 5", 2, "PARTITION:OFFSET"},
		{"serve --max-body-bytes 10 --listen 127.0.0.1:0 --data " + dir + "/small", 2, "--max-body-bytes"},
		{"serve --listen nonsense --data " + dir, 2, "--listen"},
		{"import", 2, "--data"},
		{"import --data x --to http://y f.csv", 2, "do not go together"},
		{"import --to http://y f.csv", 2, "--credentials"},
		{"import --data x", 2, "name the files"},
		{"import --data x file.txt", 2, "--format"},
		{"import --data x --format xml file.txt", 2, "xml"},
		{"import --data " + dir + "/none f.csv", 2, "does not exist"},
	} {
		code, _, errs := muster(t, "", strings.Fields(x.args)...)
		if code != x.code || !strings.Contains(errs, x.says) {
			t.Errorf("muster %s: %d %s\nwant %d … %s", x.args, code, errs, x.code, x.says)
		}
		if n := strings.Count(errs, "\n"); x.code == exitUsage && n > 2 && !strings.Contains(errs, usage) {
			t.Errorf("muster %s says in %d lines what is wrong:\n%s", x.args, n, errs)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ listen, want string }{
		{"127.0.0.1:80", "http://127.0.0.1:80"}, {"0.0.0.0:80", "http://127.0.0.1:80"}, {"[::]:80", "http://127.0.0.1:80"}, {"[::1]:80", "http://[::1]:80"}, {"10.1.2.3:8", "http://10.1.2.3:8"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", x.listen)
		ok(t, err)
		if have := origin(addr); have != x.want {
			t.Errorf("%s is reached at %s, want %s", x.listen, have, x.want)
		}
	}
}
