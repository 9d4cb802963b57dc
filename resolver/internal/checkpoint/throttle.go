package checkpoint

import "time"

// Rests are pauses while a checkpoint is written, so that requests get the
// processors.
type Rests struct {
	// Sleep waits for a while. It returns at once when there is haste.
	Sleep func(time.Duration)
	// Budget is what all of them add up to, roughly: a crash goes back to the
	// checkpoint before.
	Budget time.Duration
}

// The pace of a checkpoint that no request waits for. One of a second's work that
// is written in one go takes a processor for that second, and where there are few
// of them requests wait for it.
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
	limits *Rests
	ratio  float64
	since  time.Time // when the work under way began
}

// newThrottle is the pace of writing so many keys; without rests if they are nil.
func newThrottle(rests *Rests, keys int) throttle {
	p := throttle{limits: rests, ratio: idleRatio, since: time.Now()} // it is the processor's time that counts
	if work := time.Duration(keys) * keyTime; rests != nil && work*idleRatio > rests.Budget {
		p.ratio = float64(rests.Budget) / float64(work)
	}
	return p
}

// worked rests after a piece of work.
func (p *throttle) worked() {
	if p.limits == nil {
		return
	}
	p.limits.Sleep(min(longestSleep, time.Duration(p.ratio*float64(time.Since(p.since)))))
	p.since = time.Now()
}
