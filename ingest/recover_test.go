package ingest

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/logbuffer"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/resolver"
)

// panicking is the body of an answer whose second read panics.
type panicking struct{ reads int }

func (p *panicking) Read(b []byte) (int, error) {
	if p.reads++; p.reads > 1 {
		panic("the stream is broken")
	}
	return copy(b, "a part"), nil
}

func (p *panicking) Close() error { return nil }

// TestPanicDoesNotEndTheProcess: a handler that panics, wherever, is answered 500 in
// the form of its surface; that is logged with the stack and counted, and the server
// continues. The body of an answer that panics breaks off.
func TestPanicDoesNotEndTheProcess(t *testing.T) {
	t.Parallel()
	var log logbuffer.Buffer
	opts := testOptions()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	addr, _ := listen(t, newFakeNode(), opts, func(h *Handler) fasthttp.RequestHandler {
		return func(ctx *fasthttp.RequestCtx) {
			switch string(ctx.Path()) {
			case "/api/v1/broken":
				ctx.SetBodyString("half of an answer")
				ctx.Response.Header.Set("X-Half", "1")
				panic("the handler is broken")
			case "/api/v1/nil":
				var h *Handler
				h.Event(ctx)
			case "/api/v1/stream":
				ctx.Response.SetBodyStream(GuardStream(opts.Metrics, opts.Logger, "a stream", &panicking{}), -1)
			case "/api/v1/unguarded":
				ctx.Response.SetBodyStream(&panicking{}, -1)
			default:
				route(h)(ctx)
			}
		}
	})
	count := opts.Metrics.GetOrCreateCounter(panics.Metric)
	for i, path := range []string{"broken", "nil"} {
		c := dial(t, addr)
		c.write(post(path, `{"a":1}`))
		status, body, closed := c.answer()
		if status != 500 || !closed || !strings.HasPrefix(body, `{"success":false`) || !strings.Contains(body, textPanic) {
			t.Errorf("%s: %d closing %v %s", path, status, closed, body)
		}
		if count.Get() != uint64(i+1) {
			t.Errorf("%s: %d panics counted", path, count.Get())
		}
	}
	for _, text := range []string{"the handler is broken", "nil pointer", "recover_test.go", `where="POST /api/v1/broken"`} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("the log lacks %q:\n%s", text, log.String())
		}
	}
	for i, path := range []string{"stream", "unguarded"} {
		c := dial(t, addr)
		c.write(post(path, ""))
		b, err := io.ReadAll(c)
		if err != nil || !bytes.Contains(b, []byte("a part")) || bytes.Contains(b, []byte("\r\n0\r\n")) {
			t.Errorf("%s: %q %v", path, b, err)
		}
		eventually.Holds(t, "the panic is counted", func() bool { return count.Get() == uint64(i+3) })
	}
	eventually.Holds(t, "the stream's panic is logged", func() bool { return strings.Count(log.String(), "the stream is broken") >= 2 })
	c := dial(t, addr)
	c.write(post("events", goodEvent))
	c.expect(202, `"success":true`, false)
}

func TestPathsWithoutValues(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/api/v1/contacts/ann@example.com/devices": "/api/v1/contacts/…",
		"/api/v1/contacts":                         "/api/v1/contacts",
		"/console/api/v1/profiles/prf_1":           "/console/api/v1/profiles/…",
		"/v1/email/send":                           "/v1/email/…",
		"/t/abc":                                   "/t/…",
		"/healthz":                                 "/healthz",
		"/":                                        "/",
		"":                                         "",
	} {
		if got := withoutValues(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestPanicGivesMemoryBack: a request of Surface B that panics keeps no memory.
func TestPanicGivesMemoryBack(t *testing.T) {
	t.Parallel()
	node := submitFunc(func(*resolver.Outcome) { panic("the submitter is broken") })
	addr, h := listen(t, node, testOptions(), route)
	c := dial(t, addr)
	c.write(post("events", goodEvent))
	c.expect(500, textPanic, true)
	if used := h.memory.Used(); used != 0 {
		t.Errorf("%d bytes are taken", used)
	}
}
