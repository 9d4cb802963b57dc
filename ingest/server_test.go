package ingest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/resolver"
)

func TestMain(m *testing.M) { servertest.Main(m) }

const goodEvent = `{"event_type":"a","user":{"phone":"1"}}`

// listen starts a server on TCP.
func listen(t *testing.T, node Submitter, opts Options, wrap func(*Handler) fasthttp.RequestHandler) (addr string, h *Handler) {
	t.Helper()
	h, err := New(node, testApps(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if used := h.memory.Used(); used != 0 {
			t.Errorf("%d bytes still in flight", used)
		}
	})
	ln := servertest.Listen(t)
	servertest.Serve(t, NewServer(opts, wrap(h)), ln)
	return ln.Addr().String(), h
}

// conn is a connection that requests are written to by hand.
type conn struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute)) // each write renews it
	return &conn{t, c, bufio.NewReader(c)}
}

const credentials = "Host: test\r\nX-App-Id: app_1\r\nX-App-Secret: " + testSecret + "\r\nContent-Type: application/json\r\n"

func (c *conn) write(parts ...string) {
	c.t.Helper()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, strings.Join(parts, "")); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one response.
func (c *conn) answer() (status int, body string, closed bool) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if !json.Valid(b) {
		c.t.Fatalf("not JSON: %s", b)
	}
	return resp.StatusCode, string(b), resp.Close
}

func (c *conn) expect(status int, text string, closed bool) {
	c.t.Helper()
	s, body, cl := c.answer()
	if s != status || !strings.Contains(body, text) || cl != closed {
		c.t.Fatalf("%d closed=%v %s; want %d closed=%v … %s …", s, cl, body, status, closed, text)
	}
}

func post(path string, body string) string {
	return fmt.Sprintf("POST /api/v1/%s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", path, credentials, len(body), body)
}

// chunked encodes a body in chunks of n bytes.
func chunked(path, body string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST /api/v1/%s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n", path, credentials)
	for len(body) > 0 {
		k := min(n, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", k, body[:k])
		body = body[k:]
	}
	return b.String() + "0\r\n\r\n"
}

// A body over the limit is drained, so that the answer arrives and the
// connection continues; far beyond the limit, the connection is closed.
func TestBodyTooLarge(t *testing.T) {
	t.Parallel()
	node := newFakeNode()
	opts := testOptions()
	opts.BodyBytes, opts.DrainBytes = 64<<10, 256<<10
	addr, _ := listen(t, node, opts, route)
	c := dial(t, addr)
	for _, n := range []int{opts.BodyBytes + 1, 2 * opts.BodyBytes, 4 * opts.BodyBytes} {
		c.write(post("events", strings.Repeat("x", n)))
		c.expect(413, "longer than 65536 bytes", false)
		c.write(chunked("events/batch", strings.Repeat("x", n-2000), 1000))
		if n-2000 > opts.BodyBytes {
			c.expect(413, "longer than 65536 bytes", false)
		} else {
			c.expect(400, "byte 0", false)
		}
		c.write(post("events", goodEvent))
		c.expect(202, `"success":true`, false)
	}
	// At the limit exactly.
	full := `{"event_type":"a","user":{"phone":"1","x":"` + strings.Repeat("x", opts.BodyBytes-len(goodEvent)-7) + `"}}`
	if len(full) != opts.BodyBytes {
		t.Fatal(len(full))
	}
	c.write(post("events", full))
	c.expect(202, `"success":true`, false)
	c.write(chunked("events", full, 5000))
	c.expect(202, `"success":true`, false)

	// Beyond what is drained: the answer comes while the client still sends.
	c.write(fmt.Sprintf("POST /api/v1/events HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n", credentials, 1<<30), strings.Repeat("x", 10_000))
	c.expect(413, "longer than 65536 bytes", true)
	c = dial(t, addr)
	go io.WriteString(c, chunked("events", strings.Repeat("x", 64*opts.BodyBytes), 4000)) // cut off
	c.expect(413, "longer than 65536 bytes", true)
	if node.stored != 5 {
		t.Errorf("%d events stored", node.stored)
	}
}

// What a client announces costs nothing before it is sent (Q1), and a body that
// ends early stores nothing.
func TestBodyCutShort(t *testing.T) {
	t.Parallel()
	node := newFakeNode()
	opts := testOptions()
	opts.ReadTimeout = 5 * time.Second
	opts.InFlightBytes = 32 << 20
	addr, h := listen(t, node, opts, route)
	head := fmt.Sprintf("POST /api/v1/events HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n", credentials, 8<<20)
	var conns []*conn
	for range 20 {
		c := dial(t, addr)
		c.write(head, strings.Repeat(" ", 9000))
		conns = append(conns, c)
	}
	var used int64
	eventually.Holds(t, "bodies are under way", func() bool { used = h.memory.Used(); return used > 0 })
	if used > 20*firstRead {
		t.Errorf("%d bytes in flight for 20 bodies of 9,000 bytes", used)
	}
	for _, c := range conns {
		c.expect(408, "did not arrive in time", true)
	}
	opts = testOptions() // these do not wait for a time
	addr, _ = listen(t, node, opts, route)
	c := dial(t, addr)
	c.write(fmt.Sprintf("POST /api/v1/events HTTP/1.1\r\n%sContent-Length: 20000\r\n\r\n", credentials), strings.Repeat(" ", 10_000))
	c.Conn.(*net.TCPConn).CloseWrite()
	c.expect(400, "ended before", true)
	c = dial(t, addr)
	c.write(fmt.Sprintf("POST /api/v1/events HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\nzz\r\n", credentials))
	c.expect(400, "malformed", true)
	if len(node.records) != 0 {
		t.Error(node.records)
	}
}

func gzipped(t testing.TB, parts ...string) string {
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		if _, err := io.WriteString(z, p); err != nil {
			t.Fatal(err)
		}
		z.Close()
	}
	return b.String()
}

