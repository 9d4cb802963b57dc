package peer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/cluster"
)

// wiretap hands connections on to a node and keeps what goes there.
type wiretap struct {
	addr string
	mu   sync.Mutex
	to   string
	open []net.Conn
	kept bytes.Buffer
}

// turn hands what comes on to another address from now on.
func (w *wiretap) turn(to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
	for _, c := range w.open {
		c.Close()
	}
	w.open = nil
}

func newWiretap(t *testing.T, to string) *wiretap {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	w := &wiretap{addr: ln.Addr().String(), to: to}
	var copies sync.WaitGroup
	copies.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			out, err := net.Dial("tcp", w.to)
			if err != nil {
				w.mu.Unlock()
				in.Close()
				continue
			}
			w.open = append(w.open, in)
			w.mu.Unlock()
			copies.Go(func() {
				io.Copy(io.MultiWriter(w, out), in) // kept before it can be answered
				out.Close()
			})
			copies.Go(func() {
				io.Copy(in, out)
				in.Close()
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		w.turn("")
		copies.Wait()
	})
	return w
}

func (w *wiretap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept.Write(b)
}

// take returns what was kept since the last time.
func (w *wiretap) take() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.kept.Reset()
	return bytes.Clone(w.kept.Bytes())
}

// replay writes to a node what went to one, and returns the statuses of the answers.
func replay(t *testing.T, m *member, kept []byte) (statuses []int) {
	t.Helper()
	c, err := net.Dial("tcp", m.Address)
	ok(t, err)
	defer c.Close()
	ok(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = c.Write(kept)
	ok(t, err)
	ok(t, c.(*net.TCPConn).CloseWrite())
	for in := bufio.NewReader(c); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		io.Copy(io.Discard, res.Body)
		statuses = append(statuses, res.StatusCode)
	}
}

// TestL2CallsCountOnce: a call between nodes that an attacker saw and sends again,
// to the same node or another, is not carried out; nodes' own calls continue.
func TestL2CallsCountOnce(t *testing.T) {
	t.Parallel()
	x, router, owner := two(t, 2*time.Second)
	third := newMember(t, x, "third", secret, time.Second)
	tap := newWiretap(t, owner.Address)
	x.set(1, cluster.Node{ID: owner.ID, Address: tap.addr})
	x.change(func() { x.all = append(x.all, cluster.Node{ID: "tap", Address: tap.addr}) })
	var counted, commands atomic.Int64
	for _, m := range []*member{owner, third} {
		m.state.own(1, true)
		m.handle = func(rc *fasthttp.RequestCtx) { fmt.Fprint(rc, counted.Add(1)) }
		m.state.submit = func(int, []byte) ([]byte, error) { commands.Add(1); return nil, nil }
	}
	calls := func(n int64) []byte {
		t.Helper()
		if res, body := router.send("POST", "/x", []byte("event")); res.StatusCode != 200 || body != fmt.Sprint(n) {
			t.Fatalf("a request: %d %s, want %d", res.StatusCode, body, n)
		}
		if _, err := router.peers.Command(t.Context(), 1, []byte("record")); err != nil || commands.Load() != n {
			t.Fatalf("a command: %v, %d were carried out, want %d", err, commands.Load(), n)
		}
		return tap.take()
	}
	calls(1) // the owner's process gets known
	for n := int64(2); n < 5; n++ {
		kept := calls(n)
		// It must not be said that nothing was done where it was.
		if have := replay(t, owner, kept); fmt.Sprint(have) != "[503 503]" {
			t.Errorf("the owner answers %v to what came before", have)
		}
		if have := replay(t, third, kept); fmt.Sprint(have) != "[421 421]" {
			t.Errorf("another node answers %v to what came before elsewhere", have)
		}
		if counted.Load() != n || commands.Load() != n {
			t.Errorf("what was sent again counts: %d requests and %d commands, want %d", counted.Load(), commands.Load(), n)
		}
	}
}

// TestAnotherProcess: a node that was started again at its address is called as before,
// and what the process before it was sent is nothing to it.
func TestAnotherProcess(t *testing.T) {
	t.Parallel()
	x, router, owner := two(t, 2*time.Second)
	next := newMember(t, x, "owner", secret, time.Second)
	next.state.own(1, true)
	tap := newWiretap(t, owner.Address)
	x.set(1, cluster.Node{ID: owner.ID, Address: tap.addr})
	x.change(func() { x.all = append(x.all, cluster.Node{ID: "tap", Address: tap.addr}) })
	for _, m := range []*member{owner, next} {
		var counted atomic.Int64
		m.handle = func(rc *fasthttp.RequestCtx) { fmt.Fprint(rc, counted.Add(1)) }
		for n := int64(1); n < 4; n++ {
			res, body := router.send("POST", "/x", nil)
			if res.StatusCode == 503 && n == 1 { // it was on a connection to the process before
				res, body = router.send("POST", "/x", nil)
			}
			if res.StatusCode != 200 || body != fmt.Sprint(n) {
				t.Fatalf("%d %s, want %d", res.StatusCode, body, n)
			}
		}
		tap.turn(next.Address)
		if m == owner {
			have := replay(t, next, tap.take())
			if len(have) < 3 || slices.ContainsFunc(have, func(status int) bool { return status != 421 }) {
				t.Errorf("calls to the process before are answered %v", have)
			}
		}
	}
}

// TestWindow compares what is remembered of calls with all of them.
func TestWindow(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	w, all, top := &window{}, map[uint64]bool{}, uint64(0)
	for i := range 300_000 {
		n := max(1, top) + uint64(rng.IntN(3))
		switch rng.IntN(10) {
		case 0, 1, 2:
			n -= min(n-1, uint64(rng.IntN(100)))
		case 3:
			n -= min(n-1, uint64(rng.IntN(2*windowCalls)))
		case 4:
			if i%1000 == 0 {
				n += uint64(rng.IntN(3 * windowCalls))
			}
		}
		want := !all[n] && n+windowCalls > top
		if have := w.take(n); have != want {
			t.Fatalf("call %d: number %d of up to %d is new: %v, want %v", i, n, top, have, want)
		}
		all[n], top = true, max(top, n)
	}
	if w.take(0) {
		t.Error("there is no call 0")
	}
}

// TestReplaysAreBounded: as many processes are remembered as may call at a time, each
// for as long as its calls are let in; there is no room for more by forgetting those.
func TestReplaysAreBounded(t *testing.T) {
	t.Parallel()
	var r replays
	now := time.UnixMilli(1_700_000_000_000)
	for i := range maxStreams {
		if !r.fresh(fmt.Sprint(i), 1, now) {
			t.Fatalf("process %d is refused", i)
		}
	}
	now = now.Add(streamTime)
	if r.fresh("one more", 1, now) || r.fresh("0", 1, now) {
		t.Error("something was forgotten too early")
	}
	if !r.fresh("0", 2, now) {
		t.Error("a known process is refused")
	}
	now = now.Add(time.Millisecond)
	if !r.fresh("one more", 1, now) || r.fresh("one more", 1, now) || r.fresh("0", 2, now) {
		t.Error("room is made wrongly")
	}
	if len(r.mu.streams) != 2 {
		t.Errorf("%d processes are remembered", len(r.mu.streams))
	}
}
