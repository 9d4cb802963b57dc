package contest

import (
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/cpuspeed"
	"github.com/musterhq/muster/bench/internal/loader"
)

// TestSettledLeavesOutSlowProcessors: of a hundred requests of 2 ms each, and ten of 80 ms at
// the time of a slow phase and right after it, the first are left.
func TestSettledLeavesOutSlowProcessors(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	ms := func(n uint32) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	r := &loader.Result{Start: start}
	for i := range uint32(100) {
		r.Waits = append(r.Waits, loader.Wait{From: i * 10_000, To: i*10_000 + 2_000})
	}
	for i := range uint32(10) {
		r.Waits = append(r.Waits, loader.Wait{From: 1_000_000 + i*15_000, To: 1_080_000 + i*15_000})
	}
	slow := cpuspeed.Speed{Phases: []cpuspeed.Phase{{From: ms(1_050), To: ms(1_100)}}}
	if s := settled(r, slow); s != (Settled{100, Latencies{P50Millis: 2, P99Millis: 2, P999Millis: 2, MaxMillis: 2}}) {
		t.Errorf("%+v", s)
	}
	if s := settled(r, cpuspeed.Speed{}); s.Requests != 110 || s.P50Millis != 2 || s.P99Millis != 80 || s.MaxMillis != 80 {
		t.Errorf("without a slow phase: %+v", s)
	}
	if s := settled(&loader.Result{}, slow); s != (Settled{}) {
		t.Errorf("of nothing: %+v", s)
	}
}
