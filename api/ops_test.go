package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/eventually"
)

func TestOps(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	want := func(path string, status int, text string) {
		t.Helper()
		res, b := s.send("GET", path, "")
		if res.StatusCode != status || !strings.Contains(string(b), text) {
			t.Errorf("%s: %d %s", path, res.StatusCode, b)
		}
	}
	want("/healthz", 200, "alive")
	want("/readyz", 200, "ready")
	s.ops.Drain()
	want("/readyz", 503, "stopping")
	want("/healthz", 200, "alive")
	s.want("GET", "/settings", "", nil) // what comes is still answered
	s.ops.Open(func(ctx *fasthttp.RequestCtx) {}, func() error { return errors.New("the disk is full") })
	want("/readyz", 503, "the disk is full")
	res, _ := s.send("POST", "/metrics", "")
	// Refused as other requests are: that form has the id and the line in the log.
	if res.StatusCode != 405 || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		t.Errorf("POST /metrics: %d, %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	s.ops = NewOps(nil, nil)
	want("/healthz", 200, "alive")
}

// TestRequestsWaitForTheStart: a request that comes while the service starts is held for
// a while, so that clients that try again at once do not keep it from starting: it is
// answered when the service opens, and refused when that takes longer.
func TestRequestsWaitForTheStart(t *testing.T) {
	t.Parallel()
	ask := func(o *Ops) (status int, took time.Duration) {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetRequestURI("/api/v1/events")
		begun := time.Now()
		o.Handle(&ctx)
		return ctx.Response.StatusCode(), time.Since(begun)
	}
	if status, took := ask(NewOps(nil, nil)); status != 503 || took < startPatience {
		t.Errorf("while it starts: %d after %v", status, took)
	}
	o := NewOps(nil, nil)
	o.patience = time.Hour
	answers := make(chan int, 1)
	go func() {
		status, _ := ask(o)
		answers <- status
	}()
	eventually.Holds(t, "the request is held", func() bool { return o.held.Load() != 0 })
	o.Open(func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(202) }, func() error { return nil })
	if status := <-answers; status != 202 {
		t.Errorf("a request that waited: %d", status)
	}
	o = NewOps(nil, nil)
	o.patience = time.Hour
	o.held.Store(maxHeld)
	if status, _ := ask(o); status != 503 {
		t.Errorf("one too many: %d", status)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	s.fill(10)
	segment := s.segment("Buyers", buyers).ID
	s.live(segment)
	text := ""
	scrape := func() {
		res, b := s.send("GET", "/metrics", "")
		if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
			t.Fatalf("%d %s", res.StatusCode, res.Header.Get("Content-Type"))
		}
		text = string(b)
	}
	// until scrapes until something that continues in the background has happened.
	until := func(line string) {
		t.Helper()
		eventually.Succeeds(t, func() error {
			if !strings.Contains(text, line) {
				scrape()
			}
			if !strings.Contains(text, line) {
				return fmt.Errorf("no line %s in\n%s", line, text)
			}
			return nil
		})
	}
	s.stored()
	until("muster_history_rows ")
	// A segment is live before its members' transitions are emitted: that takes
	// another record.
	until(`muster_segment_transitions_total{partition="0"} 5` + "\n")
	for _, line := range []string{
		`muster_profiles{partition="0"} 10`, `muster_identities{partition="0"} 10`, `muster_applied_events_total{partition="0"} 10`,
		`muster_ingest_events_total{result="accepted"} 10`, `muster_history_rows 10`, `muster_history_bytes_per_event 100`,
		`muster_log_of_the_caller 1`, `muster_history_failing{partition="0"} 0`,
		`muster_console_sign_ins_total{result="ok"} 1`, `muster_console_requests_total{route="POST /segments",status="2xx"} 1`,
		`muster_console_computations_running{kind="evaluation"} 0`, `muster_console_computations_running{kind="combination"} 0`,
		`muster_segments 1`, `muster_segment_building 0`, `muster_segment_leaves 1`, `muster_segment_values 5`,
		`muster_segment_transitions_total{partition="0"} 5`, `muster_segment_chunks_total{partition="0"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, name := range []string{"muster_apply_seconds_total", "muster_checkpoint_offset", "muster_history_lag_records",
		"muster_history_spool_bytes", "muster_apply_backlog_records", "muster_idempotency_keys", "muster_segment_bytes",
		"muster_console_profile_snapshots_total", "process_resident_memory_bytes", "go_goroutines"} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("no metric %s", name)
		}
	}
	// The size of history is asked now and then, not at each scrape.
	s.fill(20)
	scrape()
	s.stored()
	until(`muster_history_lag_records{partition="0"} 0` + "\n")
	for range 3 {
		scrape()
	}
	if !strings.Contains(text, "muster_history_rows 10\n") {
		t.Error("the size of history was asked again at once")
	}
	s.clock.Advance(usageAge)
	until("muster_history_rows 30\n")

	// The sizes of segments are read now and then.
	s.segment("In Berlin", berlin)
	scrape()
	if !strings.Contains(text, "muster_segments 1\n") {
		t.Error("the sizes of segments were read again at once")
	}
	s.clock.Advance(segmentSizesAge)
	scrape()
	if !strings.Contains(text, "muster_segments 2\n") || !strings.Contains(text, "muster_segment_leaves 2\n") {
		t.Error("the sizes of segments do not change")
	}
	var f struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", fmt.Sprintf(`{"name":"f","trigger":{"type":"segment_entered","segment_id":%q},"steps":[{"id":"x","type":"exit"}]}`, segment), &f)
	s.want("POST", "/flows/"+f.ID+"/publish", "", nil)
	until(`muster_flow_enrolments_total{partition="0"} 10` + "\n") // all members of the segment
	if !strings.Contains(text, `muster_flow_loops_cut_total{partition="0"} 0`+"\n") {
		t.Error("no loops are reported")
	}
}

// TestOpsOperations: what is documented as answered by Ops is, before the service is
// open and after.
func TestOpsOperations(t *testing.T) {
	t.Parallel()
	o := NewOps(metrics.NewSet(), nil)
	o.patience = time.Millisecond
	entered := false
	for _, open := range []bool{false, true} {
		if open {
			o.Open(func(*fasthttp.RequestCtx) { entered = true }, func() error { return nil })
		}
		for _, op := range opsOperations().Operations {
			rc := &fasthttp.RequestCtx{}
			rc.Request.Header.SetMethod(op.Method)
			rc.Request.SetRequestURI(op.Path)
			o.Handle(rc)
			if entered || !strings.HasPrefix(string(rc.Response.Header.ContentType()), "text/plain") {
				t.Errorf("%s %s, open %v: %d %s", op.Method, op.Path, open, rc.Response.StatusCode(), rc.Response.Body())
			}
		}
	}
}
