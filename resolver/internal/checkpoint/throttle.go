package checkpoint

import "time"

// Throttle sets the pauses while a checkpoint is written, so that requests get the
// processors.
type Throttle struct {
	// Sleep waits for a while. It returns at once when the checkpoint is urgent.
	Sleep func(time.Duration)
	// Budget is what all of them add up to, roughly: a crash goes back to the
	// checkpoint before.
	Budget time.Duration
}

// How a checkpoint that no request waits for is throttled. One of a second's work
// that is written in one go takes a processor for that second, and requests wait
// for it where processors are few.
const (
	// idleRatio is the length of a checkpoint's pause relative to its work before.
	idleRatio = 8
	// longestSleep is also how late it may be noticed that a checkpoint is urgent.
	longestSleep = 100 * time.Millisecond
	// keyTime is, roughly, what it takes to write a key.
	keyTime = 2 * time.Microsecond
)

// throttling inserts the pauses of one checkpoint.
type throttling struct {
	limits *Throttle
	ratio  float64
	since  time.Time // when the work under way began
}

// newThrottling returns the throttling for writing so many keys, none without a throttle.
func newThrottling(throttle *Throttle, keys int) throttling {
	p := throttling{limits: throttle, ratio: idleRatio, since: time.Now()} // it is the processor's time that counts
	if work := time.Duration(keys) * keyTime; throttle != nil && work*idleRatio > throttle.Budget {
		p.ratio = float64(throttle.Budget) / float64(work)
	}
	return p
}

// worked pauses after a piece of work.
func (p *throttling) worked() {
	if p.limits == nil {
		return
	}
	p.limits.Sleep(min(longestSleep, time.Duration(p.ratio*float64(time.Since(p.since)))))
	p.since = time.Now()
}
