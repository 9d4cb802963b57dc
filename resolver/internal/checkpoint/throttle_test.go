package checkpoint

import (
	"testing"
	"time"
)

// TestThrottle: a checkpoint pauses in proportion to its work, never long at once, and not
// for much longer in all however large it is; a waiting request has it hurry.
func TestThrottle(t *testing.T) {
	for _, x := range []struct {
		keys   int
		worked time.Duration // at each piece
		want   time.Duration // the pause after it, at least
		most   time.Duration
	}{
		{1000, 2 * time.Millisecond, 16 * time.Millisecond, longestSleep},
		{1000, 50 * time.Millisecond, longestSleep, longestSleep},
		// 20 s of work: one half of them is slept.
		{10_000_000, 20 * time.Millisecond, 10 * time.Millisecond, 90 * time.Millisecond},
	} {
		var slept []time.Duration
		p := newPauses(&Throttle{func(d time.Duration) { slept = append(slept, d) }, 10 * time.Second}, x.keys)
		begun := time.Now()
		for range 3 {
			p.since = p.since.Add(-x.worked)
			p.worked()
		}
		stalled := idleRatio * time.Since(begun) // a busy machine adds to the work
		for _, d := range slept {
			if d < x.want || d > min(longestSleep, x.most+stalled) {
				t.Errorf("%d keys, %v of work: slept %v, expected %v to %v", x.keys, x.worked, slept, x.want, x.most)
			}
		}
		p.since = time.Now().Add(time.Hour) // work that is shorter than any
		p.worked()
		if len(slept) != 3 {
			t.Errorf("slept %d times, expected 3", len(slept))
		}
	}
	newPauses(nil, 1000).worked()
	if newPauses(nil, 1000) != nil {
		t.Error("pauses without a throttle")
	}
}
