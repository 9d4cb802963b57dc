package loader

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxSlots bounds a series; what is answered later counts to the last slot.
const maxSlots = 1000

// Slot is a part of a phase: what was answered in it.
type Slot struct {
	Events uint64
	// Latency of the answers, in microseconds, with two digits.
	Latency *hdrhistogram.Histogram
}

// series counts acknowledged events by when their answers came. It is shared by all
// connections of a phase.
type series struct {
	start    time.Time
	interval time.Duration
	lock     sync.Mutex
	slots    []Slot
}

// add counts the answer to a request.
func (s *series) add(at time.Time, events uint64, latency time.Duration) {
	i := min(max(int(at.Sub(s.start)/s.interval), 0), maxSlots-1)
	s.lock.Lock()
	defer s.lock.Unlock()
	for len(s.slots) <= i {
		s.slots = append(s.slots, Slot{Latency: hdrhistogram.New(1, maxLatencyMicros, 2)})
	}
	s.slots[i].Events += events
	Record(s.slots[i].Latency, latency)
}
