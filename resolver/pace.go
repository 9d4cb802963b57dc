package resolver

import "time"

// rests are those of whoever writes a checkpoint, so that what answers requests has
// the processors.
type rests struct {
	// take waits for a while. It returns at once when there is haste.
	take func(time.Duration)
	// atMost is what all of them add up to, roughly: a crash goes back to the
	// checkpoint before.
	atMost time.Duration
}

// The pace of a checkpoint that nobody waits for. One of a second's work that is
// written in one go takes a processor for that second, and where there are few of
// them requests wait for it.
const (
	// restRatio is how many times as long as it works a checkpoint rests.
	restRatio = 8
	// longestRest is also how late haste may be noticed.
	longestRest = 100 * time.Millisecond
	// keyTime is, roughly, what it takes to write a key.
	keyTime = 2 * time.Microsecond
)

// pace spreads work.
type pace struct {
	rests *rests
	ratio float64
	since time.Time // when the work under way began
}

// newPace is the pace of writing so many keys; without rests if they are nil.
func newPace(rests *rests, keys int) pace {
	p := pace{rests: rests, ratio: restRatio, since: time.Now()} // it is the processor's time that counts
	if work := time.Duration(keys) * keyTime; rests != nil && work*restRatio > rests.atMost {
		p.ratio = float64(rests.atMost) / float64(work)
	}
	return p
}

// worked rests after a piece of work.
func (p *pace) worked() {
	if p.rests == nil {
		return
	}
	p.rests.take(min(longestRest, time.Duration(p.ratio*float64(time.Since(p.since)))))
	p.since = time.Now()
}
