package ingest

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/tlspair/tlspairtest"
)

// TestTLS: a listener of TLS is served as one of TCP, and its requests are known to be
// over TLS.
func TestTLS(t *testing.T) {
	t.Parallel()
	ln := servertest.Listen(t)
	servertest.Serve(t, NewServer(testOptions(), func(ctx *fasthttp.RequestCtx) {
		if ctx.IsTLS() && ctx.TLSConnectionState() != nil {
			ctx.SetBodyString("over TLS")
		}
	}), tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{tlspairtest.Certificate(t)}}))
	config := &tls.Config{InsecureSkipVerify: true} // its own certificate
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	for range 3 {
		res, err := client.Post("https://"+ln.Addr().String(), "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(b) != "over TLS" {
			t.Fatalf("%q %v", b, err)
		}
	}
	c, err := tls.Dial("tcp", ln.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, filledIn(malformed["length and coding"])+smuggled); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || strings.Count(string(b), "HTTP/1.1 ") != 1 || !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
		t.Errorf("%q %v", b, err)
	}
}
