package servertest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"
)

// Server is what an *ingest.Server does. That package's own tests use this one, so that it
// cannot be imported here.
type Server interface {
	Serve(net.Listener) error
	Shutdown() error
}

// Start serves ln. stop ends the server and returns what Serve did.
func Start(s Server, ln net.Listener) (stop func() error) {
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	return func() error {
		if err := s.Shutdown(); err != nil {
			return err
		}
		return <-served
	}
}

// Serve serves ln until the test ends.
func Serve(t testing.TB, s Server, ln net.Listener) { endWith(t, Start(s, ln)) }

// Listen returns a listener on a free port. The server that serves it closes it.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// Client serves until the test ends, without a network, and returns a client of the server.
func Client(t testing.TB, s Server) *http.Client {
	ln := fasthttputil.NewInmemoryListener()
	Serve(t, s, ln)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Send makes a request with the headers given as pairs, and returns the answer and its body.
// A body that is not empty is JSON unless a header says otherwise.
func Send(t testing.TB, client *http.Client, method, url, body string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, b
}
