package importer

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestWhatWaitingDoesNotMend: a server that does not speak TLS, or whose certificate is not
// trusted, is told from one that is not there yet: one attempt is enough.
func TestWhatWaitingDoesNotMend(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		start func(*httptest.Server)
		says  string
	}{
		{(*httptest.Server).Start, "plain HTTP"},
		{(*httptest.Server).StartTLS, "with --ca"},
	} {
		var attempts atomic.Int64
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				attempts.Add(1)
			}
		}
		x.start(s)
		target := ToServer(Server{Client: &http.Client{Transport: new(http.Transport)}, URL: "https://" + s.Listener.Addr().String() + "/api/v1", AppID: "a", AppSecret: "b"}).(*httpTarget)
		_, _, err := target.next(t.Context(), [32]byte{}, 0)
		if err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.says, err)
		}
		s.Close()
		if n := attempts.Load(); n != 1 {
			t.Errorf("%s: %d attempts", x.says, n)
		}
	}
}

// TestDeadBehindAProxy: what takes connections and closes them is no server, and the import
// says so soon; where the answer is that the server is gone, it is waited for, and the reason
// is told meanwhile.
func TestDeadBehindAProxy(t *testing.T) {
	t.Parallel()
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes.Close() })
	go func() {
		for {
			c, err := closes.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	target := func(addr string, waiting func(error)) *httpTarget {
		return ToServer(Server{Client: &http.Client{Transport: new(http.Transport)}, URL: "http://" + addr + "/api/v1", AppID: "a", AppSecret: "b", Waiting: waiting}).(*httpTarget)
	}
	_, _, err = target(closes.Addr().String(), func(why error) { t.Errorf("waits: %v", why) }).next(t.Context(), [32]byte{}, 0)
	if err == nil || !strings.Contains(err.Error(), "no answer from http://"+closes.Addr().String()) || !strings.Contains(err.Error(), "https://") {
		t.Errorf("connections are closed: %v", err)
	}

	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no upstream", http.StatusServiceUnavailable)
	}))
	defer gone.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var why error
	_, _, err = target(gone.Listener.Addr().String(), func(err error) { why = err; cancel() }).next(ctx, [32]byte{}, 0)
	if !errors.Is(err, context.Canceled) || why == nil || !strings.Contains(why.Error(), "503: no upstream") {
		t.Errorf("503: %v, while it waits: %v", err, why)
	}
}
