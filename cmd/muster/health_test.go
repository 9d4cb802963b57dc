package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHealth: the command tells ready from starting, dead and frozen.
func TestHealth(t *testing.T) {
	t.Parallel()
	ask := func(want int, says string, args ...string) {
		t.Helper()
		code, out, errs := muster(t, "", append([]string{"health"}, args...)...)
		if code != want || !strings.Contains(out+errs, says) {
			t.Errorf("health %v: status %d, %s%s; want %d, %s", args, code, out, errs, want, says)
		}
	}
	s := serve(t, t.TempDir())
	at := strings.TrimPrefix(s.origin, "http://")
	ask(exitOK, "ready", "--listen", at)
	_, port, _ := net.SplitHostPort(at)
	ask(exitOK, "ready", "--listen", "0.0.0.0:"+port)
	s.kill()
	ask(exitFailed, "does not answer: nothing listens there", "--listen", at)

	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, "starting")
	}))
	defer starting.Close()
	at = strings.TrimPrefix(starting.URL, "http://")
	ask(exitFailed, "503 Service Unavailable: starting", "--listen", at)
	ask(exitOK, "", "--listen", at, "--alive")

	frozen, err := net.Listen("tcp", "127.0.0.1:0") // connects, never answers
	ok(t, err)
	defer frozen.Close()
	began := time.Now()
	ask(exitFailed, "does not answer: no answer in time", "--listen", frozen.Addr().String(), "--timeout", "200ms")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	ask(exitUsage, "HOST:PORT", "--listen", "nowhere")
	ask(exitUsage, "no arguments", "now")
}
