package loader

import (
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/baseline"
)

// Each acknowledged event is in one part of the phase, and the parts are as many as fit.
func TestPartsOfAPhase(t *testing.T) {
	f := newFleet(t, Target{Address: serveBaseline(t, baseline.Read), Path: "/api/v1/events", Expect: ExpectSuccess}, spec, 4)
	f.Interval = 20 * time.Millisecond
	r := onePhase(t, f, 200*time.Millisecond)
	var events uint64
	var answers int64
	for _, s := range r.Slots {
		events += s.Events
		answers += s.Latency.TotalCount()
	}
	if events != r.Events || answers != int64(r.Requests) {
		t.Errorf("%d events and %d answers in parts, %d and %d in all", events, answers, r.Events, r.Requests)
	}
	if most := int(r.Elapsed/f.Interval) + 1; len(r.Slots) < 2 || len(r.Slots) > most {
		t.Errorf("%d parts, at most %d", len(r.Slots), most)
	}
	f.Interval = 0
	if r = onePhase(t, f, 20*time.Millisecond); r.Slots != nil {
		t.Errorf("%d parts without an interval", len(r.Slots))
	}
}
