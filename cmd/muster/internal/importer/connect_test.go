package importer

import (
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
		target := ToServer(&http.Client{Transport: new(http.Transport)}, "https://"+s.Listener.Addr().String()+"/api/v1", "a", "b", false).(*httpTarget)
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
