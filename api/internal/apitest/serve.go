package apitest

import (
	"context"
	"net"
	"net/http"

	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/musterhq/muster/ingest"
)

// Serve runs a server on a listener in memory and returns a client of it. stop ends the
// connections and the server.
func Serve(server *ingest.Server) (client *http.Client, stop func() error) {
	ln := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }}
	return &http.Client{Transport: transport}, func() error {
		transport.CloseIdleConnections()
		if err := server.Shutdown(); err != nil {
			return err
		}
		return <-served
	}
}
