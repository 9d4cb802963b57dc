package automation

import (
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// The events that flows record on profiles.
const (
	EventEntered   = "flow_entered"
	EventCompleted = "flow_completed"
	EventExited    = "flow_exited"
)

// eventListJoined is the event that joining a list is recorded as.
const eventListJoined = "list_joined"

// toEnrol is an enrolment to be made.
type toEnrol struct {
	f     *flow
	o     uint32
	atMs  int64
	depth uint8
	own   bool // the service itself caused it
	call  bool // a call did, which is answered with what becomes of it
	event []byte
}

// trigger has a profile enrolled when the record has reached a state that fits
// together: see React.
func (s *State) trigger(f *flow, o uint32, atMs int64, event []byte) {
	if len(event) > maxEventBytes {
		event = nil
	}
	s.run.triggered = append(s.run.triggered, toEnrol{f: f, o: o, atMs: atMs, depth: s.run.depth, own: s.run.ofOurOwn(), event: event})
}

// Event looks for flows that an event triggers, at the present instant of the segments.
func (s *State) Event(o uint32, typ, properties []byte) {
	if s.run.quiet || s.port.Engine().Anonymous().Contains(o) {
		return // an anonymous profile enrols by segments alone that include it
	}
	now := s.port.Engine().NowMs()
	for _, f := range s.onEvent[string(typ)] {
		if !slices.ContainsFunc(f.def.Trigger.Event.Where, func(p segment.Predicate) bool { return !p.Match(properties, now) }) {
			s.trigger(f, o, now, properties)
		}
	}
	if len(s.onList) > 0 && string(typ) == eventListJoined {
		if raw, ok := rawjson.Lookup(properties, []string{"list_id"}); ok {
			if id, ok := rawjson.Text(raw, nil); ok {
				for _, f := range s.onList[string(id)] {
					s.trigger(f, o, now, properties)
				}
			}
		}
	}
}

// Transition looks for flows that an entry or exit triggers. A merge triggers
// none, nor does what is imported.
func (s *State) Transition(t *query.Transition) {
	for _, f := range s.onSegment[t.Segment] {
		// Into is the direction that enrols.
		into := t.Entered == (f.def.Trigger.Type == flows.TriggerSegmentEntered)
		silent := s.run.quiet || t.Cause == segment.CauseMerge || s.port.Erased(t.Ordinal)
		switch {
		case f.Status != Live && !into:
			f.pending.Remove(t.Ordinal)
		case silent:
			// It triggers no enrolment. A pending profile of a live flow is enrolled
			// all the same.
		case f.Status == Live:
			// A pending profile enrols for the earlier transition first.
			if f.pending.Remove(t.Ordinal) {
				s.trigger(f, t.Ordinal, f.sinceMs(), nil)
			}
			if into {
				s.trigger(f, t.Ordinal, max(t.AtMs, f.sinceMs()), nil)
			}
		default:
			// A merge in the same record came before this transition.
			f.pending.Add(s.port.Root(t.Ordinal))
		}
	}
}

// sinceMs is when a live flow began to be live.
func (f *Flow) sinceMs() int64 { return max(f.PublishedMs, f.ResumedMs) }

// React hands over the transitions of the account and enrols the profiles whose
// triggers fired, until nothing new follows.
func (s *State) React() {
	s.port.EmitTransitions()
	for i := 0; i < len(s.run.triggered); i++ {
		t := s.run.triggered[i]
		if s.mustDefer(&t) {
			s.deferEnrolment(&t)
			continue
		}
		s.enrol(&t)
		s.port.EmitTransitions()
	}
	s.queueDeferred()
	s.run.depth = 0
	clear(s.run.triggered)
	s.run.triggered = s.run.triggered[:0]
}

// enrol begins a profile's enrolment in a flow and runs it.
func (s *State) enrol(t *toEnrol) {
	f, o := t.f, s.port.Root(t.o)
	switch {
	case s.port.Erased(o):
		return
	case f.Status != Live:
		f.missed(o)
		return
	case f.entered.Contains(o) && (f.def.Reentry != flows.AfterExit || f.active.Contains(o)):
		return
	case t.depth > MaxDepth:
		s.cutLoop(f)
		return
	}
	d := s.port.Load(o)
	if t.own { // the service caused it itself, so it may be a loop; no condition looks at what is counted
		if !d.Caused.Add(s.port.Engine().NowMs()) {
			s.cutLoop(f)
			return
		}
		s.port.Save(o, d)
	}
	s.loadEnrolments(f, o)
	s.run.running = host{s: s, d: d, f: f, o: o}
	e := s.run.enrolments.Begin(f.def.Start(t.atMs, t.depth, t.event, &s.run.running))
	f.entered.Add(o)
	f.active.Add(o)
	s.count(f).Entered++
	s.run.Enrolments++
	s.run.enrolsLeft--
	s.run.depth = t.depth + 1
	s.port.Record(o, EventEntered, f.about, f.aboutEncoded)
	s.runEnrolment(f, o, e, t.atMs)
}

// missed notes that a profile's turn finds the flow paused: by the last credit, it
// may be, which an enrolment before it took in the same record. Of a segment it
// counts as having entered (or left) during the pause; other triggers are missed.
func (f *flow) missed(o uint32) {
	if f.Status == Paused && f.def.Trigger.SegmentID != "" {
		f.pending.Add(o)
	}
}

// runDue carries out what is due in a flow.
func (s *State) runDue(f *flow, it dueset.Item, date bool) {
	o := it.Ordinal
	d := s.port.Load(o)
	s.loadEnrolments(f, o)
	if date {
		f.dates.Remove(it)
		s.run.enrolments.DateMs = f.dateOf(d, it.Due)
		s.enterDate(f, o, s.run.enrolments.DateMs)
		s.saveEnrolments(f, o)
		if !f.wasPaused(it.Due) {
			s.trigger(f, o, max(it.Due, f.sinceMs()), nil)
		}
	} else {
		f.timers.Remove(it)
		s.run.running = host{s: s, d: d, f: f, o: o}
		s.runEnrolment(f, o, s.run.enrolments.Current(), max(it.Due, f.sinceMs()))
	}
	s.React()
}

// runEnrolment runs the enrolment in the scratch record, with its host set.
func (s *State) runEnrolment(f *flow, o uint32, e *flows.Enrolment, atMs int64) {
	s.run.running.e = e
	f.def.Run(e, atMs, &s.run.stepsLeft, &s.run.running)
	s.run.depth = e.Depth + 1
	switch {
	case e.Status == flows.InProgress:
		s.enterTimer(f, o, e)
	case e.Status == flows.Completed:
		f.active.Remove(o)
		s.count(f).Completed++
		s.port.Record(o, EventCompleted, f.about, f.aboutEncoded)
	default:
		f.active.Remove(o)
		s.count(f).Exited++
		p := map[string]any{"flow_id": f.ID, "flow_name": f.def.Name, "reason": e.Reason.String()}
		s.port.Record(o, EventExited, p, must.PlainJSON(p))
	}
	s.saveEnrolments(f, o)
	s.run.running = host{} // further effects of the record are not this enrolment's
}

// enterTimer notes when an enrolment in progress continues, if it does by itself.
func (s *State) enterTimer(f *flow, o uint32, e *flows.Enrolment) {
	if e.Timed() {
		f.timers.Add(dueset.Item{Due: e.DueMs, Ordinal: o})
		s.soon(e.DueMs)
	}
}

// cutLoop counts an enrolment that does not begin.
func (s *State) cutLoop(f *flow) {
	s.count(f).LoopsCut++
	s.run.Loops++
}
