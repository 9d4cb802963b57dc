package ingest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/eventually"
)

// TestQ1OtherHandlersShareMemory: bodies of handlers beside this package's are taken
// from the same memory before they are read, however slowly they arrive; the gauge
// shows them, requests without room are answered so, and all is given back.
func TestQ1OtherHandlersShareMemory(t *testing.T) {
	t.Parallel()
	const limit, body = 1 << 20, 200 << 10
	opts := testOptions()
	opts.Memory, opts.Metrics = NewMemory(limit), metrics.NewSet()
	opts.DrainTime = 3 * time.Second
	anybody := opts.Memory.Part(4)
	addr, h := listen(t, newFakeNode(), opts, func(h *Handler) fasthttp.RequestHandler {
		return func(ctx *fasthttp.RequestCtx) {
			memory, most := opts.Memory, body
			switch string(ctx.Path()) {
			case "/api/v1/public":
				memory, most = anybody, 20<<10
			case "/api/v1/events":
				route(h)(ctx)
				return
			}
			if _, err := ReadBody(ctx, memory, most); errors.Is(err, ErrNoMemory) {
				ctx.SetStatusCode(503)
			}
			ctx.SetContentType("application/json")
			ctx.SetBodyString(`"read"`)
		}
	})
	begin := func(path string, n int) *conn {
		c := dial(t, addr)
		c.write(fmt.Sprintf("POST /api/v1/%s HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n", path, n), strings.Repeat("x", n-100))
		return c
	}
	var slow []*conn
	for range 40 {
		slow = append(slow, begin("public", 20<<10))
	}
	eventually.Holds(t, "the part is taken", func() bool { return anybody.Used() > limit/4-(20<<10) })
	if anybody.Used() > limit/4 || opts.Memory.Used() != anybody.Used() {
		t.Errorf("anybody's bodies take %d bytes, all together %d", anybody.Used(), opts.Memory.Used())
	}
	// There is room left for others.
	c := dial(t, addr)
	c.write(post("events", goodEvent))
	c.expect(202, `"success":true`, false)
	for range 40 {
		slow = append(slow, begin("read", body))
	}
	refused := make(chan bool)
	for _, c := range slow {
		go func() {
			answer := make([]byte, 12)
			_, err := io.ReadFull(c, answer)
			refused <- err == nil && string(answer) == "HTTP/1.1 503"
		}()
	}
	told := 0
	for told < 60 { // of 80; the others wait for the rest of their bodies
		if !<-refused {
			t.Fatal("a connection was closed without an answer, or answered otherwise")
		}
		told++
	}
	gauge := h.opts.Metrics.GetOrCreateGauge("muster_ingest_in_flight_bytes", nil).Get()
	if used := opts.Memory.Used(); used > limit || used < limit/2 || gauge != float64(used) {
		t.Errorf("%d bytes in flight, the gauge shows %v", used, gauge)
	}
	for _, c := range slow {
		c.Close()
	}
	for range len(slow) - told {
		<-refused
	}
	eventually.Holds(t, "all is given back", func() bool { return opts.Memory.Used() == 0 && anybody.Used() == 0 })
}

// TestQ1AnswersHoldMemory: what a handler holds of its answer is given back when the
// client has read it, and when it is gone without or does not read in time.
func TestQ1AnswersHoldMemory(t *testing.T) {
	t.Parallel()
	const answer = 8 << 20
	serve := func(writeTimeout time.Duration) (memory *Memory, held *atomic.Int64, deaf func() *conn, addr string) {
		opts := testOptions()
		opts.Memory, opts.WriteTimeout = NewMemory(20<<20), writeTimeout
		held = &atomic.Int64{}
		addr, _ = listen(t, newFakeNode(), opts, func(*Handler) fasthttp.RequestHandler {
			return func(ctx *fasthttp.RequestCtx) {
				if !opts.Memory.Hold(ctx, answer) {
					ctx.SetStatusCode(503)
					return
				}
				held.Add(1)
				ctx.Response.SetBodyRaw(make([]byte, answer))
			}
		})
		return opts.Memory, held, func() *conn {
			c := dial(t, addr)
			c.Conn.(*net.TCPConn).SetReadBuffer(4096)
			c.write("GET /api/v1/x HTTP/1.1\r\nHost: m\r\n\r\n")
			return c
		}, addr
	}
	memory, _, deaf, addr := serve(time.Hour)
	gone := []*conn{deaf(), deaf()}
	eventually.Holds(t, "two answers wait", func() bool { return memory.Used() == 2*answer })
	c := dial(t, addr)
	c.write("GET /api/v1/x HTTP/1.1\r\nHost: m\r\n\r\n")
	head := make([]byte, 12)
	if _, err := io.ReadFull(c, head); err != nil || string(head) != "HTTP/1.1 503" {
		t.Errorf("%q, %v", head, err)
	}
	for _, c := range gone {
		c.Close()
	}
	eventually.Holds(t, "the memory of those who are gone is free", func() bool { return memory.Used() == 0 })
	// A client that does not read is cut off.
	memory, held, deaf, _ := serve(400 * time.Millisecond)
	c = deaf()
	eventually.Holds(t, "an answer was held and is given back", func() bool { return held.Load() == 1 && memory.Used() == 0 })
	c.Close()
}

// TestBodyTime: a body has a time for all and what its size takes, a minute at most.
func TestBodyTime(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{0: 10 * time.Second, 64 << 10: 11 * time.Second, 1 << 20: 26 * time.Second, 8 << 20: time.Minute, MaxBodyBytes: time.Minute} {
		if got := bodyTime(n, time.Minute); got != want {
			t.Errorf("%d bytes: %v, want %v", n, got, want)
		}
	}
}

// TestTricklingBodyIsCut: a body that does not come in its time is given up, and its
// memory with it.
func TestTricklingBodyIsCut(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	opts.Memory, opts.ReadTimeout = NewMemory(64<<20), 500*time.Millisecond
	addr, _ := listen(t, newFakeNode(), opts, route)
	c := dial(t, addr)
	c.write(fmt.Sprintf("POST /api/v1/events HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n", credentials, 1<<20), strings.Repeat(" ", 20_000))
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range 100 {
			if _, err := io.WriteString(c, " "); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond) // a slow client is what is tested
		}
	}()
	c.expect(408, "did not arrive in time", true)
	eventually.Holds(t, "the memory is free", func() bool { return opts.Memory.Used() == 0 })
	c.Close()
	<-stop
}