func zstded(t testing.TB, stream bool, text string) string {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if !stream {
		return string(z.EncodeAll([]byte(text), nil))
	}
	z.Write([]byte(text)) // into memory
	z.Flush()
	z.Close()
	return b.String()
}

func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	node := newFakeNode()
	opts := testOptions()
	opts.BodyBytes = 256 << 10
	client, h := serve(t, node, opts)
	batch := string(benchBody(200))
	bomb := strings.Repeat(" ", 64<<20)
	tests := []struct {
		coding, body string
		status       int
		text         string
	}{
		{"gzip", gzipped(t, batch), 202, `"accepted":200`},
		{"GZIP", gzipped(t, batch[:1000], batch[1000:]), 202, `"accepted":200`},
		{"zstd", zstded(t, false, batch), 202, `"accepted":200`},
		{"zstd", zstded(t, true, batch), 202, `"accepted":200`},
		{"zstd", zstded(t, true, batch[:1000]) + zstded(t, false, batch[1000:]), 202, `"accepted":200`},
		{"gzip", gzipped(t, batch)[:2000], 400, "not a valid gzip stream"},
		{"gzip", gzipped(t, batch) + "x", 400, "not a valid gzip stream"},
		{"zstd", zstded(t, false, batch)[:2000], 400, "not a valid zstd stream"},
		{"zstd", zstded(t, true, batch) + "x", 400, "not a valid zstd stream"},
		{"gzip", gzipped(t, bomb), 413, "longer than 262144 bytes (after decompression)"},
		{"zstd", zstded(t, false, bomb), 413, "longer than 262144 bytes (after decompression)"},
		{"zstd", zstded(t, true, bomb), 413, "longer than 262144 bytes (after decompression)"},
		{"gzip", gzipped(t, ""), 400, "the body is empty"},
		{"gzip", gzipped(t, "{"), 400, "byte 1"},
	}
	for i, tt := range tests {
		status, body := do(t, client, "events/batch", tt.body, "Content-Encoding", tt.coding)
		if status != tt.status || !strings.Contains(body, tt.text) {
			t.Errorf("%d %s: %d %.200s", i, tt.coding, status, body)
		}
		if used := h.memory.Used(); used != 0 {
			t.Fatalf("%d %s: %d bytes in flight", i, tt.coding, used)
		}
	}
	// A flipped bit anywhere is an error or leaves the text as it was.
	for _, coding := range []string{"gzip", "zstd"} {
		packed := []byte(gzipped(t, goodEvent))
		if coding == "zstd" {
			packed = []byte(zstded(t, true, goodEvent))
		}
		for i := range packed {
			packed[i] ^= 0x10
			status, body := do(t, client, "events", string(packed), "Content-Encoding", coding)
			if status != 400 && status != 202 && status != 413 {
				t.Fatalf("%s, byte %d: %d %s", coding, i, status, body)
			}
			packed[i] ^= 0x10
		}
	}
}

