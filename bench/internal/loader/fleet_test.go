package loader

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"github.com/musterhq/muster/bench/internal/baseline"
	"github.com/musterhq/muster/bench/internal/payload"
)

func TestPhasesAgainstParseServer(t *testing.T) {
	target := Target{Address: serveBaseline(t, baseline.Parse), Path: "/api/v1/events/batch", Expect: ExpectCount}
	f := newFleet(t, target, spec, 4)
	ctx := context.Background()
	swept, err := f.Sweep(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if swept.Requests != 28 { // 125 profiles in batches of 20, on 4 connections
		t.Fatalf("sweep took %d requests, want 28", swept.Requests)
	}
	saturated := onePhase(t, f, 200*time.Millisecond)
	paced, err := f.Pace(ctx, 4000, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if paced.Events < 1900 || paced.Events > 2100 {
		t.Errorf("%d events at 4000/s in half a second", paced.Events)
	}
	for name, r := range map[string]*Result{"sweep": swept, "saturate": saturated, "pace": paced} {
		if r.Failed != 0 || r.Events != r.Requests*20 || uint64(r.Latency.TotalCount()) != r.Requests {
			t.Errorf("%s: %+v with %d latencies", name, r, r.Latency.TotalCount())
		}
	}
	if got, want := total(f.Acked()), swept.Events+saturated.Events+paced.Events; got != want {
		t.Errorf("acknowledged ranges hold %d events, phases %d", got, want)
	}
	if n := len(f.Acked()); n != 4 {
		t.Errorf("%d ranges on 4 connections without a failure", n)
	}
}

func TestSinglesAgainstReadServer(t *testing.T) {
	s := spec
	s.Batch = 0
	target := Target{Address: serveBaseline(t, baseline.Read), Path: "/api/v1/events", Expect: ExpectSuccess}
	f := newFleet(t, target, s, 2)
	r := saturate(t, f, 100*time.Millisecond, func() bool { return len(f.Acked()) > 0 })
	if r.Events == 0 || r.Events != total(f.Acked()) || r.Failed != 0 {
		t.Fatalf("%+v, %d in ranges", r, total(f.Acked()))
	}
}

// A refused request must leave a gap, whatever its HTTP status.
func TestOnlyAcknowledgedEventsAreInRanges(t *testing.T) {
	var calls, accepted atomic.Uint64
	address := serveFunc(t, func(ctx *fasthttp.RequestCtx) {
		switch n := calls.Add(1); {
		case n%10 == 3:
			ctx.SetStatusCode(503)
		case n%10 == 5:
			ctx.SetStatusCode(202)
			ctx.SetBodyString(`{"success":false,"accepted":19,"total":20,"results":[]}`)
		case n%10 == 7:
			ctx.SetConnectionClose()
			ctx.SetStatusCode(500)
		default:
			accepted.Add(20)
			ctx.SetStatusCode(202)
			ctx.SetBodyString(`{"success":true,"accepted":20,"total":20}`)
		}
	})
	f := newFleet(t, Target{Address: address, Path: "/", Expect: ExpectCount}, spec, 1)
	r := saturate(t, f, 100*time.Millisecond, func() bool { return calls.Load() >= 20 })
	if r.Failed == 0 || r.FirstFailure == nil {
		t.Fatalf("failures went unnoticed: %+v", r)
	}
	if got := total(f.Acked()); got != accepted.Load() || got != r.Events {
		t.Fatalf("ranges hold %d events, the phase %d, the server accepted %d", got, r.Events, accepted.Load())
	}
	if len(f.Acked()) < 2 {
		t.Fatal("no gap between acknowledged events")
	}
}

// A stall must show in every request that was due meanwhile, not only in the
// one that was under way (coordinated omission).
func TestPaceCountsWhatAStallDelays(t *testing.T) {
	var calls atomic.Uint64
	address := serveFunc(t, func(ctx *fasthttp.RequestCtx) {
		if calls.Add(1) == 50 {
			time.Sleep(300 * time.Millisecond) // a stall is what is tested
		}
		ctx.SetStatusCode(202)
		ctx.SetBodyString(`{"success":true}`)
	})
	s := spec
	s.Batch = 0
	target := Target{Address: address, Path: "/", Expect: ExpectSuccess}
	// The machine may stall too, which makes more requests late: that is tried again.
	const tries = 10
	for try := 1; ; try++ {
		calls.Store(0)
		paced, err := newFleet(t, target, s, 1).Pace(context.Background(), 500, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		// 150 requests were due during the stall; half of them waited 150 ms or more.
		late := countAbove(paced, 150*time.Millisecond)
		if late < 60 {
			t.Fatalf("%d requests over 150 ms, want about 75", late)
		}
		if paced.Latency.Max() < 280_000 {
			t.Fatalf("longest latency %d µs", paced.Latency.Max())
		}
		n := paced.Requests
		if late <= 100 && n >= 495 && n <= 505 {
			return
		}
		if try == tries {
			t.Fatalf("%d requests over 150 ms, want about 75; %d requests at 500/s in a second: the stall was not caught up", late, n)
		}
	}
}

// saturate has phases follow each other until there is what a test needs, and returns
// what they did together. On a busy machine a phase may get nothing through.
func saturate(t *testing.T, f *Fleet, phase time.Duration, enough func() bool) (sum Result) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		r, err := f.Saturate(context.Background(), phase)
		sum.Requests, sum.Events, sum.Failed = sum.Requests+r.Requests, sum.Events+r.Events, sum.Failed+r.Failed
		if sum.FirstFailure == nil {
			sum.FirstFailure = r.FirstFailure
		}
		if enough() {
			return sum
		}
		if time.Now().After(end) {
			t.Fatalf("a minute was not enough: %+v, %v", sum, err)
		}
	}
}

// onePhase is a phase of this length, or of a longer one that got something through.
func onePhase(t *testing.T, f *Fleet, length time.Duration) *Result {
	t.Helper()
	for ; ; length *= 2 {
		r, err := f.Saturate(context.Background(), length)
		if err == nil {
			return r
		}
		if r.Failed > 0 || length > time.Minute {
			t.Fatal(err)
		}
	}
}

func countAbove(r *Result, d time.Duration) (n int64) {
	for _, bar := range r.Latency.Distribution() {
		if bar.From >= d.Microseconds() {
			n += bar.Count
		}
	}
	return n
}

func TestPhaseEndsWhenTheServerIsGone(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	f := newFleet(t, Target{Address: gone.Addr().String(), Path: "/", Expect: ExpectSuccess}, spec, 2)
	if _, err := f.Saturate(context.Background(), 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "connecting") {
		t.Fatalf("error %v, want one that says connecting failed", err)
	}
}

func TestCancelEndsAPhaseWithinAnAnswer(t *testing.T) {
	block := make(chan struct{})
	address := serveFunc(t, func(*fasthttp.RequestCtx) { <-block })
	defer close(block)
	f := newFleet(t, Target{Address: address, Path: "/", Expect: ExpectSuccess}, spec, 2)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	if _, err := f.Saturate(ctx, time.Minute); err == nil {
		t.Fatal("a cancelled phase reported success")
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Fatalf("cancelled phase took %v", d)
	}
}

func TestRequestsCarryTheHeader(t *testing.T) {
	var seen atomic.Value
	address := serveFunc(t, func(ctx *fasthttp.RequestCtx) {
		events, _ := fastjson.ParseBytes(ctx.PostBody())
		if len(events.GetArray("events")) == 20 && string(ctx.Path()) == "/api/v1/events/batch" {
			seen.Store(string(ctx.Request.Header.Peek("X-App-Id")) + "/" + string(ctx.Request.Header.ContentType()))
		}
		ctx.SetStatusCode(202)
		ctx.SetBodyString(`{"success":true}`)
	})
	f := newFleet(t, Target{Address: address, Path: "/api/v1/events/batch", Expect: ExpectSuccess,
		Header: [][2]string{{"X-App-Id", "app_1"}}}, spec, 1)
	saturate(t, f, 100*time.Millisecond, func() bool { return seen.Load() != nil })
	if got := seen.Load(); got != "app_1/application/json" {
		t.Fatalf("the server saw %v", got)
	}
}

func TestFleetIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		target      Target
		spec        payload.Spec
		connections int
		want        string
	}{
		"other machine": {Target{Address: "192.0.2.1:80"}, spec, 1, "loopback"},
		"all addresses": {Target{Address: "0.0.0.0:80"}, spec, 1, "loopback"},
		"host name":     {Target{Address: "example.com:80"}, spec, 1, "IP:PORT"},
		"connections":   {Target{Address: "127.0.0.1:80"}, spec, 0, "connections"},
		"spec":          {Target{Address: "127.0.0.1:80"}, payload.Spec{}, 1, "profiles"},
	} {
		if _, err := NewFleet(c.target, c.spec, c.connections); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := Dial("192.0.2.1:80", time.Second); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("dialling another machine: %v", err)
	}
}
