// Package sink takes what flows send, on the loopback interface: webhooks and
// e-mails.
package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/mail"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

const (
	// maxMail bounds an e-mail, in bytes.
	maxMail = 1 << 20
	// goodbye is how long sessions may take to end.
	goodbye = time.Second
)

// Sink is a server of webhooks or of e-mails.
type Sink struct {
	// Addr is where it listens, HOST:PORT.
	Addr     string
	listener net.Listener
	close    func() error
	serving  sync.WaitGroup
}

func listen(what string, serve func(net.Listener) error, closer func() error) (*Sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("sink of %s: %w", what, err)
	}
	s := &Sink{Addr: l.Addr().String(), listener: l, close: closer}
	s.serving.Go(func() { _ = serve(l) }) // it ends with the error that it was closed
	return s, nil
}

// Close ends the server. A nil sink is closed.
func (s *Sink) Close() error {
	if s == nil {
		return nil
	}
	err := s.close()
	_ = s.listener.Close() // a server that did not serve yet has left it open, and would serve now
	s.serving.Wait()
	return err
}

// Webhooks serves webhooks.
func Webhooks(take http.HandlerFunc) (*Sink, error) {
	s := &http.Server{Handler: take, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	return listen("webhooks", s.Serve, s.Close)
}

// Mails serves e-mails. take is given each that has arrived as a whole; its error is
// the answer to the sender.
func Mails(take func(header mail.Header, conn net.Conn) error) (*Sink, error) {
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{c, take}, nil }))
	s.Domain, s.ErrorLog, s.MaxMessageBytes = "sink.example", log.New(io.Discard, "", 0), maxMail
	return listen("e-mails", s.Serve, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		if s.Shutdown(ctx) == nil {
			return nil
		}
		if err := s.Close(); !errors.Is(err, smtp.ErrServerClosed) {
			return err
		}
		return nil
	})
}

type session struct {
	conn *smtp.Conn
	take func(mail.Header, net.Conn) error
}

func (*session) Mail(string, *smtp.MailOptions) error { return nil }
func (*session) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*session) Reset()                               {}
func (*session) Logout() error                        { return nil }

func (s *session) Data(in io.Reader) error {
	m, err := mail.ReadMessage(in)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err // the sender was cut off: it did not arrive
	}
	return s.take(m.Header, s.conn.Conn())
}
