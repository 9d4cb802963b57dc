package main

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// until waits until a server's output has a text.
func (s *server) until(text string) {
	s.t.Helper()
	eventually.Succeeds(s.t, func() error {
		if log := s.log(); !strings.Contains(log, text) {
			return fmt.Errorf("no %q in\n%s", text, log)
		}
		return nil
	})
}

// TestStartWaits: a start while the process before still has the address, or the
// directory, waits for it and then serves.
func TestStartWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	id := s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	// One waits for the directory, the other for the address first.
	directory := launch(t, dir)
	directory.until("another process has the data directory")
	if want := fmt.Sprintf("process=%d ", s.Cmd.Process.Pid); !strings.Contains(directory.log(), want) {
		t.Errorf("the line does not name the process, %s\n%s", want, directory.log())
	}
	directory.stop() // SIGTERM ends the wait in order
	address := launch(t, dir, "--listen", strings.TrimPrefix(s.origin, "http://"), "--start-timeout", "60s")
	address.until("another process listens on the address")
	s.kill()
	address.untilReady()
	if address.origin != s.origin {
		t.Errorf("it serves at %s, not %s", address.origin, s.origin)
	}
	address.creds, address.token = s.creds, ""
	if again := address.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`); again != id {
		t.Errorf("profile %s, then %s", id, again)
	}
	address.stop()
}

// TestStartTimeout: the wait for an address ends with the error, and with SIGTERM at
// once.
func TestStartTimeout(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer ln.Close()
	dir := t.TempDir()
	code, _, errs := muster(t, "", "serve", "--data", filepath.Join(dir, "data"), "--listen", ln.Addr().String(), "--start-timeout", "300ms")
	if code != exitFailed || !strings.Contains(errs, "waiting for it to end") || !strings.Contains(errs, "muster: --listen: ") {
		t.Errorf("%d %s", code, errs)
	}
	s := launch(t, dir, "--listen", ln.Addr().String(), "--start-timeout", "1h")
	s.until("waiting for it to end")
	s.stop()
}

// TestLogFormat: with --log-format json each line on standard error is JSON, also the
// last one of a start that fails.
func TestLogFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--log-format", "json")
	s.call("GET", "/nothing", "", nil)
	s.stop()
	code, _, failed := muster(t, "", "serve", "--data", filepath.Join(dir, "data"), "--listen", "192.0.2.1:1", "--start-timeout", "0s", "--log-format", "json") // an address of no machine
	if code != exitFailed {
		t.Errorf("status %d", code)
	}
	said := map[any]bool{}
	for line := range strings.Lines(s.Errors() + failed) {
		var x map[string]any
		if err := json.Unmarshal([]byte(line), &x); err != nil || x["level"] == nil || x["msg"] == nil || x["time"] == nil {
			t.Errorf("no log line: %s", line)
		}
		said[x["msg"]] = true
	}
	for _, msg := range []string{"starting", "request refused", "stopped", "muster ends"} {
		if !said[msg] {
			t.Errorf("no line says %q\n%s%s", msg, s.Errors(), failed)
		}
	}
}

// TestImportToNobody: an import says soon that there is no server.
func TestImportToNobody(t *testing.T) {
	testlevel.SkipQuick(t, "waits for calls to give up")
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer ln.Close() // it takes connections and never answers TLS
	dir := t.TempDir()
	s := serve(t, dir)
	s.stop()
	credentials := filepath.Join(dir, "credentials.json")
	for _, url := range []string{s.origin, "https://" + ln.Addr().String()} {
		began := time.Now()
		code, _, errs := muster(t, "{}\n", "import", "--to", url, "--credentials", credentials, "--format", "jsonl", "-")
		if took := time.Since(began); code != exitFailed || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "no answer from "+url) || took > 20*time.Second {
			t.Errorf("%s: status %d after %s\n%s", url, code, took, errs)
		}
	}
}
