package flows

// Host is the world as far as an enrolment in a flow reaches it. Every call is
// about the profile whose enrolment it is, and is made once for a step.
type Host interface {
	// Live reports whether the flow still is: a step may have ended that, by spending
	// the last credit.
	Live() bool
	// Matches reports whether the profile satisfies the condition at a step.
	Matches(step int) bool
	// Random is 64 uniform bits, the same for the same enrolment and step.
	Random(step int) uint64
	// Send queues the first of the messages that reaches the profile, and returns its
	// place with Queued. Otherwise it says why the last one does not reach the profile. It
	// may also return Later, and for an e-mail OutOfCredits.
	Send(step int, messages []Message) (r Result, at int)
	// HeldUntil is when a step is to be carried out that was Held the last time.
	HeldUntil() int64
	// Webhook queues a request. With Queued it returns the number under which the
	// outcome will come to [Flow.Answer].
	Webhook(step int, x *Webhook) (Result, uint64)
	// Tag changes the profile's tags.
	Tag(step int, x *Tag) Result
	// Update changes the profile's fields.
	Update(step int, x *Update) Result
	// Arrived is called with each step reached, and Left with its outcome when the enrolment
	// continues or ends.
	Arrived(step int)
	Left(step int, r Result)
	// LooksAgain reports whether the conditions before a step that was held up are looked at
	// again: under older rules they were not.
	LooksAgain() bool
	// Returned takes back what Arrived and Left have said of a step, whose outcome was r,
	// Pending of the one where the enrolment stands: a condition before it has another
	// outcome now.
	Returned(step int, r Result)
}

// Start begins an enrolment: it stands at the entry, to be carried out at once. event is
// what started it, a JSON object or nil.
func (f *Flow) Start(atMs int64, depth uint8, event []byte, h Host) Enrolment {
	e := Enrolment{Status: InProgress, Depth: depth, StartedMs: atMs, Event: event}
	e.arrive(0, atMs, h)
	return e
}

// Run takes an enrolment on at an instant that is not before its DueMs, until it must
// wait or ends, or until budget steps were carried out. An enrolment that could continue
// but for the budget, for credits, or because the flow is not live any more, is
// due at once.
func (f *Flow) Run(e *Enrolment, atMs int64, budget *int, h Host) {
	switch {
	case !h.Live():
	case e.Phase == Sleeping:
		if e.DueMs > e.SinceMs {
			e.Depth = 0 // time has passed: what follows is no loop at one instant
		}
		e.leave(Done, 0, f.Steps[e.Step].Next, atMs, h)
	case e.Heard():
		f.answered(e, atMs, h)
	case e.Phase == Ready && atMs > e.SinceMs && h.LooksAgain():
		f.lookAgain(e, atMs, h)
	}
	for e.Status == InProgress && e.Phase == Ready && *budget > 0 && h.Live() {
		*budget--
		switch r := f.carryOut(e, atMs, h); r {
		case Later:
			e.DueMs = atMs + RetryMs
			return
		case Held:
			e.DueMs, e.Depth = max(h.HeldUntil(), atMs), 0 // what follows is no loop at one instant
			return
		case OutOfCredits:
			e.DueMs = atMs
			return
		}
	}
	if e.Status == InProgress && e.Phase == Ready {
		e.DueMs = atMs
	}
}

// lookAgain looks again at the conditions that lead directly to the step at which an
// enrolment was held up, by limits, for want of credits or room, or by a pause: what they
// ask may have changed since, and nothing was done behind them. The enrolment returns to the
// first one that has another outcome now, as if it had not been asked before.
func (f *Flow) lookAgain(e *Enrolment, atMs int64, h Host) {
	first := len(e.Path) - 1 // of the conditions, and of the splits between them
	for first > 0 && (e.Path[first-1].Result == Yes || e.Path[first-1].Result == No || e.Path[first-1].Result == Branched) {
		first--
	}
	for i := first; i < len(e.Path)-1; i++ {
		v := e.Path[i]
		if v.Result == Branched || h.Matches(v.Step) == (v.Result == Yes) {
			continue
		}
		for _, v := range e.Path[i:] {
			h.Returned(v.Step, v.Result)
		}
		e.Path = e.Path[:i]
		e.arrive(v.Step, atMs, h)
		return
	}
}

