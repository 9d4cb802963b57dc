package resolver

import "time"

// rests are those of whoever writes a checkpoint, so that what answers requests has
// the processors.
type throttleLimits struct {
	// take waits for a while. It returns at once when there is haste.
	sleep func(time.Duration)
	// atMost is what all of them add up to, roughly: a crash goes back to the
	// checkpoint before.
	budget time.Duration
}

// The pace of a checkpoint that nobody waits for. One of a second's work that is
// written in one go takes a processor for that second, and where there are few of
// them requests wait for it.
const (
	// idleRatio is how many times as long as it works a checkpoint rests.
	idleRatio = 8
	// longestSleep is also how late haste may be noticed.
	longestSleep = 100 * time.Millisecond
	// keyTime is, roughly, what it takes to write a key.
	keyTime = 2 * time.Microsecond
)

// throttle spreads work.
type throttle struct {
	limits *throttleLimits
	ratio  float64
	since  time.Time // when the work under way began
}

// newThrottle is the pace of writing so many keys; without rests if they are nil.
func newThrottle(rests *throttleLimits, keys int) throttle {
	p := throttle{limits: rests, ratio: idleRatio, since: time.Now()} // it is the processor's time that counts
	if work := time.Duration(keys) * keyTime; rests != nil && work*idleRatio > rests.budget {
		p.ratio = float64(rests.budget) / float64(work)
	}
	return p
}

// worked rests after a piece of work.
func (p *throttle) worked() {
	if p.limits == nil {
		return
	}
	p.limits.sleep(min(longestSleep, time.Duration(p.ratio*float64(time.Since(p.since)))))
	p.since = time.Now()
}