func do(t testing.TB, client *fasthttp.Client, path, body string, header ...string) (int, string) {
	t.Helper()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("http://test/api/v1/" + path)
	req.Header.SetMethod("POST")
	req.Header.Set("X-App-Id", "app_1")
	req.Header.Set("X-App-Secret", testSecret)
	req.Header.SetContentType("application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.SetBodyString(body)
	if err := client.Do(req, resp); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode(), string(resp.Body())
}

// Two Content-Encoding headers are two encodings.
func TestTwoEncodings(t *testing.T) {
	t.Parallel()
	addr, _ := listen(t, newFakeNode(), testOptions(), route)
	c := dial(t, addr)
	c.write(fmt.Sprintf("POST /api/v1/events HTTP/1.1\r\n%sContent-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", credentials, len(goodEvent), goodEvent))
	c.expect(415, "only one encoding", false)
	c.write(post("events", goodEvent))
	c.expect(202, `"success":true`, false)
}

// Q1: when the bodies under way take all memory there is for them, others are
// turned away, and let in again afterwards.
func TestInFlightLimit(t *testing.T) {
	t.Parallel()
	node := newFakeNode()
	node.discard = true
	node.hold, node.holding = make(chan struct{}), make(chan struct{})
	opts := testOptions()
	opts.Timeout = time.Minute
	opts.BodyBytes = 256 << 10
	opts.InFlightBytes = 1 << 20
	addr, h := listen(t, node, opts, route)
	big := `{"event_type":"a","user":{"phone":"1","x":"` + strings.Repeat("x", 200<<10) + `"}}`
	var conns []*conn
	for range 4 {
		c := dial(t, addr)
		c.write(post("events", big))
		<-node.holding
		conns = append(conns, c)
	}
	c := dial(t, addr)
	for _, body := range []string{post("events", big), chunked("events", big, 10_000), post("events/batch", `{"events":[`+strings.Repeat("1,", 5000)+"1]}")} {
		c.write(body)
		c.expect(503, "too many bytes are in flight", false)
	}
	if h.counters.noMemory.Get() != 3 {
		t.Error(h.counters.noMemory.Get())
	}
	if used := h.memory.Used(); used > opts.InFlightBytes {
		t.Errorf("%d bytes in flight", used)
	}
	close(node.hold)
	go func() { <-node.holding }()
	for _, c := range conns {
		c.expect(202, `"success":true`, false)
	}
	c.write(post("events", big))
	c.expect(202, `"success":true`, false)
}

// Large answers are sent without a copy, and their memory stays leased until
// they are read.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	node := newFakeNode()
	node.discard = true
	addr, h := listen(t, node, testOptions(), route)
	body := `{"events":[` + strings.Repeat(goodEvent+",7,", 2500) + goodEvent + `]}`
	c := dial(t, addr)
	for range 3 {
		c.write(post("events/batch", body))
		status, answer, _ := c.answer()
		var got struct {
			Success         bool
			Accepted, Total int
			Results         []struct {
				Success bool
				Error   *string
			}
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil || status != 202 || got.Success || got.Accepted != 2501 || got.Total != 5001 || len(got.Results) != 5001 {
			t.Fatal(status, err, got.Accepted, got.Total, len(got.Results))
		}
		for i, r := range got.Results {
			if r.Success != (i%2 == 0) || (r.Error == nil) != r.Success {
				t.Fatal(i, r)
			}
		}
	}
	// A client that does not read.
	slow := dial(t, addr)
	slow.Conn.(*net.TCPConn).SetReadBuffer(4096)
	for range 40 {
		slow.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := io.WriteString(slow, post("events/batch", body)); err != nil {
			break
		}
	}
	eventually.Holds(t, "memory is leased for answers that wait", func() bool { return h.memory.Used() != 0 })
	slow.Close()
}

// Handlers beside this package's may leave a body unread, or read it with a
// limit.
func TestOtherHandlers(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	opts.Memory = NewMemory(4000)
	addr, _ := listen(t, newFakeNode(), opts, func(h *Handler) fasthttp.RequestHandler {
		return func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json")
			switch string(ctx.Path()) {
			case "/api/v1/unread":
				ctx.SetBodyString(`"unread"`)
			case "/api/v1/read":
				b, err := ReadBody(ctx, opts.Memory, 1000)
				if errors.Is(err, ErrBodyTooLarge) {
					ctx.SetStatusCode(413)
				}
				fmt.Fprintf(ctx, `"%d bytes"`, len(b))
			case "/api/v1/post_body":
				fmt.Fprintf(ctx, `"%d bytes"`, len(ctx.PostBody()))
			default:
				route(h)(ctx)
			}
		}
	})
	c := dial(t, addr)
	for range 3 {
		for _, n := range []int{0, 10, 1000} {
			body := strings.Repeat("x", n)
			for _, encode := range []func(path string) string{
				func(path string) string { return post(path, body) },
				func(path string) string { return chunked(path, body, 100) },
			} {
				c.write(encode("unread"))
				c.expect(200, "unread", false)
				c.write(encode("read"))
				c.expect(200, fmt.Sprint(n), false)
				c.write(encode("post_body"))
				c.expect(200, fmt.Sprint(n), false)
			}
		}
		c.write(post("read", strings.Repeat("x", 5000)))
		c.expect(413, "0 bytes", false)
		c.write(post("unread", strings.Repeat("x", 100_000)), post("events", goodEvent))
		c.expect(200, "unread", false)
		c.expect(202, `"success":true`, false)
	}
}

