package segments

import (
	"strings"
	"testing"
	"time"
)

func TestEstimate(t *testing.T) {
	last := &Step{Profiles: 100, DiskBytes: 1000, Phases: []PhaseTime{{"grow", 2, true}, {"ingest", 5, false}, {"verify", 1, true}}}
	last.Memory.Bare.HeapBytes, last.Memory.WithSegments.HeapBytes = 1<<20, 3<<20
	e := estimateStep(last, 1000, 7)
	if want := (estimate{35 * time.Second, 40<<20 + 7 + fixedBytes, 13_000}); e != want {
		t.Fatalf("%+v, want %+v", e, want)
	}
	enough := room(e)
	if why := e.excess(enough); why != "" {
		t.Errorf("fits: %s", why)
	}
	for want, r := range map[string]room{
		"--max-memory-mb": {e.time, e.memory - 1, e.disk},
		"on disk":         {e.time, e.memory, e.disk - 1},
		"--budget":        {e.time - 1, e.memory, e.disk},
	} {
		if why := e.excess(r); !strings.Contains(why, want) {
			t.Errorf("%q does not name %q", why, want)
		}
	}
}

func TestSizes(t *testing.T) {
	o := Options{MinProfiles: 10_000, MaxProfiles: 3_000_000}
	if got := o.sizes(); len(got) != 4 || got[0] != 10_000 || got[2] != 1_000_000 || got[3] != 3_000_000 {
		t.Errorf("%v", got)
	}
	o.MaxProfiles = 10_000
	if got := o.sizes(); len(got) != 1 || got[0] != 10_000 {
		t.Errorf("%v", got)
	}
	if got := smaller(1000, 10_000); len(got) != 3 || got[0] != 5000 || got[2] != 2000 {
		t.Errorf("%v", got)
	}
	if got := smaller(1000, 2500); len(got) != 1 || got[0] != 2000 {
		t.Errorf("%v", got)
	}
}
