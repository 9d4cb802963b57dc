package peer

import (
	"sync"
	"time"
)

const (
	// windowCalls is how many calls of a node may overtake another on their way. One
	// that is overtaken by more counts as one that came before.
	windowCalls = 1 << 16
	// maxStreams bounds the processes whose calls are remembered, 8 KiB each: those
	// that have called within streamTime.
	maxStreams = 256
	// streamTime is for how long a call may be taken for one of this minute after it
	// came: it may have been signed by a clock that is ahead.
	streamTime = 2 * maxSkew
)

// replays remembers the calls that came, so that none counts twice. The calls of a
// process are numbered; a bit for each of the last suffices.
type replays struct {
	mu struct {
		sync.Mutex
		streams map[string]*window
	}
}

// window is the newest call numbers of a process.
type window struct {
	last int64                    // when it called last, in Unix milliseconds
	top  uint64                   // the highest number that came
	seen [windowCalls / 64]uint64 // which came of those up to top, by number modulo windowCalls
}

// fresh reports whether a call has not come before, and remembers it. Calls of which
// that is not known are not fresh.
func (r *replays) fresh(stream string, number uint64, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.mu.streams[stream]
	if w == nil {
		if len(r.mu.streams) >= maxStreams {
			r.prune(now)
		}
		if len(r.mu.streams) >= maxStreams {
			return false
		}
		if r.mu.streams == nil {
			r.mu.streams = map[string]*window{}
		}
		w = &window{}
		r.mu.streams[stream] = w
	}
	w.last = max(w.last, now.UnixMilli()) // a clock that is put back drops nothing early
	return w.take(number)
}

// prune drops processes all of whose calls are too old to be accepted.
func (r *replays) prune(now time.Time) {
	for stream, w := range r.mu.streams {
		if now.UnixMilli()-w.last > streamTime.Milliseconds() {
			delete(r.mu.streams, stream)
		}
	}
}

// take notes a number, from 1 on, and reports whether it is new.
func (w *window) take(number uint64) bool {
	switch {
	case number == 0, number+windowCalls <= w.top:
		return false
	case number > w.top:
		for n := w.top + 1; n < number && n <= w.top+windowCalls; n++ {
			w.seen[n%windowCalls/64] &^= 1 << (n % 64)
		}
		w.top = number
	case w.seen[number%windowCalls/64]&(1<<(number%64)) != 0:
		return false
	}
	w.seen[number%windowCalls/64] |= 1 << (number % 64)
	return true
}