func TestBadHTTP(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	opts.HeaderBytes = 2048
	addr, _ := listen(t, newFakeNode(), opts, route)
	hasty := testOptions()
	hasty.HeadTimeout = 100 * time.Millisecond
	hastyAddr, _ := listen(t, newFakeNode(), hasty, route)
	for _, tt := range []struct {
		request string
		status  int
		text    string
	}{
		{"POST /api/v1/events HTTP/1.1\r\n" + credentials + "X-Long: " + strings.Repeat("x", 4000) + "\r\n\r\n", 431, "head of the request is too long"},
		{"POST /api/v1/events HTTP/1.1\r\n" + credentials + "bad\x01header\r\n\r\n", 400, "not valid HTTP"},
		{"POST /api/v1/events HTTP/1.1\r\n", 408, "did not arrive in time"},
	} {
		to := addr
		if tt.status == 408 {
			to = hastyAddr
		}
		c := dial(t, to)
		c.write(tt.request)
		c.expect(tt.status, tt.text, true)
	}
	c := dial(t, addr)
	c.write("POST /api/v1/events HTTP/1.1\r\nExpect: 100-continue\r\n", credentials, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(goodEvent)))
	if line, err := c.r.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatal(line, err)
	}
	c.r.ReadString('\n') // the empty line
	c.write(goodEvent)
	c.expect(202, `"success":true`, false)
}

