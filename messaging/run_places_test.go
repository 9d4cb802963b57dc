package messaging

import "testing"

// TestWhoMayGiveUpAPlace: one message for each that was handed over, as many as there are
// places at once when none is handed over any more, and maxWaiting in all.
func TestWhoMayGiveUpAPlace(t *testing.T) {
	t.Parallel()
	const n = 8
	x := newPlaces(n)
	leave := func() (left int) {
		for x.mayLeave() {
			left++
		}
		return left
	}
	if got := leave(); got != 0 {
		t.Errorf("%d left before any message was handed over", got)
	}
	for range 5 * n {
		x.handed()
	}
	if got := leave(); got != n {
		t.Errorf("%d left since the last was handed over, expected %d", got, n)
	}
	for range 5 * n {
		x.handed()
		x.mayLeave()
	}
	if got := x.mu.waiting; got != maxWaiting {
		t.Errorf("%d wait, expected %d", got, maxWaiting)
	}
	if maxWaiting+n >= maxFailing {
		t.Error("those who wait stop the run when they fail")
	}
	x.back()
	if got := leave(); got != 1 {
		t.Errorf("%d left after one came back", got)
	}
}
