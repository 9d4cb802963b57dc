package main

import (
	"context"
	"io"
	"log"
	"net"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// serveSMTP runs a real SMTP server on loopback until the test ends, with a
// session for each connection, and returns its address.
func serveSMTP(t *testing.T, session func() smtp.Session) string {
	t.Helper()
	srv := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return session(), nil }))
	srv.Domain, srv.ErrorLog, srv.MaxMessageBytes = "relay.test", log.New(io.Discard, "", 0), 1<<20
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		ln.Close() // before Serve has begun, neither of them knows it
		<-done
	})
	return ln.Addr().String()
}
