package refusal

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

type world struct {
	t   *testing.T
	w   *Watcher
	set *metrics.Set
	log bytes.Buffer
	now time.Time
}

func newWorld(t *testing.T) *world {
	x := &world{t: t, set: metrics.NewSet(), now: time.Unix(1e9, 0)}
	var err error
	x.w, err = New(x.set, slog.New(slog.NewTextHandler(&x.log, nil)), func() time.Time { return x.now }, strings.NewReader("12345678"))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *world) serve(path string, next fasthttp.RequestHandler) *fasthttp.RequestCtx {
	rc := &fasthttp.RequestCtx{}
	rc.Request.SetRequestURI(path)
	rc.Request.Header.Set(Header, "theirs")
	x.w.Watch(next)(rc)
	return rc
}

func status(n int) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(n) }
}

func (x *world) count() (n uint64) {
	for _, of := range x.w.counters {
		for _, c := range of {
			n += c.Get()
		}
	}
	return n
}

func TestRefusalsAreCountedOnce(t *testing.T) {
	for _, c := range []struct {
		path    string
		handler fasthttp.RequestHandler
		want    string // surface and reason, "" for none
	}{
		{"/api/v1/events", status(202), ""},
		{"/api/v1/events/batch", status(413), `surface="b",reason="too_large"`},
		{"/api/v1/events/live", status(200), ""},
		{"/api/v1/events/live", status(401), `surface="a",reason="unauthorized"`},
		{"/api/v1/eventsx", status(404), `surface="a",reason="not_found"`},
		{"/api/v1/events", func(rc *fasthttp.RequestCtx) { status(202)(rc); Mark(rc, Unauthorized) }, `surface="b",reason="unauthorized"`},
		{"/api/v1/contacts", func(rc *fasthttp.RequestCtx) { MarkStatus(rc, 409) }, `surface="a",reason="conflict"`},
		{"/v1/email/send", status(500), `surface="c",reason="internal_error"`},
		{"/console/api/v1/segments", status(429), `surface="console",reason="rate_limited"`},
		{"/t/x", status(503), `surface="links",reason="unavailable"`},
		{"/inbound/ses/x", status(401), `surface="inbound",reason="unauthorized"`},
		{"/nothing", status(418), `surface="other",reason="other"`},
		{"/readyz", status(503), ""},
		{"/cluster/v1/ask/x", status(404), ""},
		{"/api/v1/contacts", status(421), ""},
		{"/api/v1/contacts", func(rc *fasthttp.RequestCtx) { status(503)(rc); rc.Response.Header.Set(Header, "of another node") }, ""},
		{"/v1/x", func(rc *fasthttp.RequestCtx) {
			status(400)(rc)
			MarkStatus(rc, 400)
			rc.Response.Header.Set(Header, "req_ours")
		}, `surface="c",reason="invalid"`},
	} {
		x := newWorld(t)
		rc := x.serve(c.path, c.handler)
		before := string(rc.Response.Header.Peek(Header))
		x.w.Answered(rc) // the server's own refusals come by here as well
		var out bytes.Buffer
		x.set.WritePrometheus(&out)
		got := regexp.MustCompile(`\{(.*)\} [^0]`).FindStringSubmatch(out.String())
		if (got == nil) != (c.want == "") || got != nil && got[1] != c.want || x.count() > 1 {
			t.Errorf("%s %d: counted %v, want %q", c.path, rc.Response.StatusCode(), got, c.want)
		}
		if id := string(rc.Response.Header.Peek(Header)); id != before || id == "theirs" || c.want != "" && !strings.HasPrefix(id, "req_") {
			t.Errorf("%s: id %q, then %q", c.path, before, id)
		} else if logged := strings.Contains(x.log.String(), "request="+id+" "); c.want != "" && !logged || c.want == "" && x.log.Len() > 0 {
			t.Errorf("%s: id %q, log %s", c.path, id, x.log.String())
		}
	}
}

// TestLogIsSampled: five lines at once and one a second after, which says how many
// there were in between; and no line holds what a client sent.
func TestLogIsSampled(t *testing.T) {
	x := newWorld(t)
	refuse := func(n int) (lines int) {
		x.log.Reset()
		for i := range n {
			x.serve(fmt.Sprintf("/console/api/v1/erasures/ann@x.io?n=%d", i), status(404))
		}
		return strings.Count(x.log.String(), "\n")
	}
	if n := refuse(100); n != 5 {
		t.Errorf("%d lines at once\n%s", n, x.log.String())
	}
	if strings.Contains(x.log.String(), "ann") || strings.Contains(x.log.String(), "theirs") {
		t.Errorf("the log tells of the client: %s", x.log.String())
	}
	x.now = x.now.Add(time.Second)
	if n := refuse(3); n != 1 || !strings.Contains(x.log.String(), "not_logged=95") {
		t.Errorf("%d lines a second later\n%s", n, x.log.String())
	}
	if n := x.count(); n != 103 {
		t.Errorf("%d counted", n)
	}
	x.now = x.now.Add(time.Hour)
	if n := refuse(9); n != 5 {
		t.Errorf("%d lines after an hour", n)
	}
}

// TestAcceptedCostNothing: an accepted request allocates nothing here.
func TestAcceptedCostNothing(t *testing.T) {
	x := newWorld(t)
	rc := &fasthttp.RequestCtx{}
	rc.Request.SetRequestURI("/api/v1/events")
	rc.SetStatusCode(202)
	if n := testing.AllocsPerRun(1000, func() { x.w.Answered(rc) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if x.count() != 0 || len(rc.Response.Header.Peek(Header)) > 0 {
		t.Error("it was counted")
	}
}

func BenchmarkAccepted(b *testing.B) {
	w, err := New(metrics.NewSet(), slog.New(slog.DiscardHandler), time.Now, strings.NewReader("12345678"))
	if err != nil {
		b.Fatal(err)
	}
	rc := &fasthttp.RequestCtx{}
	rc.SetStatusCode(202)
	b.ReportAllocs()
	for b.Loop() {
		w.Answered(rc)
	}
}
