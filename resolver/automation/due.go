package automation

import (
	"strconv"
	"strings"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// Advance carries out what is due in flows, each thing when the segments have come to the
// same instant: time passes for both in one order, up to the budget of changes. It returns
// what is left of the budget, nothing when more is due. Without live flows it does nothing:
// the caller advances segments.
func (s *State) Advance(budget int) (left int) {
	if len(s.live) == 0 {
		return budget
	}
	e := s.port.Engine()
	for budget > 0 && s.run.stepsLeft > 0 {
		f, it, date := s.next(s.run.nowMs)
		until := s.run.nowMs
		if f != nil {
			until = it.Due
		}
		before := s.run.Enrolments
		flips, ok := e.Step(until, budget)
		if !ok {
			return 0
		}
		if flips > 0 {
			s.React()
			budget -= flips + int(s.run.Enrolments-before)
			continue
		}
		if f == nil {
			return budget
		}
		s.runDue(f, it, date)
		budget--
	}
	return 0
}

// CatchUp continues with what flows have begun that is too much for one record.
func (s *State) CatchUp() {
	changed := false
	for _, f := range s.backfilling {
		s.enrolPending(f)
		if f.Status == Live && f.Scanning {
			s.scanDates(f)
		}
		changed = changed || f.pending.Bits.IsEmpty() && !f.Scanning
	}
	for _, f := range s.deleting {
		s.forgetEnrolments(f)
		changed = changed || f.known.IsEmpty()
	}
	if changed {
		s.index()
	}
}

// enrolPending enrols some of those who are pending, as far as the record has room.
func (s *State) enrolPending(f *flow) {
	for n := 0; n < s.run.Bounds.Scan && s.run.stepsLeft > 0 && s.run.enrolsLeft > 0 && !s.queue.waiting() && s.port.HasRoom() && f.Status == Live && !f.pending.Bits.IsEmpty(); n++ {
		o := f.pending.Bits.Minimum()
		f.pending.Remove(o)
		s.trigger(f, o, f.sinceMs(), nil)
		s.React()
	}
}

// forgetEnrolments removes some of what is stored of a deleted flow.
func (s *State) forgetEnrolments(f *flow) {
	for n := 0; n < s.run.Bounds.Scan && !f.known.IsEmpty(); n++ {
		o := f.known.Minimum()
		s.dropEnrolments(f, o)
		f.entered.Remove(o)
		f.active.Remove(o)
	}
}

// scanDates looks at some profiles for the date that triggers a flow.
func (s *State) scanDates(f *flow) {
	saved := *f.Flow
	for n := 0; n < s.run.Bounds.Scan && saved.ScanFrom < s.port.ProfileCount(); n++ {
		o := saved.ScanFrom
		saved.ScanFrom++
		if s.port.Root(o) != o || s.port.Erased(o) {
			continue
		}
		s.date(f, o, s.port.Load(o), f.PublishedMs)
	}
	if saved.ScanFrom >= s.port.ProfileCount() {
		saved.Scanning, saved.ScanFrom = false, 0
	}
	f.Flow = &saved
	s.put(&saved)
}

// DatesOf works out again when the dates of a profile are due that has changed.
func (s *State) DatesOf(o uint32, d *profile.Document, changed engine.Fields) {
	if s.dateFields&changed == 0 {
		return
	}
	for _, f := range s.onDate {
		if f.Scanning && o >= f.ScanFrom {
			continue // it is looked at when the scan comes to it, once
		}
		s.date(f, o, d, s.port.Engine().NowMs())
	}
}

// date enters when a flow's date is due for a profile, after an instant.
func (s *State) date(f *flow, o uint32, d *profile.Document, afterMs int64) {
	due := f.dateOf(d, afterMs)
	if due == 0 && !f.known.Contains(o) {
		return
	}
	// A step of the same flow may have changed the date: its record is at hand, and
	// is stored when the enrolment has been run.
	r, running := &s.run.enrolments, s.run.running.f == f && s.run.running.o == o
	if !running {
		r = &s.run.otherRecord
		s.loadRecord(f, o, r)
	}
	// What is due at this instant, or was while the flow was paused, stays due unless
	// the date has changed.
	if r.DateMs == due || r.DateMs != 0 && r.DateMs <= afterMs && f.dateOf(d, r.DateMs-1) == r.DateMs {
		return
	}
	if r.DateMs != 0 {
		f.dates.Remove(dueset.Item{Due: r.DateMs, Ordinal: o})
	}
	r.DateMs = due
	s.enterDate(f, o, due)
	if !running {
		s.saveRecord(f, o, r)
	}
}

// enterDate enters when a date trigger is due for a profile, if it is.
func (s *State) enterDate(f *flow, o uint32, dueMs int64) {
	if dueMs != 0 {
		f.dates.Add(dueset.Item{Due: dueMs, Ordinal: o})
		s.soon(dueMs)
	}
}

// dateOf is when the flow's date is due for a profile, after an instant; 0 for
// never.
func (f *flow) dateOf(d *profile.Document, afterMs int64) int64 {
	if f.def.Trigger.Type != flows.TriggerDate || d.IsAnonymous() {
		return 0
	}
	var value []byte
	switch group, path, _ := strings.Cut(f.def.Trigger.Date.Field, "."); group {
	case "attributes":
		value, _ = rawjson.Lookup(d.Attributes, strings.Split(path, "."))
	case "geo":
		value, _ = rawjson.Lookup(d.Geo, strings.Split(path, "."))
	default:
		value = strconv.AppendInt(nil, d.CreatedMs, 10)
	}
	if len(value) == 0 {
		return 0
	}
	due, ok := f.def.Trigger.Date.Next(value, afterMs)
	if !ok || due <= 0 {
		return 0
	}
	return due
}
