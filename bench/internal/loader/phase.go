package loader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Limits of a phase.
const (
	// grace is how long after its end a phase waits for answers.
	grace = 30 * time.Second
	// maxWaits is the number of requests that a connection tells one by one.
	maxWaits = 1 << 20
	// failurePause keeps a connection that is refused from spinning.
	failurePause = 10 * time.Millisecond
	// maxFailures in a row end a connection's part of a phase.
	maxFailures = 200
	// sweepLimit bounds the time to make the known profiles known.
	sweepLimit = 10 * time.Minute
	// latencies are recorded from 1 µs to 5 min with three digits.
	maxLatencyMicros = 300_000_000
)

// Result is what a phase did.
type Result struct {
	// Start is when the phase began.
	Start time.Time
	// Requests and Events were acknowledged.
	Requests, Events uint64
	// Failed requests were refused or not answered.
	Failed uint64
	// Elapsed is from the start of the phase to the last answer.
	Elapsed time.Duration
	// Latency of acknowledged requests, in microseconds. In an open loop from
	// the instant a request was due, otherwise from when it was sent.
	Latency *hdrhistogram.Histogram
	// Late is, in an open loop, how late idle connections woke up, in
	// microseconds: the loader's own part of Latency.
	Late *hdrhistogram.Histogram
	// FirstFailure is one of the failures, nil if there were none.
	FirstFailure error
	// Waits are the acknowledged requests, where [Fleet.Each] asks for them: the first million
	// of each connection.
	Waits []Wait
	// Slots are the parts of the phase, each as long as [Fleet.Interval]. Without an
	// interval there are none.
	Slots []Slot
}

// Wait is the time in which a request was unanswered: from when it was due, in an open
// loop, or sent, to its answer. Both are in microseconds from the start of the phase.
type Wait struct{ From, To uint32 }

// Span is a [Wait] by the clock.
type Span struct{ From, To time.Time }

// Span returns when a request of the phase was unanswered.
func (r *Result) Span(w Wait) Span {
	at := func(micros uint32) time.Time { return r.Start.Add(time.Duration(micros) * time.Microsecond) }
	return Span{at(w.From), at(w.To)}
}

// Slow returns the requests that took longer than a time, of [Result.Waits].
func (r *Result) Slow(than time.Duration) (slow []Span) {
	for _, w := range r.Waits {
		if time.Duration(w.To-w.From)*time.Microsecond > than {
			slow = append(slow, r.Span(w))
		}
	}
	return slow
}

// EventsPerSecond is the rate of acknowledged events.
func (r *Result) EventsPerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Events) / r.Elapsed.Seconds()
}

// NewHistogram returns an empty histogram of latencies in microseconds.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatencyMicros, 3) }

// Record adds a latency to a histogram.
func Record(h *hdrhistogram.Histogram, d time.Duration) {
	// Values are clamped into the histogram's range, so this cannot fail.
	_ = h.RecordValue(min(max(d.Microseconds(), 1), maxLatencyMicros))
}

// tally is one member's part of a Result.
type tally struct {
	Result
	failures int // in a row
	last     time.Time
	series   *series // nil where no parts are wanted
	each     bool
}

// note counts the outcome of one request due or sent at from and reports
// whether the member may continue.
func (t *tally) note(ctx context.Context, m *member, from time.Time, err error) bool {
	t.last = time.Now()
	if err == nil {
		t.failures = 0
		t.Requests++
		t.Events += m.perCall
		Record(t.Latency, t.last.Sub(from))
		if t.series != nil {
			t.series.add(t.last, m.perCall, t.last.Sub(from))
		}
		if t.each && len(t.Waits) < maxWaits {
			micros := func(at time.Time) uint32 { return uint32(max(at.Sub(t.Start), 0) / time.Microsecond) }
			t.Waits = append(t.Waits, Wait{micros(from), micros(t.last)})
		}
		return true
	}
	t.Failed++
	t.failures++
	if t.FirstFailure == nil {
		t.FirstFailure = err
	}
	if t.failures >= maxFailures {
		t.FirstFailure = fmt.Errorf("connection %d gave up after %d failures in a row: %w", m.number, t.failures, err)
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(failurePause):
		return true
	}
}

// run lets every member do its part, and adds up. No call outlives deadline.
func (f *Fleet) run(ctx context.Context, start, deadline time.Time, part func(m *member, t *tally)) *Result {
	for _, m := range f.members {
		m.deadline = deadline
		m.expire(deadline)
	}
	// A cancelled run must not wait for answers that do not come.
	unwatch := context.AfterFunc(ctx, func() {
		for _, m := range f.members {
			m.expire(time.Now())
		}
	})
	defer unwatch()
	var parts *series
	if f.Interval > 0 {
		parts = &series{start: start, interval: f.Interval}
	}
	tallies := make([]*tally, len(f.members))
	var wg sync.WaitGroup
	for i, m := range f.members {
		tallies[i] = &tally{Result: Result{Start: start, Latency: NewHistogram(), Late: NewHistogram()}, last: start, series: parts, each: f.Each}
		wg.Go(func() { part(m, tallies[i]) })
	}
	wg.Wait()
	total := &Result{Start: start, Latency: NewHistogram(), Late: NewHistogram()}
	last := start
	for _, t := range tallies {
		total.Requests += t.Requests
		total.Events += t.Events
		total.Failed += t.Failed
		total.Latency.Merge(t.Latency)
		total.Late.Merge(t.Late)
		total.Waits = append(total.Waits, t.Waits...)
		if total.FirstFailure == nil {
			total.FirstFailure = t.FirstFailure
		}
		if t.last.After(last) {
			last = t.last
		}
	}
	total.Elapsed = last.Sub(start)
	if parts != nil {
		total.Slots = parts.slots
	}
	return total
}
