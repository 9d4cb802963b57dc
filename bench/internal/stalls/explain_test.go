package stalls

import (
	"bytes"
	"math"
	rt "runtime/trace"
	"sync"
	"testing"
	"time"

	"golang.org/x/exp/trace"

	"github.com/musterhq/muster/bench/internal/cpuspeed"
	"github.com/musterhq/muster/bench/internal/loader"
)

// TestExplain: one request is slow over a sync of the log, a lock, a time without a
// processor, and applying; another is at no time unanswered while the trace was recorded.
func TestExplain(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	ms := func(n float64) time.Time { return begin.Add(time.Duration(n * float64(time.Millisecond))) }
	all := []interval{
		{from: ms(0), to: ms(100), work: otherWork, state: trace.GoWaiting},
		{from: ms(10), to: ms(30), work: logWork, state: trace.GoSyscall, call: "unix.Fdatasync"},
		{from: ms(20), to: ms(50), work: applyWork, state: trace.GoRunnable},
		{from: ms(30), to: ms(45), work: "checkpoint", state: trace.GoRunning},
		{from: ms(0), to: ms(60), work: "history", state: trace.GoSyscall},
		{from: ms(50), to: ms(57), work: applyWork, state: trace.GoRunning},
		{from: ms(57), to: ms(60), work: applyWork, state: trace.GoWaiting, call: "node.applyWindow", locked: true},
		{from: ms(60), to: ms(90), work: applyWork, state: trace.GoWaiting},
		{from: ms(70), to: ms(80), work: "checkpoint", state: trace.GoRunning},
	}
	r := explain(all, []loader.Span{{From: ms(12), To: ms(64)}, {From: ms(200), To: ms(300)}}, 20*time.Millisecond, []cpuspeed.Phase{{From: ms(14), To: ms(18)}, {From: ms(70), To: ms(90)}})
	if r.Requests != 1 || math.Abs(r.Seconds-0.052) > 1e-9 || r.ThresholdMillis != 20 || math.Abs(r.TracedSeconds-0.1) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if len(r.Each) != 1 || math.Abs(r.Each[0].AtSeconds-0.012) > 1e-9 || math.Abs(r.Each[0].Seconds-0.052) > 1e-9 || len(r.Each[0].Causes) != len(r.Causes) {
		t.Errorf("one by one: %+v", r.Each)
	}
	for _, x := range []struct {
		what string
		got  []Share
		want map[string]float64
	}{
		{"causes", r.Causes, map[string]float64{"the log in unix.Fdatasync": 0.014, "the machine's processors were slow": 0.004, "apply was ready and had no processor": 0.020, "apply worked": 0.007,
			"apply waited for a lock in node.applyWindow": 0.003, "neither the log nor apply: connections, or the loader": 0.004}},
		{"ran", r.Ran, map[string]float64{"checkpoint": 0.015, "history": 0.020}},
	} {
		got := map[string]float64{}
		for i, s := range x.got {
			got[s.Name] = s.Seconds
			if i > 0 && s.Seconds > x.got[i-1].Seconds {
				t.Errorf("%s are not in order: %+v", x.what, x.got)
			}
		}
		for name, want := range x.want {
			if math.Abs(got[name]-want) > 1e-9 {
				t.Errorf("%s: %s %v s, want %v", x.what, name, got[name], want)
			}
		}
		if len(got) != len(x.want) {
			t.Errorf("%s: %+v", x.what, x.got)
		}
	}
}

// TestReadsATraceOfThisGo: a goroutine that waits for a mutex is found, at the time of the clock.
func TestReadsATraceOfThisGo(t *testing.T) {
	for range 20 { // on a busy machine the other may get to wait too late
		if waitsInATrace(t) || t.Failed() {
			return
		}
	}
	t.Error("no wait was found")
}

// waitsInATrace records a goroutine that is to wait 30 ms, and reports whether it was found to.
func waitsInATrace(t *testing.T) (found bool) {
	var b bytes.Buffer
	if err := rt.Start(&b); err != nil {
		t.Skip("something else records a trace:", err)
	}
	begun := time.Now()
	var lock sync.Mutex
	lock.Lock()
	done := make(chan struct{})
	go func() { lock.Lock(); close(done) }()
	time.Sleep(30 * time.Millisecond) // that long the other waits
	lock.Unlock()
	<-done
	ended := time.Now()
	rt.Stop()
	err := read(&b, func(i interval) {
		if i.locked && i.state == trace.GoWaiting && i.to.Sub(i.from) >= 20*time.Millisecond {
			found = true
			if i.from.Before(begun.Add(-time.Millisecond)) || i.to.After(ended.Add(time.Millisecond)) || i.call != "sync.(*Mutex).Lock" {
				t.Errorf("%v to %v in %s, the test ran from %v to %v", i.from, i.to, i.call, begun, ended)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	return found
}
