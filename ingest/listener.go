package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// listener accepts connections within their bounds, and continues when the system
// has no more files or memory for them.
type listener struct {
	net.Listener
	opts     Options
	counters *connCounters
	open     atomic.Int64
	now      func() time.Time
	closing  chan struct{}
	close    func() error

	mu struct {
		sync.Mutex
		unauthenticated map[netip.Prefix]int // unauthenticated connections by address
		logged          map[string]time.Time // when a fault was last logged
	}
}

func newListener(ln net.Listener, opts Options, counters *connCounters) *listener {
	l := &listener{Listener: ln, opts: opts, counters: counters, now: time.Now, closing: make(chan struct{})}
	if opts.Now != nil {
		l.now = opts.Now
	}
	l.close = sync.OnceValue(func() error {
		close(l.closing)
		return ln.Close()
	})
	l.mu.unauthenticated = map[netip.Prefix]int{}
	l.mu.logged = map[string]time.Time{}
	return l
}

// Close implements [net.Listener].
func (l *listener) Close() error { return l.close() }

const (
	// firstPause and longestPause are how long accepting rests when it fails, twice
	// as long each time.
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
	// logPause is the least time between two log lines about the same fault.
	logPause = time.Minute
)

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for pause := firstPause; ; {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			if c := l.admit(c); c != nil {
				return c, nil
			}
		case interrupted(err):
		case exhausted(err):
			l.counters.acceptFailures.Inc()
			l.warn("files", "no connection can be accepted for now; raise the limit of open files, or lower --max-connections", "error", err)
			select {
			case <-l.closing:
				return nil, net.ErrClosed
			case <-time.After(pause):
			}
			pause = min(2*pause, longestPause)
		default:
			return nil, err
		}
	}
}

// exhausted reports whether an error of accepting passes when connections or memory
// of the system are given back.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// interrupted reports whether an error is about one connection, which is gone.
func interrupted(err error) bool {
	for _, one := range []syscall.Errno{
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN,
		syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// admit returns the connection to serve, nil when there are too many.
func (l *listener) admit(nc net.Conn) net.Conn {
	c := &clientConn{Conn: nc, owner: l, from: l.source(nc)}
	if l.open.Add(1) > int64(l.opts.Connections) {
		l.open.Add(-1)
		l.counters.refusedAll.Inc()
		l.warn("all", "a connection is turned away: --max-connections are open", "connections", l.opts.Connections)
		turnAwayConn(nc)
		return nil
	}
	if c.from.IsValid() && !l.register(c) {
		l.open.Add(-1)
		l.counters.refusedAddress.Inc()
		l.warn("address", "a connection is turned away: its address has --max-connections-per-address that were not authenticated", "address", c.from, "connections", l.opts.AddressConnections)
		turnAwayConn(nc)
		return nil
	}
	l.counters.open.Store(l.open.Load())
	if s, ok := nc.(secure); ok {
		return &tlsConn{c, s}
	}
	return c
}

// source is what a connection is counted by: an IPv4 address or the /64 network of
// an IPv6 address, which is one customer's. It is zero for those that are not
// counted.
func (l *listener) source(nc net.Conn) netip.Prefix {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if l.opts.Uncounted(addr) {
		return netip.Prefix{}
	}
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.WithZone("").Prefix(bits)
	return p
}

// register counts an unauthenticated connection, if its address may have one more.
func (l *listener) register(c *clientConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.unauthenticated[c.from] >= l.opts.AddressConnections {
		return false
	}
	l.mu.unauthenticated[c.from]++
	l.counters.unauthenticated.Add(1)
	c.counted.Store(true)
	return true
}

// trust ends the counting of a connection among those of its address.
func (l *listener) trust(c *clientConn) {
	if !c.counted.Swap(false) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counters.unauthenticated.Add(-1)
	if l.mu.unauthenticated[c.from]--; l.mu.unauthenticated[c.from] <= 0 {
		delete(l.mu.unauthenticated, c.from)
	}
}

// left ends the counting of a connection.
func (l *listener) left(c *clientConn) {
	l.trust(c)
	l.counters.open.Store(l.open.Add(-1))
}

// warn logs a fault, not more often than once in a while.
func (l *listener) warn(what, message string, args ...any) {
	now := l.now()
	l.mu.Lock()
	last, ever := l.mu.logged[what]
	often := ever && now.Sub(last) < logPause
	if !often {
		l.mu.logged[what] = now
	}
	l.mu.Unlock()
	if !often {
		l.opts.Logger.Warn(message, args...)
	}
}

// textTurnedAway answers a connection that is not served.
const textTurnedAway = "too many connections are open; try again later\n"

// turnAwayConn answers and closes a connection that is not served. Over TLS it is
// only closed: a handshake would hold up all others.
func turnAwayConn(nc net.Conn) {
	if _, ok := nc.(secure); !ok && nc.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		fmt.Fprintf(nc, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", // it is closed next
			len(textTurnedAway), textTurnedAway)
	}
	nc.Close() // nothing is lost
}

// uncounted reports whether connections of an address are not counted by address.
func uncounted(more func(netip.Addr) bool) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return a.IsLoopback() || more != nil && more(a) }
}

// addressConnections is how many unauthenticated connections an address may have
// by default: a quarter of all, at most 1,024.
func addressConnections(n, all int) int { return cmp.Or(n, max(1, min(all/4, 1024))) }
