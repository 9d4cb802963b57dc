package idlememory

import (
	"testing"
	"time"
)

// TestReleasesAreWorthTheirCost: a busy process never pays, an idle one a tenth of the CPU
// time that it takes.
func TestReleasesAreWorthTheirCost(t *testing.T) {
	t.Parallel()
	const cost = 20 * time.Millisecond
	used := time.Hour // of the start, before the first look
	w := watch{last: used}
	for i, minute := range []struct {
		cpu  time.Duration
		want bool
	}{
		{idleCPU, false}, {time.Hour, false}, // busy
		{idleCPU - 1, true}, {0, false}, {0, false}, // idle: once
		{9 * cost, false}, {cost - 1, false}, {1, true}, {0, false}, // a request now and then
		{idleCPU, false}, {0, true}, {0, false}, // busy once more
	} {
		used += minute.cpu
		if w.due(used) != minute.want {
			t.Errorf("minute %d with %v of CPU time: due is %v", i, minute.cpu, !minute.want)
		}
		if minute.want {
			w.released(used, used+cost)
			used += cost
		}
	}
}

// TestAFreshProcessIsReleased: a start may take less CPU time than a busy minute.
func TestAFreshProcessIsReleased(t *testing.T) {
	t.Parallel()
	if w := (watch{last: idleCPU / 2}); !w.due(idleCPU / 2) {
		t.Error("what the start left stays")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		Run(t.Context(), nil) // canceled before Cleanup
	}()
	t.Cleanup(func() { <-done })
}
