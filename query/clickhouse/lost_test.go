package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// way is the way to a server. What was connected when it is broken is reset as soon
// as it is used again, which neither side sees before: as where a router dropped
// it.
type way struct {
	addr string
	ln   net.Listener
	done sync.WaitGroup
	mu   struct {
		sync.Mutex
		open map[*stretch]struct{}
		// resets is how many connections were reset.
		resets int
		// at has the next connection reset on which it is sent.
		at string
	}
}

type stretch struct {
	client, server *net.TCPConn
	broken         bool
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{addr: ln.Addr().String(), ln: ln}
	w.mu.open = map[*stretch]struct{}{}
	w.done.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			x := &stretch{client: in.(*net.TCPConn), server: out.(*net.TCPConn)}
			w.mu.Lock()
			w.mu.open[x] = struct{}{}
			w.mu.Unlock()
			w.done.Go(func() { w.carry(x) })
			w.done.Go(func() { io.Copy(x.client, x.server) })
		}
	})
	t.Cleanup(func() {
		w.close()
		w.done.Wait()
	})
	return w
}

func (w *way) carry(x *stretch) {
	b := make([]byte, 64<<10)
	for {
		n, err := x.client.Read(b)
		w.mu.Lock()
		broken := x.broken
		if w.mu.at != "" && strings.Contains(string(b[:n]), w.mu.at) {
			broken, w.mu.at = true, ""
		}
		if broken {
			w.mu.resets++
		}
		if broken || err != nil {
			delete(w.mu.open, x)
		}
		w.mu.Unlock()
		if broken || err != nil {
			x.client.SetLinger(0) // reset, not closed
			break
		}
		x.server.Write(b[:n])
	}
	x.client.Close()
	x.server.Close()
}

// breakOpen breaks what is open. It returns how many those are, and how many had been reset
// before.
func (w *way) breakOpen() (open, resets int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.mu.open {
		x.broken = true
	}
	return len(w.mu.open), w.mu.resets
}

func (w *way) opened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.mu.open)
}

// breakAt breaks the connection on which a text is sent next.
func (w *way) breakAt(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.at = text
}

func (w *way) resets() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.resets
}

// close ends the way: nothing connects any more.
func (w *way) close() {
	w.ln.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.mu.open {
		x.client.Close()
		x.server.Close()
	}
}

// TestL2LostConnections: connections that broke while they were idle fail no question
// and no append, and what is appended counts once. A server that is away is still
// said to be.
func TestL2LostConnections(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(services.ClickHouse(t))
	if err != nil {
		t.Fatal(err)
	}
	w := newWay(t, dsn.Host)
	dsn.Host = w.addr
	s := openOptions(t, Options{DSN: dsn.String(), Database: services.Database(t), Threads: 2})
	ctx := context.Background()
	fill := func() { // several connections at a time
		var hold, all sync.WaitGroup
		hold.Add(3)
		for range 3 {
			all.Go(func() {
				here := sync.OnceFunc(hold.Done)
				defer here() // also where there is no answer
				err := s.ask(ctx, "SELECT 1", func(driver.Rows) error { here(); hold.Wait(); return nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	position := int64(0)
	for range 3 {
		// The driver takes a connection back a moment after the answer was read, or closes
		// it: a question tries all those that it has back.
		eventually.Succeeds(t, func() error {
			have := s.conn.Stats()
			if have.Open == 0 && have.Idle >= 3 && have.Idle == w.opened() {
				return nil
			}
			if have.Open == 0 && have.Idle < 3 {
				fill()
			}
			return fmt.Errorf("%d connections are open, the driver has %+v", w.opened(), have)
		})
		open, before := w.breakOpen()
		if have := scalar(t, s, "SELECT 42"); have != 42 {
			t.Errorf("a question is answered %d", have)
		}
		// Those that are closed unused are noticed a moment later.
		eventually.Succeeds(t, func() error {
			if n := w.resets(); n < before+open {
				return fmt.Errorf("%d connections were lost, want all %d that were open", n-before, open)
			}
			return nil
		})
	}
	for _, at := range []string{"INSERT INTO events", "INSERT INTO aliases", "INSERT INTO commits"} {
		before := w.resets()
		w.breakAt(at)
		appendRecords(t, s, 0, position, position+50)
		position += 50
		if have := w.resets() - before; have != 1 {
			t.Errorf("%d connections were lost at %s", have, at)
		}
		if have := checkRecords(t, s, 0); have != position {
			t.Errorf("after a connection was lost at %s the position is %d, want %d", at, have, position)
		}
	}
	// What broke off in the middle of an answer is not begun again.
	rows := 0
	err = s.ask(ctx, "SELECT number, repeat('x', 1000) FROM numbers(1000000)", func(driver.Rows) error {
		if rows++; rows == 10 {
			w.mu.Lock()
			defer w.mu.Unlock()
			for x := range w.mu.open {
				x.server.Close()
				x.client.Close()
			}
		}
		return nil
	})
	if !errors.Is(err, ErrUnavailable) || rows < 10 || rows >= 1_000_000 {
		t.Errorf("after %d rows: %v", rows, err)
	}
	w.close()
	if err := s.ask(ctx, "SELECT 1", func(driver.Rows) error { return nil }); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a question without a server: %v", err)
	}
	b := new(query.Batch)
	historytest.FillRecords(b, 0, position, position+10)
	if err := s.Append(ctx, b); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an append without a server: %v", err)
	}
}
