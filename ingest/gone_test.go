//go:build linux

package ingest

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/tlspair/tlspairtest"
)

// TestGone: the client that closed its connection is gone, with and without TLS; one that
// waits is not, and neither is one that has sent more.
func TestGone(t *testing.T) {
	t.Parallel()
	secured := &tls.Config{Certificates: []tls.Certificate{tlspairtest.Certificate(t)}}
	for name, over := range map[string]struct {
		listen func(net.Listener) net.Listener
		dial   func(addr string) (net.Conn, error)
	}{
		"TCP": {func(l net.Listener) net.Listener { return l }, func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }},
		"TLS": {func(l net.Listener) net.Listener { return tls.NewListener(l, secured) }, func(addr string) (net.Conn, error) {
			return tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) // its own certificate
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ln, conns, release := servertest.Listen(t), make(chan net.Conn, 9), make(chan struct{})
			servertest.Serve(t, NewServer(testOptions(), func(ctx *fasthttp.RequestCtx) {
				conns <- ctx.Conn()
				<-release
			}), over.listen(ln))
			t.Cleanup(func() { close(release) })
			client, err := over.dial(ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			send := func() {
				if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
			}
			send()
			conn := <-conns
			for i := range 3 {
				if Gone(conn) {
					t.Fatalf("gone, after %d more requests", i)
				}
				send()
			}
			client.Close()
			eventually.Holds(t, "gone, for it closed the connection", func() bool { return Gone(conn) })
		})
	}
}
