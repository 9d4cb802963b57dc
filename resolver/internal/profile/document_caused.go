package profile

// MaxCaused is how many enrolments of a profile may begin in one minute that the
// service itself has caused: by an event it records of its own doing, or by what
// a step of a flow changed. It bounds loops between flows in breadth, and those
// that continue by way of the outbox, from record to record. What others cause, or
// the clock, is not bounded by it.
const MaxCaused = 64

// CausedEnrolments counts such enrolments of a profile in the minute in which the
// newest began. Minutes are of log time, which never goes back: while a clock that was
// put back catches up, they are the same minute.
type CausedEnrolments struct {
	minute int64
	n      uint8
}

// Add counts one at an instant, and returns false when there may be no more.
func (c *CausedEnrolments) Add(ms int64) bool {
	if minute := ms / 60_000; minute != c.minute {
		*c = CausedEnrolments{minute: minute}
	}
	if c.n >= MaxCaused {
		return false
	}
	c.n++
	return true
}

// merge takes over the count of a profile that became part of this one, if it is
// newer or larger.
func (c *CausedEnrolments) merge(o CausedEnrolments) {
	if o.minute > c.minute || o.minute == c.minute && o.n > c.n {
		*c = o
	}
}
