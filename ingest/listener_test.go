package ingest

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/logbuffer"
	"github.com/musterhq/muster/internal/servertest"
)

// brokenListener fails to accept as the test says, and gives its connections
// another address.
type brokenListener struct {
	net.Listener
	errs []error
	from func(n int) string // of the n-th connection; nil leaves it
	n    int
}

func (l *brokenListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: err}
	}
	c, err := l.Listener.Accept()
	if err != nil || l.from == nil {
		return c, err
	}
	l.n++
	return &movedConn{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(l.from(l.n - 1)))}, nil
}

type movedConn struct {
	net.Conn
	from net.Addr
}

func (c *movedConn) RemoteAddr() net.Addr { return c.from }

// listenOn starts a server on l, whose own listener is made here. served gets what Serve
// returned, for a test of its end.
func listenOn(t *testing.T, opts Options, l *brokenListener) (s *Server, addr string, served chan error) {
	t.Helper()
	h, err := New(newFakeNode(), testApps(), opts)
	if err != nil {
		t.Fatal(err)
	}
	l.Listener = servertest.Listen(t)
	s, served = NewServer(opts, route(h)), make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String(), served
}

// TestAcceptingGoesOn: the server rides out what passes, such as a process that has no
// more files, says so once, and ends only when the listener does.
func TestAcceptingGoesOn(t *testing.T) {
	t.Parallel()
	var log logbuffer.Buffer
	opts := testOptions()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	l := &brokenListener{errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS}}
	s, addr, served := listenOn(t, opts, l)
	c := dial(t, addr)
	c.write(post("events", goodEvent))
	c.expect(202, `"success":true`, false)
	if n := s.counters.acceptFailures.Get(); n != 3 {
		t.Errorf("%d failures counted", n)
	}
	if n := strings.Count(log.String(), "limit of open files"); n != 1 {
		t.Errorf("%d lines about it:\n%s", n, log.String())
	}
	c.Close()
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("the listener was closed: %v", err)
	}
	_, _, served = listenOn(t, testOptions(), &brokenListener{errs: []error{errors.New("broken for good")}})
	if err := <-served; err == nil || !strings.Contains(err.Error(), "broken for good") {
		t.Errorf("the listener broke: %v", err)
	}
}

// TestPauseEndsWithTheListener: a server that has no files can be stopped.
func TestPauseEndsWithTheListener(t *testing.T) {
	t.Parallel()
	errs := make([]error, 1000)
	for i := range errs {
		errs[i] = syscall.EMFILE
	}
	s, _, served := listenOn(t, testOptions(), &brokenListener{errs: errs})
	eventually.Holds(t, "accepting fails", func() bool { return s.counters.acceptFailures.Get() > 2 })
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server continues")
	}
}

// turnedAway reports whether a connection was closed with a 503.
func (c *conn) turnedAway() bool {
	c.t.Helper()
	b, err := io.ReadAll(c)
	return err == nil && strings.HasPrefix(string(b), "HTTP/1.1 503 ") && strings.HasSuffix(string(b), textTurnedAway)
}

// TestConnectionsAreBounded: no more connections than --max-connections are served;
// others are answered 503, until one goes.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	opts.Connections = 3
	s, addr, _ := listenOn(t, opts, &brokenListener{})
	var open []*conn
	for range 3 {
		c := dial(t, addr)
		c.write(post("events", goodEvent))
		c.expect(202, `"success":true`, false)
		open = append(open, c)
	}
	for range 5 {
		if !dial(t, addr).turnedAway() {
			t.Fatal("one more is served")
		}
	}
	open[1].Close()
	eventually.Holds(t, "one goes", func() bool { return s.counters.open.Load() == 2 })
	c := dial(t, addr)
	c.write(post("events", goodEvent))
	c.expect(202, `"success":true`, false)
}

