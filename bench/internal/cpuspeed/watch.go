package cpuspeed

import (
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
)

const (
	// between is the time between two samples; with chunks of ten microseconds a watch takes
	// about one percent of one processor.
	between = 3 * time.Millisecond
	// A sample is the fastest of its chunks, so that neither an interrupt nor another process
	// that gets the processor in between makes it slow.
	chunks = 4
	steps  = 7500
	// slowBy times slower than usual is slow.
	slowBy = 2
)

// sample is how long a fixed computation took.
type sample struct {
	at   time.Time
	took time.Duration
}

// Watch measures until it is stopped.
type Watch struct {
	stop    chan struct{}
	samples chan []sample
}

// Start begins to watch the processors.
func Start() *Watch {
	w := &Watch{stop: make(chan struct{}), samples: make(chan []sample, 1)}
	go w.run()
	return w
}

func (w *Watch) run() {
	var all []sample
	tick := time.NewTicker(between)
	defer tick.Stop()
	x := uint64(1)
	for {
		select {
		case <-tick.C:
		case <-w.stop:
			w.samples <- all
			return
		}
		one := sample{at: time.Now()}
		for range chunks {
			begin := time.Now()
			for i := range uint64(steps) {
				x = x*31 + i
			}
			if took := time.Since(begin); one.took == 0 || took < one.took {
				one.took = took
			}
		}
		if x == 0 { // it is odd or even as it comes: the computation must have a use
			one.took++
		}
		all = append(all, one)
	}
}

// Stop ends the watch, and returns what it saw. It is called once.
func (w *Watch) Stop() Speed {
	close(w.stop)
	return speedOf(<-w.samples)
}

// Phase is a time in which the processors were slow.
type Phase struct{ From, To time.Time }

// Speed is how fast the processors ran.
type Speed struct {
	// Phases are the times in which they ran at less than half of their usual speed, in order.
	Phases []Phase `json:"-"`
	// Watched is from the first sample to the last, in seconds, and Slow the sum of the phases.
	Watched float64 `json:"watched_seconds"`
	Slow    float64 `json:"slow_seconds"`
	// LongestMillis is the longest phase.
	LongestMillis float64 `json:"longest_slow_ms"`
	// Slowest is how many times longer than usual the slowest sample took.
	Slowest float64 `json:"slowest_times"`
}

// speedOf finds the slow phases. The usual time is the one that a tenth of the samples does
// not exceed. A phase lasts from the last sample before it that was not slow to the first
// one after it.
func speedOf(all []sample) (s Speed) {
	if len(all) == 0 {
		return s
	}
	times := make([]time.Duration, len(all))
	for i, one := range all {
		times[i] = one.took
	}
	slices.Sort(times)
	usual := max(report.Quantile(times, 0.1), 1)
	s.Watched = all[len(all)-1].at.Sub(all[0].at).Seconds()
	s.Slowest = float64(times[len(times)-1]) / float64(usual)
	for i := 0; i < len(all); i++ {
		if all[i].took <= slowBy*usual {
			continue
		}
		p := Phase{From: all[max(i-1, 0)].at}
		for i < len(all)-1 && all[i].took > slowBy*usual {
			i++
		}
		p.To = all[i].at
		s.Phases = append(s.Phases, p)
		s.Slow += p.To.Sub(p.From).Seconds()
		s.LongestMillis = max(s.LongestMillis, p.To.Sub(p.From).Seconds()*1e3)
	}
	return s
}

// Settled reports whether the processors were at their usual speed all the time from one
// instant to another, and so long before it that what queued up in a slow phase can be done:
// a server that is at half of its greatest rate needs for that as long again as the phase took.
func (s Speed) Settled(from, to time.Time) bool {
	// Phases are in order, and so are their ends with what is added, but for a phase that a
	// longer one before it outlasts: all are looked at that begin before to.
	n, _ := slices.BinarySearchFunc(s.Phases, to, func(p Phase, t time.Time) int { return p.From.Compare(t) })
	for _, p := range s.Phases[:n] {
		if p.To.Add(p.To.Sub(p.From)).After(from) {
			return false
		}
	}
	return true
}