// TestHeads: a head is too long at the same length whatever room there is for those
// of other nodes, also where it only would be once handed on; and what is short
// enough is answered.
func TestHeads(t *testing.T) {
	t.Parallel()
	const limit = 2048
	start, end := "POST /api/v1/events HTTP/1.1\r\n"+credentials, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(goodEvent))
	left := limit - len(start) - len(end)
	filled := func(name string, n int) string { return name + strings.Repeat("x", n-len(name)-2) + "\r\n" }
	for _, room := range []int{0, 1024} {
		opts := testOptions()
		opts.HeaderBytes, opts.HeaderRoom = limit, room
		opts.Internal = func(ctx *fasthttp.RequestCtx) bool { return string(ctx.Path()) == "/internal" }
		addr, _ := listen(t, newFakeNode(), opts, func(h *Handler) fasthttp.RequestHandler {
			return func(ctx *fasthttp.RequestCtx) {
				if opts.Internal(ctx) {
					ctx.SetBodyString("{}")
					return
				}
				h.Event(ctx)
			}
		})
		for name, x := range map[string]struct {
			head   string
			status int
		}{
			"short":                {"", 202},
			"at the limit":         {filled("X-Long: ", left), 202},
			"over the limit":       {filled("X-Long: ", left+1), 431},
			"far over the limit":   {filled("X-Long: ", 4*limit), 431},
			"without spaces, fits": {strings.Repeat("a:b\r\n", left/6), 202},
			"without spaces":       {strings.Repeat("a:b\r\n", left/6+1), 431},
			"cookies, fit":         {"Cookie: a" + strings.Repeat(";a", (left-len("Cookie: a\r\n"))/3) + "\r\n", 202},
			"cookies":              {"Cookie: a" + strings.Repeat(";a", (left-len("Cookie: a\r\n"))/3+1) + "\r\n", 431},
		} {
			t.Run(fmt.Sprint(name, " ", room), func(t *testing.T) {
				c := dial(t, addr)
				c.write(start, x.head, end, goodEvent)
				text := "head of the request is too long"
				if x.status == 202 {
					text = `"success":true`
				}
				c.expect(x.status, text, x.status == 431)
			})
		}
		if room > 0 { // another node's call holds a client's head
			c := dial(t, addr)
			c.write("GET /internal HTTP/1.1\r\nHost: x\r\n", filled("X-Long: ", limit+room/2), "\r\n")
			c.expect(200, "{}", false)
		}
	}
}

