package resolver

import (
	"strconv"
	"strings"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/jsontext"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// advance lets time pass for the record's account: what falls due in segments
// and in flows, in one order, up to the budget of changes.
func (m *Machine) advance(c *command, budget int) {
	a := c.account
	if len(a.flows.live) > 0 {
		budget = m.advanceFlows(c, budget)
	}
	a.engine.Advance(m.logTime, budget)
	m.react(c)
}

// advanceFlows carries out what is due in flows, each thing when the segments
// have come to the same instant. It returns what is left of the budget, nothing
// when more is due.
func (m *Machine) advanceFlows(c *command, budget int) int {
	e := c.account.engine
	for budget > 0 && m.flowBudget > 0 {
		f, it, date := c.account.flows.next(m.logTime)
		until := m.logTime
		if f != nil {
			until = it.Due
		}
		before := m.counters.Enrolments
		flips, ok := e.Step(until, budget)
		if !ok {
			return 0
		}
		if flips > 0 {
			m.react(c)
			budget -= flips + int(m.counters.Enrolments-before)
			continue
		}
		if f == nil {
			return budget
		}
		m.runDue(c, f, it, date)
		budget--
	}
	return 0
}

// mayCatchUp reports whether the outbox has room for those who are pending: events
// and waits go first.
func (a *account) mayCatchUp() bool { return a.outbox.Len() < outbox.MaxItems/2 }

// catchUp goes on with what flows have begun that is too much for one record.
func (m *Machine) catchUp(c *command) {
	x := &c.account.flows
	changed := false
	for _, f := range x.catching {
		for n := 0; n < m.flowScan && m.flowBudget > 0 && m.enrolBudget > 0 && !x.queue.waiting() && c.account.mayCatchUp() && f.Status == FlowLive && !f.pending.Bits.IsEmpty(); n++ {
			o := f.pending.Bits.Minimum()
			f.pending.Remove(o)
			m.trigger(f, o, f.sinceMs(), nil)
			m.react(c)
		}
		if f.Status == FlowLive && f.Scanning {
			m.scanDates(c.account, f)
		}
		changed = changed || f.pending.Bits.IsEmpty() && !f.Scanning
	}
	for _, f := range x.unfinished {
		if f.Deleted {
			m.forgetEnrolments(c.account, f)
			changed = changed || f.known.IsEmpty()
		}
	}
	if changed {
		x.index()
	}
}

// forgetEnrolments removes some of what is stored of a deleted flow.
func (m *Machine) forgetEnrolments(a *account, f *flowState) {
	for n := 0; n < m.flowScan && !f.known.IsEmpty(); n++ {
		o := f.known.Minimum()
		m.dropEnrolments(a, f, o)
		f.entered.Remove(o)
		f.active.Remove(o)
	}
}

// scanDates looks at some profiles for the date that triggers a flow.
func (m *Machine) scanDates(a *account, f *flowState) {
	saved := *f.Flow
	for n := 0; n < m.flowScan && saved.ScanFrom < a.headers.Count; n++ {
		o := saved.ScanFrom
		saved.ScanFrom++
		if a.root(o) != o || a.gone(o) {
			continue
		}
		if err := m.load(a, o, &m.doc); err != nil {
			panic(err) // the store is at fault; the record is named
		}
		m.date(a, f, o, &m.doc, f.PublishedMs)
	}
	if saved.ScanFrom >= a.headers.Count {
		saved.Scanning, saved.ScanFrom = false, 0
	}
	f.Flow = &saved
	m.store.PutEntity(state.EntityKey(a.number, state.EntityFlow, saved.ID), must.PlainJSON(&saved))
}

// datesOf works out anew when the dates of a profile are due that has changed.
func (m *Machine) datesOf(a *account, o uint32, d *profile.Document, changed engine.Fields) {
	if a.flows.dateFields&changed == 0 {
		return
	}
	for _, f := range a.flows.onDate {
		if f.Scanning && o >= f.ScanFrom {
			continue // it is looked at when the scan comes to it, once
		}
		m.date(a, f, o, d, a.engine.NowMs())
	}
}

// date enters when a flow's date is due for a profile, after an instant.
func (m *Machine) date(a *account, f *flowState, o uint32, d *profile.Document, afterMs int64) {
	due := f.dateOf(d, afterMs)
	if due == 0 && !f.known.Contains(o) {
		return
	}
	// A step of the same flow may have changed the date: its record is at hand, and
	// is stored when the enrolment has been run.
	r, running := &m.enrolments, m.host.f == f && m.host.o == o
	if !running {
		r = &m.dated
		m.loadRecord(a, f, o, r)
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
	m.enterDate(a, f, o, due)
	if !running {
		m.saveRecord(a, f, o, r)
	}
}

// enterDate enters when a date trigger is due for a profile, if it is.
func (m *Machine) enterDate(a *account, f *flowState, o uint32, dueMs int64) {
	if dueMs != 0 {
		f.dates.Add(dueset.Item{Due: dueMs, Ordinal: o})
		a.flows.soon(dueMs)
	}
}

// dateOf is when the flow's date is due for a profile, after an instant; 0 for
// never.
func (f *flowState) dateOf(d *profile.Document, afterMs int64) int64 {
	if f.def.Trigger.Type != flows.TriggerDate || d.IsAnonymous() {
		return 0
	}
	var value []byte
	switch group, path, _ := strings.Cut(f.def.Trigger.Date.Field, "."); group {
	case "attributes":
		value, _ = jsontext.Lookup(d.Attributes, strings.Split(path, "."))
	case "geo":
		value, _ = jsontext.Lookup(d.Geo, strings.Split(path, "."))
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
