package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// conn is a logged-in connection to the relay.
type conn struct {
	raw    net.Conn
	client *smtp.Client
	used   int       // messages carried
	since  time.Time // idle since
}

func (c *conn) close() { c.raw.Close() }

// quit says goodbye; the answer does not matter.
func (c *conn) quit(limit time.Duration) {
	c.client.CommandTimeout = min(c.client.CommandTimeout, limit)
	if c.client.Quit() != nil {
		c.close()
	}
}

// ErrNoAuth: the relay offers no login we know.
var ErrNoAuth = errors.New("the relay offers neither PLAIN nor LOGIN")

// connect opens a connection and logs in.
func (o *Options) connect(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
	defer cancel()
	raw, err := o.Dial(ctx, "tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, &connectError{err: err, network: true}
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	c, err := o.handshake(&guardConn{Conn: raw, timeout: o.CommandTimeout})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, &connectError{err: err, network: ctx.Err() != nil}
	}
	return c, nil
}

// connectError marks a failure before the first command about a message.
type connectError struct {
	err     error
	network bool
}

func (e *connectError) Error() string { return "connecting to the relay: " + e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

func (o *Options) handshake(raw net.Conn) (*conn, error) {
	config := &tls.Config{ServerName: o.Host, RootCAs: o.RootCAs, InsecureSkipVerify: o.SkipVerify, MinVersion: tls.VersionTLS12}
	c := &conn{raw: raw}
	switch o.TLS {
	case StartTLS:
		client, err := smtp.NewClientStartTLS(raw, config)
		if err != nil {
			return nil, fmt.Errorf("STARTTLS: %w", err)
		}
		c.client = client
	case ImplicitTLS:
		c.client = smtp.NewClient(tls.Client(raw, config))
	default:
		c.client = smtp.NewClient(raw)
	}
	c.client.CommandTimeout, c.client.SubmissionTimeout = o.CommandTimeout, o.DataTimeout
	if err := c.client.Hello(o.LocalName); err != nil {
		return nil, err
	}
	if o.Username == "" {
		return c, nil
	}
	var auth sasl.Client
	switch {
	case c.client.SupportsAuth(sasl.Plain):
		auth = sasl.NewPlainClient("", o.Username, o.Password)
	case c.client.SupportsAuth(sasl.Login):
		auth = &loginClient{answers: []string{o.Username, o.Password}}
	default:
		return nil, ErrNoAuth
	}
	if err := c.client.Auth(auth); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return c, nil
}

// loginClient answers LOGIN's two questions in order, whatever their wording:
// servers differ, and go-sasl's client knows one.
type loginClient struct{ answers []string }

func (l *loginClient) Start() (string, []byte, error) { return sasl.Login, nil, nil }

func (l *loginClient) Next([]byte) ([]byte, error) {
	if len(l.answers) == 0 {
		return nil, errors.New("the relay asks more than a name and a password")
	}
	answer := l.answers[0]
	l.answers = l.answers[1:]
	return []byte(answer), nil
}

// guardConn bounds every write in time and what is read between two writes in
// size: go-smtp sets no deadline while a body is written and reads answers of
// any number of lines.
type guardConn struct {
	net.Conn
	timeout time.Duration
	read    atomic.Int64
}

const maxAnswer = 64 << 10

var errLongAnswer = fmt.Errorf("the relay's answer exceeds %d bytes", maxAnswer)

func (g *guardConn) Read(b []byte) (int, error) {
	if g.read.Load() > maxAnswer {
		return 0, errLongAnswer
	}
	n, err := g.Conn.Read(b)
	g.read.Add(int64(n))
	return n, err
}

func (g *guardConn) Write(b []byte) (int, error) {
	g.read.Store(0)
	if err := g.Conn.SetWriteDeadline(time.Now().Add(g.timeout)); err != nil { // a deadline of the kernel's clock
		return 0, err
	}
	return g.Conn.Write(b)
}