// carryOut carries out the step an enrolment stands at. OutOfCredits and Later say that
// it is still to be carried out.
func (f *Flow) carryOut(e *Enrolment, atMs int64, h Host) Result {
	at := e.Step
	s := &f.Steps[at]
	r, next, branch := Done, s.Next, 0
	switch s.Type {
	case StepWait:
		if due := s.Wait.Due(atMs); due > atMs {
			e.Phase, e.DueMs = Sleeping, due
			return Done
		}
	case StepCondition:
		r, next = No, s.Condition.No
		if h.Matches(at) {
			r, next = Yes, s.Condition.Yes
		}
	case StepSplit:
		r, branch = Branched, s.Split.Pick(h.Random(at))
		next = s.Split.Branches[branch].Next
	case StepEmail, StepSMS, StepWhatsApp, StepPush, StepInApp, StepIM, StepOmnichannel:
		r, branch = h.Send(at, s.Messages)
	case StepTag:
		r = h.Tag(at, s.Tag)
	case StepUpdate:
		r = h.Update(at, s.Update)
	case StepWebhook:
		var item uint64
		if r, item = h.Webhook(at, s.Webhook); r == Queued {
			e.Phase, e.Item, e.DueMs = Awaiting, item, Never
			return r
		}
	case StepExit:
		e.end(Exited, ByStep, Done, 0, atMs, h)
		return Done
	}
	if r != OutOfCredits && r != Later && r != Held {
		e.leave(r, branch, next, atMs, h)
	}
	return r
}

// Answer notes what became of the item that an enrolment awaits, and why where it failed.
// [Flow.Run] takes the enrolment on from there, at once or when the flow is live again. It
// returns false when the enrolment awaits no such item.
func (f *Flow) Answer(e *Enrolment, item uint64, delivered bool, reason string, atMs int64) bool {
	if e.Status != InProgress || e.Phase != Awaiting || e.Item != item {
		return false
	}
	e.Phase, e.DueMs = HeardFailed, atMs
	if delivered {
		e.Phase = HeardDelivered
	} else {
		e.Path[len(e.Path)-1].Reason = boundReason(reason)
	}
	return true
}

// answered leaves a step whose outcome was noted.
func (f *Flow) answered(e *Enrolment, atMs int64, h Host) {
	e.Depth = 0
	s := &f.Steps[e.Step]
	switch {
	case e.Phase == HeardDelivered:
		e.leave(Delivered, 0, s.Next, atMs, h)
	case s.Webhook.ExitOnFailure:
		e.end(Exited, ByFailure, Failed, 0, atMs, h)
	default:
		e.leave(Failed, 0, s.Next, atMs, h)
	}
}

// Stop ends an enrolment for a reason from outside.
func (e *Enrolment) Stop(r Reason, atMs int64, h Host) { e.end(Exited, r, Stopped, 0, atMs, h) }

// Further reports whether an enrolment is further than another: it came to more steps, or
// to as many and began earlier.
func (e *Enrolment) Further(than *Enrolment) bool {
	if len(e.Path) != len(than.Path) {
		return len(e.Path) > len(than.Path)
	}
	return e.StartedMs < than.StartedMs
}

func (e *Enrolment) arrive(step int, atMs int64, h Host) {
	e.Phase, e.Step, e.SinceMs, e.DueMs, e.Item = Ready, step, atMs, atMs, 0
	e.Path = append(e.Path, Visit{Step: step, AtMs: atMs})
	h.Arrived(step)
}

// leave notes what became of the step an enrolment stands at, and continues to the next.
func (e *Enrolment) leave(r Result, branch, next int, atMs int64, h Host) {
	if next == End {
		e.end(Completed, 0, r, branch, atMs, h)
		return
	}
	e.note(r, branch, h)
	e.arrive(next, atMs, h)
}

func (e *Enrolment) end(s Status, why Reason, r Result, branch int, atMs int64, h Host) {
	e.note(r, branch, h)
	e.Status, e.Reason, e.Phase, e.Step, e.Item = s, why, Ready, End, 0
	e.DueMs, e.EndedMs = Never, atMs
}

func (e *Enrolment) note(r Result, branch int, h Host) {
	v := &e.Path[len(e.Path)-1]
	v.Result, v.Branch = r, branch
	if r != Failed {
		v.Reason = ""
	}
	h.Left(v.Step, r)
}