// L2 at this seam: many requests at once, with bad events among the good, keep
// their answers apart and are stored once.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	node := newFakeNode()
	node.discard = true
	client, h := serve(t, node, testOptions())
	var wg sync.WaitGroup
	var good atomic.Int64
	for worker := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 100 {
				var events, want []string
				for range rng.IntN(20) {
					phone := fmt.Sprint(rng.IntN(50))
					if rng.IntN(4) == 0 {
						events = append(events, `{"event_type":"a","user":{"phone":`+phone+`}}`)
						want = append(want, "false")
					} else {
						events = append(events, `{"event_type":"a","user":{"phone":"`+phone+`"}}`)
						want = append(want, "true")
						good.Add(1)
					}
				}
				status, body := do(t, client, "events/batch", `{"events":[`+strings.Join(events, ",")+`]}`)
				var got struct{ Results []struct{ Success bool } }
				if err := json.Unmarshal([]byte(body), &got); err != nil || status != 202 || len(got.Results) != len(want) {
					t.Errorf("%d %s", status, body)
					return
				}
				for i := range want {
					if fmt.Sprint(got.Results[i].Success) != want[i] {
						t.Errorf("event %d: %s", i, body)
					}
				}
			}
		})
	}
	wg.Wait()
	if int64(node.stored) != good.Load() || h.counters.accepted.Get() != uint64(good.Load()) {
		t.Errorf("%d stored, %d counted, %d good", node.stored, h.counters.accepted.Get(), good.Load())
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	client, _ := serve(t, newFakeNode(), opts)
	do(t, client, "events", `{"event_type":"a","user":{"phone":"1"},"idempotency_key":"k"}`)
	do(t, client, "events", `{"event_type":"a","user":{"phone":"1"},"idempotency_key":"k"}`)
	do(t, client, "events/batch", `{"events":[7,`+goodEvent+`]}`)
	do(t, client, "events", `x`)
	do(t, client, "events", goodEvent, "X-App-Id", "x")
	do(t, client, "events", goodEvent, "X-App-Id", "app_busy")
	do(t, client, "events", goodEvent, "X-App-Id", "app_slow")
	do(t, client, "events", goodEvent, "X-App-Id", "app_failed")
	var b bytes.Buffer
	opts.Metrics.WritePrometheus(&b)
	for _, line := range []string{
		`muster_ingest_events_total{result="accepted"} 2`, `muster_ingest_events_total{result="duplicate"} 1`, `muster_ingest_events_total{result="refused"} 1`,
		`muster_ingest_auth_failures_total 1`, `muster_ingest_requests_total{endpoint="event",status="202"} 3`, `muster_ingest_requests_total{endpoint="event",status="400"} 1`,
		`muster_ingest_requests_total{endpoint="event",status="503"} 3`, `muster_ingest_requests_total{endpoint="batch",status="202"} 1`,
		`muster_ingest_turned_away_total{reason="queue_full"} 1`, `muster_ingest_turned_away_total{reason="timeout"} 1`, `muster_ingest_turned_away_total{reason="unavailable"} 1`,
		`muster_ingest_in_flight_bytes 0`, `muster_ingest_in_flight_limit_bytes 268435456`, `muster_ingest_request_duration_seconds_count{endpoint="event"} 7`,
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("missing %s", line)
		}
	}
	if t.Failed() {
		t.Log(b.String())
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Options){
		"Now":           func(o *Options) { o.Now = nil },
		"Rand":          func(o *Options) { o.Rand = nil },
		"BodyBytes":     func(o *Options) { o.BodyBytes = 10 },
		"RecordBytes":   func(o *Options) { o.RecordBytes = 8 << 20 },
		"InFlightBytes": func(o *Options) { o.InFlightBytes = 31 << 20 },
		"DrainBytes":    func(o *Options) { o.DrainBytes = -1 },
		"Limits.Depth":  func(o *Options) { o.Limits.Depth = 1 },
		"Limits.Events": func(o *Options) { o.Limits.Events = -1 },
		"timeout":       func(o *Options) { o.Timeout = -1 },
	} {
		opts := testOptions()
		change(&opts)
		if _, err := New(newFakeNode(), testApps(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A submitter that answers something impossible makes no false acknowledgement,
// and neither does a source of randomness that fails.
func TestFaultyParts(t *testing.T) {
	t.Parallel()
	client, _ := serve(t, submitFunc(func(out *resolver.Outcome) {}), testOptions())
	if status, body := do(t, client, "events", goodEvent); status != 503 {
		t.Error(status, body)
	}
	opts := testOptions()
	opts.Rand = strings.NewReader("")
	node := newFakeNode()
	client, _ = serve(t, node, opts)
	if status, body := do(t, client, "events", goodEvent); status != 503 || node.stored != 0 {
		t.Error(status, body)
	}
}

type submitFunc func(out *resolver.Outcome)

func (f submitFunc) Submit(_ context.Context, _ uint64, _ []byte, out *resolver.Outcome) error {
	f(out)
	return nil
}

// Record ids differ, also across requests and goroutines.
func TestRecordIDs(t *testing.T) {
	t.Parallel()
	var s idSource
	s.mu.r = rand.NewChaCha8([32]byte{3})
	seen := map[[16]byte]bool{}
	var a, b idBuffer
	for range 100 {
		for _, buffer := range []*idBuffer{&a, &b} {
			id, err := s.next(buffer)
			if err != nil || seen[id] || id == [16]byte{} {
				t.Fatal(id, err)
			}
			seen[id] = true
		}
	}
}

// The whole chain, without the network and the log, costs no allocation that
// grows with the number of events.
func TestHandlerAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector empties pools at random; the run without it counts")
	}
	h, err := New(submitFunc(func(out *resolver.Outcome) {
		for range 100 {
			out.Events = append(out.Events, resolver.EventOutcome{Status: resolver.EventAccepted})
		}
	}), testApps(), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	var ctx fasthttp.RequestCtx
	body := benchBody(100)
	n := testing.AllocsPerRun(50, func() {
		ctx.Request.Reset()
		ctx.Response.Reset()
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.Header.SetContentType("application/json")
		ctx.Request.Header.Set("X-App-Id", "app_1")
		ctx.Request.Header.Set("X-App-Secret", testSecret)
		ctx.Request.SetBodyRaw(body)
		h.Batch(&ctx)
		if ctx.Response.StatusCode() != 202 || !bytes.HasPrefix(ctx.Response.Body(), []byte(`{"success":true,"accepted":100,`)) {
			t.Fatal(ctx.Response.String())
		}
	})
	t.Logf("%v allocations a request of 100 events", n)
	if n > 15 {
		t.Errorf("%v allocations a request", n)
	}
}

// TestAccountThatLeft: an account that another node answers for by now is not
// told that its credentials are wrong.
func TestAccountThatLeft(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	opts.Current = func(_ context.Context, account uint64, _ bool) error {
		if account%2 != 0 {
			return fmt.Errorf("partition 1: %w", resolver.ErrNotOwner)
		}
		return nil
	}
	client, _ := serve(t, newFakeNode(), opts)
	for _, x := range []struct {
		app    string
		status int
		retry  string
	}{{resolver.AppID(7), 503, "1"}, {resolver.AppID(8), 202, ""}, {"app_none", 202, ""}} {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI("http://test/api/v1/events")
		req.Header.SetMethod("POST")
		req.Header.SetContentType("application/json")
		req.Header.Set("X-App-Id", x.app)
		req.Header.Set("X-App-Secret", testSecret)
		req.SetBodyString(`{"event_type":"x","user":{"email":"a@x.io"}}`)
		if err := client.Do(req, resp); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode() != x.status || string(resp.Header.Peek("Retry-After")) != x.retry || !bytes.Contains(resp.Body(), []byte(`"success":false`)) {
			t.Errorf("%s: %d %s", x.app, resp.StatusCode(), resp.Body())
		}
	}
}

// stale is a node that knows what it knew before it was frozen, until it is made
// current.
type stale struct {
	old, now [32]byte // of the secret
	current  atomic.Bool
}

func (s *stale) App([]byte) (resolver.App, bool) {
	if s.current.Load() {
		return resolver.App{Account: 1, SecretHash: s.now, Active: true}, true
	}
	return resolver.App{Account: 1, SecretHash: s.old, Active: true}, true
}

// TestCredentialsAreCurrent: refusals are by the present state; a secret that
// was drawn while the node was away is good, and the one before is not.
func TestCredentialsAreCurrent(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what   string
		secret string
		moment bool // the state is brought up to a moment ago, not only when refusing
		want   string
	}{
		{"the new one", "new", false, `"success":true`},
		{"the old one", "old", true, `invalid app credentials`},
		{"neither", "none", false, `invalid app credentials`},
	} {
		known := &stale{old: sha256.Sum256([]byte("old")), now: sha256.Sum256([]byte("new"))}
		opts := testOptions()
		opts.Current = func(_ context.Context, account uint64, exactly bool) error {
			if account != 1 {
				t.Errorf("%s: asked of account %d", x.what, account)
			}
			if exactly || x.moment {
				known.current.Store(true)
			}
			return nil
		}
		h, err := New(newFakeNode(), known, opts)
		if err != nil {
			t.Fatal(err)
		}
		var rc fasthttp.RequestCtx
		rc.Request.SetRequestURI("http://test/api/v1/events")
		rc.Request.Header.SetMethod("POST")
		rc.Request.Header.SetContentType("application/json")
		rc.Request.Header.Set("X-App-Id", resolver.AppID(1))
		rc.Request.Header.Set("X-App-Secret", x.secret)
		rc.Request.SetBodyString(`{"event_type":"x","user":{"email":"a@x.io"}}`)
		h.Event(&rc)
		if !bytes.Contains(rc.Response.Body(), []byte(x.want)) {
			t.Errorf("%s: %s", x.what, rc.Response.Body())
		}
	}
}

// TestShutdownBeforeServe: a server that is shut down before it has begun to serve does not
// begin, and gives its listener back.
func TestShutdownBeforeServe(t *testing.T) {
	t.Parallel()
	for range 50 {
		ln := servertest.Listen(t)
		srv := NewServer(Options{}, func(*fasthttp.RequestCtx) {})
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ln) }()
		if err := srv.Shutdown(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the server still serves")
		}
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("the listener is open: %v", err)
		}
	}
}
