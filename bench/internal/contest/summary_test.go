package contest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
)

func per(second float64) Phase { return Phase{Phase: report.Phase{EventsPerSecond: second}} }

func round(parse, read, muster float64) Round {
	return Round{
		Parse: per(parse), Read: per(read),
		Muster: &Muster{Saturated: per(muster), Stopped: topology.Stopped{Once: history.Once{Acked: 10, Rows: 10}}, DiskBytes: map[string]int64{"log": 1000}},
	}
}

// A machine that is twice as slow in one round must not change the ratio.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	s := summarise([]Round{round(1000, 2000, 250), round(500, 1000, 125)})
	if s.OfParse != 0.25 || s.OfRead != 0.125 || s.ParsePerSecond != 750 || s.MusterPerSecond != 187.5 {
		t.Errorf("%+v", s)
	}
	if s := summarise([]Round{{Parse: per(5)}}); s.ParsePerSecond != 5 || s.OfParse != 0 {
		t.Errorf("baselines alone: %+v", s)
	}
}

func TestPrintSaysWhatWasFound(t *testing.T) {
	r := round(1000, 2000, 250)
	r.Muster.Once.Missing = 3
	r2 := &Report{Modes: []ModeReport{{Mode: Mode{Name: "batch", Batch: 100, Connections: 16}, Rounds: []Round{r}, Median: summarise([]Round{r})}}}
	var out bytes.Buffer
	if err := r2.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"batches of 100, 16 connections", "3 missing", "log 100.0", "25.0 % of parse only, 12.5 % of read only"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
