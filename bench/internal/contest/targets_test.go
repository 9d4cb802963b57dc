package contest

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/report"
)

// TestTargets: each kind of load has its bounds, and what was not measured is not judged.
func TestTargets(t *testing.T) {
	batch := ModeReport{Mode: Mode{Batch: 100}, Median: Summary{MusterPerSecond: 1, OfParse: 0.22, OfRead: 0.1, PacedP99Millis: 11, PacedP999Millis: 29},
		Rounds: []Round{{Muster: &Muster{DiskBytes: map[string]int64{"log": 2000, "state": 500}}}}}
	batch.Rounds[0].Muster.Once.Rows = 10
	repeat := batch
	repeat.Mode.Repeat, repeat.Mode.ChangeRatio = true, 0.05
	r := &Report{Modes: []ModeReport{
		{Mode: Mode{Connections: 64}, Median: Summary{MusterPerSecond: 1, OfParse: 0.1, OfRead: 0.41, PacedP99Millis: 9, PacedP999Millis: 31}},
		batch, repeat, {Mode: Mode{Batch: 100, Tracking: true}, Median: Summary{MusterPerSecond: 1}}, {},
	}}
	var out strings.Builder
	report.PrintTargets(r.Targets())(&out)
	want := `
MET: single events: share of read only: 0.41, at least 0.4
MET: single events: p99 in ms at half of the rate: 9, at most 10
MISSED: single events: p99.9 in ms at half of the rate: 31, at most 30
MET: batches of 100: share of parse only: 0.22, at least 0.2
MISSED: batches of 100: p99 in ms at half of the rate: 11, at most 10
MET: batches of 100: p99.9 in ms at half of the rate: 29, at most 30
MISSED: batches of 100: bytes on disk an event: 250, at most 240
MISSED: batches of 100, traits of 0.05 of them change: share of parse only: 0.22, at least 0.25
MISSED: batches of 100, traits of 0.05 of them change: p99 in ms at half of the rate: 11, at most 10
MET: batches of 100, traits of 0.05 of them change: p99.9 in ms at half of the rate: 29, at most 30
MISSED: batches of 100, traits of 0.05 of them change: bytes on disk an event: 250, at most 240
`
	if out.String() != want {
		t.Errorf("got%s\nwant%s", out.String(), want)
	}
}
