package messaging

import "testing"

// TestNoCallIsForgotten: items that wait for a host go when a turn ends, and all
// of them when it is the last, since those before may be gone from the state.
func TestNoCallIsForgotten(t *testing.T) {
	t.Parallel()
	h := newCallHosts(2)
	waiting := func() (n int) {
		for seq := range uint64(10) {
			if h.waits(flight{1, seq}) {
				n++
			}
		}
		return n
	}
	for seq := range uint64(6) {
		if got, want := h.enter("a", flight{1, seq}), seq < 2; got != want {
			t.Errorf("item %d: %v", seq, got)
		}
	}
	if !h.enter("b", flight{1, 7}) || h.enter("a", flight{2, 1}) {
		t.Error("hosts are not apart")
	}
	if waiting() != 4 || h.room(1) != maxParked-4 || h.room(2) != maxParked-1 {
		t.Errorf("%d wait, room for %d and %d", waiting(), h.room(1), h.room(2))
	}
	h.leave("a")
	if waiting() != 3 || h.waits(flight{1, 2}) {
		t.Errorf("%d wait behind a turn that ended", waiting())
	}
	h.leave("a")
	if waiting() != 0 || h.room(1) != maxParked || h.room(2) != maxParked {
		t.Errorf("%d are forgotten", waiting())
	}
	h.leave("b")
	if len(h.mu.running)+len(h.mu.waiting)+len(h.mu.parked)+len(h.mu.ofAccount) != 0 {
		t.Errorf("something is kept: %+v", h)
	}
}
