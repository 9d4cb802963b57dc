package resolver

// maxCaused is how many enrolments of a profile may begin in one minute that the
// service itself has caused: by an event it records of its own doing, or by what
// a step of a flow changed. It bounds loops between flows in breadth, and those
// that go on by way of the outbox, from record to record. What others cause, or
// the clock, is not bounded by it.
const maxCaused = 64

// caused counts such enrolments of a profile in the minute in which the newest
// began. Minutes are of log time, which never goes back: while a clock that was
// put back catches up, they are the same minute.
type caused struct {
	minute int64
	n      uint8
}

// add counts one at an instant, and returns false when there may be no more.
func (c *caused) add(ms int64) bool {
	if minute := ms / 60_000; minute != c.minute {
		*c = caused{minute: minute}
	}
	if c.n >= maxCaused {
		return false
	}
	c.n++
	return true
}

// fold takes over the count of a profile that became part of this one, if it is
// newer or larger.
func (c *caused) fold(o caused) {
	if o.minute > c.minute || o.minute == c.minute && o.n > c.n {
		*c = o
	}
}

// ofOurOwn tells whether what happens now is the service's own doing.
func (m *Machine) ofOurOwn() bool { return m.depth > 0 || m.reporting }

// cutLoop counts an enrolment that does not begin.
func (m *Machine) cutLoop(a *account, f *flowState) {
	a.flows.count(f).LoopsCut++
	m.counters.FlowLoops++
}
