package ingest

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// clientConn is a connection of a client. It hands on only what is properly framed.
type clientConn struct {
	net.Conn
	owner   *listener
	framing framing
	// malformed is set when the framing was wrong. Nothing is read after it.
	malformed atomic.Bool
	from      netip.Prefix
	closed    atomic.Bool
	// counted is true while the connection counts among those of its address.
	counted atomic.Bool
	// vouched is set when a request is authenticated; see TakeAuthenticated. The
	// handlers of the connection's requests touch it, one at a time.
	vouched bool
}

// Read implements [net.Conn].
func (c *clientConn) Read(p []byte) (int, error) {
	if c.malformed.Load() {
		return 0, errFraming
	}
	n, err := c.Conn.Read(p)
	if n == 0 {
		return n, err
	}
	good, bad := c.framing.scan(p[:n])
	if bad == nil {
		return n, err
	}
	c.malformed.Store(true)
	c.owner.counters.malformed.Inc()
	if c.framing.state <= frameMethod0 || c.framing.trailer {
		// The library takes an error between requests for the end of the connection,
		// and one in front of trailers for theirs: it is to see that something began.
		p[good] = '!'
		good++
	}
	return good, nil
}

// NetConn is the connection without what is checked here.
func (c *clientConn) NetConn() net.Conn { return c.Conn }

// Close implements [net.Conn].
func (c *clientConn) Close() error {
	if !c.closed.Swap(true) {
		c.owner.left(c)
		if c.malformed.Load() {
			c.linger()
		}
	}
	return c.Conn.Close()
}

const (
	// lingerTime and lingerBytes bound what is read of a connection whose request was
	// malformed, after the answer: closed with bytes unread, it would be reset, and
	// the client not get to read the answer.
	lingerTime  = 250 * time.Millisecond
	lingerBytes = 64 << 10
)

func (c *clientConn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	io.Copy(io.Discard, io.LimitReader(c.Conn, lingerBytes)) //nolint:errcheck // it is closed next
}

func (c *clientConn) base() *clientConn { return c }

// tlsConn is a clientConn over TLS. The server knows it by its methods.
type tlsConn struct {
	*clientConn
	secure
}

type secure interface {
	Handshake() error
	ConnectionState() tls.ConnectionState
}

func connOf(ctx *fasthttp.RequestCtx) *clientConn {
	if c, ok := ctx.Conn().(interface{ base() *clientConn }); ok {
		return c.base()
	}
	return nil
}

// Authenticated says that a request's credentials were right. Its connection no
// longer counts among the unauthenticated ones of its address.
func Authenticated(ctx *fasthttp.RequestCtx) {
	if c := connOf(ctx); c != nil {
		c.vouched = true
		if c.counted.Load() {
			c.owner.trust(c)
		}
	}
}

// TakeAuthenticated reports whether Authenticated was called for a request of the
// connection since the last call of TakeAuthenticated. It is for a node that answers
// the requests of another node's connections.
func TakeAuthenticated(ctx *fasthttp.RequestCtx) bool {
	c := connOf(ctx)
	if c == nil || !c.vouched {
		return false
	}
	c.vouched = false
	return true
}
