package refusal

import (
	"sync"
	"time"
)

// Of each reason, one line a second is logged, and up to burst at once.
const (
	every = time.Second
	burst = 5
)

// throttle lets lines of one reason through.
type throttle struct {
	mu sync.Mutex // guards what follows
	// full is when burst lines may come at once again.
	full    time.Time
	dropped uint64
}

// take reports whether a line may be logged at now, and how many were not since the
// last.
func (t *throttle) take(now time.Time) (dropped uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full.Before(now) {
		t.full = now
	}
	if t.full.Sub(now) > (burst-1)*every {
		t.dropped++
		return 0, false
	}
	t.full = t.full.Add(every)
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}
