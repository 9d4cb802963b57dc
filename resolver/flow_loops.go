package resolver

// ofOurOwn reports whether what happens now is the service's own doing.
func (m *Machine) ofOurOwn() bool { return m.depth > 0 || m.reporting }

// cutLoop counts an enrolment that does not begin.
func (m *Machine) cutLoop(a *account, f *flowState) {
	a.flows.count(f).LoopsCut++
	m.counters.FlowLoops++
}