// TestUnauthenticatedConnectionsAreBounded: an address has its share of connections that did not
// authenticate a request, an IPv6 network as well, and others have theirs. A
// connection that did is not counted, nor are loopback and proxies.
func TestUnauthenticatedConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from         func(n int) string
		authenticate bool
		served       int
	}{
		"one address":                    {func(int) string { return "192.0.2.1:5" }, false, 4},
		"one address, mapped to IPv6":    {func(n int) string { return []string{"192.0.2.1:5", "[::ffff:192.0.2.1]:5"}[n%2] }, false, 4},
		"one IPv6 network":               {func(n int) string { return "[2001:db8:0:1::" + string(rune('a'+n%6)) + "]:5" }, false, 4},
		"several IPv6 networks":          {func(n int) string { return "[2001:db8:0:" + string(rune('a'+n%6)) + "::1]:5" }, false, 12},
		"two addresses":                  {func(n int) string { return []string{"192.0.2.1:5", "192.0.2.2:5"}[n%2] }, false, 8},
		"loopback":                       {func(int) string { return "127.0.0.9:5" }, false, 12},
		"a proxy":                        {func(int) string { return "198.51.100.7:5" }, false, 12},
		"one address with right secrets": {func(int) string { return "192.0.2.1:5" }, true, 12},
	} {
		t.Run(name, func(t *testing.T) {
			opts := testOptions()
			opts.Connections, opts.AddressConnections = 100, 4
			opts.Uncounted = func(a netip.Addr) bool { return a == netip.MustParseAddr("198.51.100.7") }
			s, addr, _ := listenOn(t, opts, &brokenListener{from: tt.from})
			var served []*conn
			for range 12 {
				c := dial(t, addr)
				request := post("events", goodEvent)
				if !tt.authenticate {
					request = strings.Replace(request, testSecret, "wrong", 1)
				}
				if _, err := io.WriteString(c, request); err != nil {
					continue
				}
				line, err := c.r.Peek(12)
				if err != nil || string(line[9:]) == "503" {
					continue
				}
				c.expect(202, `"success":`+strconv.FormatBool(tt.authenticate), false)
				served = append(served, c)
			}
			if len(served) != tt.served {
				t.Fatalf("%d connections are served, want %d", len(served), tt.served)
			}
			counted := int64(tt.served)
			if tt.authenticate || name == "loopback" || name == "a proxy" {
				counted = 0
			}
			if n := s.counters.unauthenticated.Load(); n != counted {
				t.Errorf("%d connections count as unauthenticated, want %d", n, counted)
			}
			for _, c := range served {
				c.Close()
			}
			eventually.Holds(t, "all are forgotten", func() bool {
				return s.counters.open.Load() == 0 && s.counters.unauthenticated.Load() == 0
			})
		})
	}
}

// TestSlowHeadIsCut: a head that trickles, and one that never begins, are cut in a
// short time; a connection may be idle for longer between requests.
func TestSlowHeadIsCut(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	opts.HeadTimeout, opts.IdleTimeout, opts.ReadTimeout = time.Second, time.Hour, time.Hour
	addr, _ := listen(t, newFakeNode(), opts, route)
	idle := dial(t, addr)
	idle.write(post("events", goodEvent))
	idle.expect(202, `"success":true`, false)
	starts := map[string]string{
		"nothing":              "",
		"half a line":          "POST /api",
		"half a head":          "POST /api/v1/events HTTP/1.1\r\nHost: x\r\n",
		"half of a small body": "POST /api/v1/events HTTP/1.1\r\n" + credentials + "Content-Length: 5000\r\n\r\n{",
		"a request, then half": post("events", goodEvent) + "POST /api/v1/events HTTP/1.1\r\nHost: x\r\n",
	}
	t.Run("slow", func(t *testing.T) { // all at once
		for name, start := range starts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := dial(t, addr) // it fails within a minute
				c.write(start)
				stop := make(chan struct{})
				go func() { // it trickles
					defer close(stop)
					for len(start) > 0 {
						if _, err := io.WriteString(c, "x"); err != nil {
							return
						}
						time.Sleep(20 * time.Millisecond) // a slow client is what is tested
					}
				}()
				if strings.HasPrefix(start, post("events", goodEvent)) {
					c.expect(202, `"success":true`, false)
				}
				if status, body, closed := c.answer(); status != 408 || !closed {
					t.Errorf("%d %s", status, body)
				}
				c.Close()
				<-stop
			})
		}
	})
	idle.write(post("events", goodEvent))
	idle.expect(202, `"success":true`, false)
}

// TestIdleConnectionIsClosed: a connection that has no request for a while is closed,
// without an answer.
func TestIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	opts.IdleTimeout = 100 * time.Millisecond
	addr, _ := listen(t, newFakeNode(), opts, route)
	c := dial(t, addr)
	c.write(post("events", goodEvent))
	c.expect(202, `"success":true`, false)
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Errorf("%q %v", b, err)
	}
}
