package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	dialTimeout = 2 * time.Second
	// idleTime is less than servers keep a connection that nothing comes on.
	idleTime = 15 * time.Second
	// wholeBytes is up to which size an answer is read before it is passed on.
	wholeBytes = 64 << 10
	// headBytes is the longest head of an answer.
	headBytes = 16 << 10
	// writeTime bounds the writing of a call, head and body.
	writeTime = 30 * time.Second
)

// errNotReached means that nothing of a call has reached the node.
var errNotReached = errors.New("the node cannot be connected to")

// errHandshake means that a node does not speak TLS, or shows a certificate that is
// not taken.
var errHandshake = errors.New("TLS handshake")

// conns are the connections to the nodes, by address.
type conns struct {
	max int
	tls func(host string) *tls.Config // nil: plain HTTP
	mu  struct {
		sync.Mutex
		closed bool
		byAddr map[string]*conn
	}
}

// conn are the connections to one node.
type conn struct {
	client *fasthttp.HostClient
	tls    func(host string) *tls.Config // nil: plain HTTP
	// session is the session id of the node's process, nil until it was asked.
	session atomic.Pointer[string]
	gone    time.Time // since when the node is gone, zero while it is not; the owner's lock guards it
	mu      struct {
		sync.Mutex
		open map[net.Conn]struct{}
	}
}

// to returns the connections to an address, nil when no more are made.
func (c *conns) to(addr string) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil
	}
	x := c.mu.byAddr[addr]
	if x == nil {
		x = newConn(addr, c.max, c.tls)
		if c.mu.byAddr == nil {
			c.mu.byAddr = map[string]*conn{}
		}
		c.mu.byAddr[addr] = x
	}
	return x
}

// keep cuts the connections to all addresses but some, once they have not been
// among those for a time; it reports whether there are any to be cut later.
func (c *conns) keep(addrs map[string]bool, now time.Time, grace time.Duration) (left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, x := range c.mu.byAddr {
		switch {
		case addrs[addr]:
			x.gone = time.Time{}
		case x.gone.IsZero() && grace > 0:
			x.gone, left = now, true
		case now.Sub(x.gone) < grace:
			left = true
		default:
			delete(c.mu.byAddr, addr)
			x.cut()
		}
	}
	return left
}

// close cuts all connections, and has none made again.
func (c *conns) close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.keep(nil, time.Time{}, 0)
}

func newConn(addr string, connections int, over func(host string) *tls.Config) *conn {
	x := &conn{tls: over}
	x.mu.open = map[net.Conn]struct{}{}
	x.client = &fasthttp.HostClient{
		Addr: addr, Dial: x.dial, MaxConns: connections, MaxIdleConnDuration: idleTime, WriteTimeout: writeTime,
		// What may have reached a node is not repeated.
		MaxIdemponentCallAttempts: 1,
		MaxResponseBodySize:       wholeBytes, StreamResponseBody: true, ReadBufferSize: headBytes,
		DisablePathNormalizing: true, NoDefaultUserAgentHeader: true,
	}
	return x
}

// do makes a call. The error wraps errNotReached when nothing has left for the
// node.
func (x *conn) do(req *fasthttp.Request, resp *fasthttp.Response) error {
	err := x.client.Do(req, resp)
	if errors.Is(err, fasthttp.ErrNoFreeConns) {
		return errors.Join(errNotReached, err)
	}
	if err != nil && !errors.Is(err, errNotReached) {
		// The rest that wait to be used are as old, and likely to be broken too.
		x.client.CloseIdleConnections()
	}
	return err
}

// tracked is a connection that can be cut from outside.
type tracked struct {
	net.Conn
	of *conn
}

// Close implements [net.Conn].
func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.mu.open, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}

func (x *conn) dial(addr string) (net.Conn, error) {
	// Keep-alives tell when the node's machine is gone.
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 5 * time.Second}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, errors.Join(errNotReached, err)
	}
	t := &tracked{c, x}
	x.mu.Lock()
	x.mu.open[t] = struct{}{}
	x.mu.Unlock()
	if x.tls == nil {
		return t, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	// fasthttp would do the handshake itself, and its failure would look like that of
	// a call that may have been carried out.
	over := tls.Client(t, x.tls(host))
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	if err := over.HandshakeContext(ctx); err != nil {
		t.Close() // nothing was sent
		return nil, errors.Join(errNotReached, fmt.Errorf("%w with %s: %w", errHandshake, addr, err))
	}
	return over, nil
}

// cut breaks all connections: calls that wait on one fail.
func (x *conn) cut() {
	x.client.CloseIdleConnections()
	x.mu.Lock()
	open := make([]net.Conn, 0, len(x.mu.open))
	for t := range x.mu.open {
		open = append(open, t)
	}
	x.mu.Unlock()
	for _, t := range open {
		t.Close() // it is to be gone
	}
}
