package histogram

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

func TestBuckets(t *testing.T) {
	set := metrics.NewSet()
	h := New(set, "took_seconds", `endpoint="event"`, time.Millisecond, 250*time.Millisecond, 30*time.Second)
	plain := New(set, "plain_seconds", "", time.Second)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, d := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, time.Minute} {
				h.Observe(d)
			}
		})
	}
	all.Wait()
	plain.Observe(2 * time.Second)
	var b bytes.Buffer
	set.WritePrometheus(&b)
	want := `took_seconds_bucket{endpoint="event",le="0.001"} 8
took_seconds_bucket{endpoint="event",le="0.25"} 12
took_seconds_bucket{endpoint="event",le="30"} 12
took_seconds_bucket{endpoint="event",le="+Inf"} 16
took_seconds_sum{endpoint="event"} 240.008000004
took_seconds_count{endpoint="event"} 16
plain_seconds_bucket{le="1"} 0
plain_seconds_bucket{le="+Inf"} 1
plain_seconds_sum 2
plain_seconds_count 1
`
	if b.String() != want {
		t.Errorf("have\n%s\nwant\n%s", b.String(), want)
	}
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBoundsMustAscend(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "ascend") {
			t.Errorf("recovered %v", r)
		}
	}()
	New(metrics.NewSet(), "x", "", 2, 1)
}
