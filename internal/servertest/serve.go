package servertest

import (
	"context"
	"net"
	"net/http"
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
