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
	// leastWork is what is done at least between two pauses: the shortest takes a millisecond.
	leastWork = 250 * time.Microsecond
	// keyTime is, roughly, what it takes to write a key.
	keyTime = 2 * time.Microsecond
)

// Pauses inserts the pauses of one checkpoint. Nil inserts none.
type Pauses struct {
	limits *Throttle
	ratio  float64
	since  time.Time // when the work under way began
}

// newPauses returns the pauses for writing so many keys, and the files beside them; nil without
// a throttle.
func newPauses(throttle *Throttle, keys int) *Pauses {
	if throttle == nil {
		return nil
	}
	p := &Pauses{limits: throttle, ratio: idleRatio, since: time.Now()} // it is the processor's time that counts
	if work := time.Duration(keys) * keyTime; work*idleRatio > throttle.Budget {
		p.ratio = float64(throttle.Budget) / float64(work)
	}
	return p
}

// worked pauses after a piece of work that was not too short for a pause.
func (p *Pauses) worked() {
	if p == nil {
		return
	}
	took := time.Since(p.since)
	if took < leastWork {
		return
	}
	p.limits.Sleep(min(longestSleep, time.Duration(p.ratio*float64(took))))
	p.since = time.Now()
}
