package resolver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// The bounds on what one record makes the segment engine do. They are part of
// the rules, like those in machine.go.
const (
	dueBudget      = 4096 // answers that change by time
	continueBudget = 4096 // the same, transitions owed, leaves to be judged
	maxLeaves      = 20_000
)

// updateSegments tells the segment engine that the profile in d has changed.
func (m *Machine) updateSegments(a *account, ordinal uint32, d *profile.Document) {
	a.engine.Touch(ordinal)
	a.trackIdentity(ordinal, d, engine.AllFields)
	d.FillFacts(&m.scratch.facts, a.contacts.ListIDs(), a.profiles.Headers.Get(ordinal).LastEvent)
	a.engine.Profile(ordinal, &m.scratch.facts, engine.AllFields)
	a.flows.DatesOf(ordinal, d, engine.AllFields)
	a.engine.Settle(ordinal)
}

// emitTransitions hands over the transitions of the record's account, and looks for flows
// that they trigger.
func (m *Machine) emitTransitions(c *command) {
	a, rows := c.account, c.rows
	for _, t := range a.engine.Transitions() {
		if automation.IsCondition(t.Segment) {
			continue
		}
		m.rec.transition++
		rows.Transitions = append(rows.Transitions, query.Transition{
			Account: a.number, Key: query.TransitionKey{Offset: c.out.Offset, Seq: m.rec.transition},
			Segment: t.Segment, Ordinal: t.Ordinal, Entered: t.Entered, Cause: t.Cause, AtMs: t.AtMs,
		})
		m.counters.Transitions++
		m.notifyTransition(a, &rows.Transitions[len(rows.Transitions)-1])
		a.flows.Transition(&rows.Transitions[len(rows.Transitions)-1])
	}
}

// react hands over the transitions of the record's account, and enrols in flows whoever
// something has triggered one for.
func (m *Machine) react() { m.rec.account.flows.React() }

// advance lets time pass for the record's account: what falls due in segments
// and in flows, in one order, up to the budget of changes.
func (m *Machine) advance(budget int) {
	a := m.rec.account
	budget = a.flows.Advance(budget)
	a.engine.Advance(m.logTime, budget)
	m.react()
}

// updateBacklog notes whether an account's engine or flows have work left for continue
// records.
func (m *Machine) updateBacklog(a *account) {
	if a.engine.Working() || a.flows.Busy(m.logTime) {
		m.busy[a.number] = a
	} else if len(m.busy) > 0 {
		delete(m.busy, a.number)
	}
}

// applyTick lets time pass for all accounts, in the order in which they were
// made. Whether something is due is not asked first: how an engine enters what
// is due is its own affair and no part of the state.
func (m *Machine) applyTick() {
	for _, a := range m.byIndex {
		m.rec.account = a
		m.advance(dueBudget)
		a.outbox.EndDay(m.tx(a))
		a.campaigns.Advance(m.tx(a))
		a.flows.FinishPublishing()
		m.updateBacklog(a)
	}
}

// applyEngines lets the engines and flows go on with what they have begun. Each
// entry that is told may enrol in all flows of its segment.
func (m *Machine) applyEngines() {
	deferring := 0
	for _, a := range m.byIndex {
		if a.flows.Deferred() > 0 {
			deferring++
		}
	}
	share := m.flows.Share(deferring)
	for _, a := range m.byIndex {
		m.rec.account = a
		a.flows.Drain(share)
		if a.flows.Running() {
			m.advance(dueBudget)
		} else {
			a.engine.Advance(m.logTime, 0)
		}
		a.engine.Continue(max(continueBudget/a.flows.Widest(), 1))
		m.react()
		a.flows.CatchUp()
		a.flows.FinishPublishing()
		m.updateBacklog(a)
	}
}

// applyChunk takes in a piece of the past of a segment's conditions.
func (m *Machine) applyChunk(env eventlog.Envelope, body []byte, out *Outcome) {
	a := m.accounts[env.Account]
	if a == nil {
		out.Refusal = notFound("", "no account has the number %016x", env.Account)
		return
	}
	root := func(o uint32) uint32 {
		if o >= a.profiles.Headers.Count {
			return o // no profile has it: the engine passes over it
		}
		return a.profiles.Root(o)
	}
	if err := a.engine.Load(body, root); err != nil {
		out.Refusal = invalid("", "%s", err)
		return
	}
	m.counters.Chunks++
}

// define makes a segment's definition known to the engine.
func (m *Machine) define(a *account, s *Segment, offset int64) { m.defineRoot(a, s.ID, s.Root, offset) }

func (m *Machine) defineRoot(a *account, id string, root *segment.Node, offset int64) {
	a.engine.Define(id, root, offset, func(eventType string) bool {
		return a.types.Seen(eventType, eventType == segment.AnyEvent)
	})
}

// defineAll makes the definitions of a state known whose rules had no engine.
func (m *Machine) defineAll() {
	for _, a := range m.byIndex {
		a.engine.Advance(m.logTime, dueBudget)
		for done := false; !done; {
			done = true
			for _, s := range a.segmentsByAge() {
				if a.engine.Has(s.ID) {
					continue
				}
				done = false
				if !slices.ContainsFunc(s.Root.SegmentIDs(), func(id string) bool { return !a.engine.Has(id) }) {
					m.define(a, s, m.next)
				}
			}
		}
		m.updateBacklog(a)
	}
}

// NextDue is the earliest instant at which a tick has something to do.
func (m *Machine) NextDue() (ms int64, ok bool) {
	for _, a := range m.byIndex {
		if due, has := a.engine.NextDue(); has && (!ok || due < ms) {
			ms, ok = due, true
		}
		if due, has := a.flows.NextDueMs(); has && (!ok || due < ms) {
			ms, ok = due, true
		}
		if due, has := a.campaigns.NextDue(); has && (!ok || due < ms) {
			ms, ok = due, true
		}
		if ends, has := a.outbox.DayEndsMs(); has && (!ok || ends < ms) {
			ms, ok = ends, true
		}
	}
	return ms, ok
}

// Lagging reports whether some engine has due changes left.
func (m *Machine) Lagging() bool {
	for _, a := range m.busy {
		if a.engine.Lagging() {
			return true
		}
	}
	return false
}

func (a *account) segmentsByAge() []*Segment {
	list := slices.Collect(maps.Values(a.segments))
	slices.SortFunc(list, func(x, y *Segment) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), cmp.Compare(x.ID, y.ID))
	})
	return list
}

func segmentName(s *Segment) string { return `"` + s.Name + `" (` + s.ID + ")" }
