package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// The bounds on what one record makes the segment engine do. They are part of
// the rules, like those in machine.go.
const (
	dueBudget      = 4096 // answers that change by time
	continueBudget = 4096 // the same, pending transitions, leaves to be judged
	maxLeaves      = 20_000
)

// updateSegments tells the segment engine that the profile in d has changed.
func (m *Machine) updateSegments(a *account.State, ordinal uint32, d *profile.Document) {
	a.Engine.Touch(ordinal)
	trackIdentity(a, ordinal, d, engine.AllFields)
	d.FillFacts(&m.tx.facts, a.Contacts.ListIDs(), a.Profiles.Headers.Get(ordinal).LastEvent)
	a.Engine.Profile(ordinal, &m.tx.facts, engine.AllFields)
	a.Flows.DatesOf(ordinal, d, engine.AllFields)
	a.Engine.Evaluate(ordinal)
}

// emitTransitions hands over the transitions of the record's account, and looks for flows
// that they trigger.
func (m *Machine) emitTransitions(tx *transaction) {
	a, rows := tx.account, tx.rows
	for _, t := range a.Engine.Transitions() {
		if automation.IsCondition(t.Segment) {
			continue
		}
		tx.transition++
		rows.Transitions = append(rows.Transitions, query.Transition{
			Account: a.Number, Key: query.TransitionKey{Offset: tx.out.Offset, Seq: tx.transition},
			Segment: t.Segment, Ordinal: t.Ordinal, Entered: t.Entered, Cause: t.Cause, AtMs: t.AtMs,
		})
		m.counters.Transitions++
		m.notifyTransition(a, &rows.Transitions[len(rows.Transitions)-1])
		a.Flows.Transition(&rows.Transitions[len(rows.Transitions)-1])
	}
}

// react hands over the transitions of the record's account, and enrols the profiles
// whose triggers fired in flows.
func (m *Machine) react() { m.tx.account.Flows.React() }

// advance lets time pass for the record's account: what falls due in segments
// and in flows, in one order, up to the budget of changes.
func (m *Machine) advance(budget int) {
	a := m.tx.account
	budget = a.Flows.Advance(budget)
	a.Engine.Advance(m.logTime, budget)
	m.react()
}

// updateBacklog notes whether an account's engine or flows have work left for continue
// records.
func (m *Machine) updateBacklog(a *account.State) {
	if a.Engine.Working() || a.Flows.Busy(m.logTime) {
		m.busy[a.Number] = a
	} else if len(m.busy) > 0 {
		delete(m.busy, a.Number)
	}
}

// applyTick lets time pass for all accounts, in the order in which they were
// made. Whether something is due is not asked first: how an engine enters what
// is due is its own affair and no part of the state.
func (m *Machine) applyTick() {
	for _, a := range m.byIndex {
		m.tx.account = a
		m.advance(dueBudget)
		a.Features.Advance(m.tx.on(a))
		a.Flows.FinishPublishing()
		m.updateBacklog(a)
	}
}

// applyEngines lets the engines and flows continue with what they have begun. Each
// entry that is emitted may enrol in all flows of its segment.
func (m *Machine) applyEngines() {
	deferring := 0
	for _, a := range m.byIndex {
		if a.Flows.Deferred() > 0 {
			deferring++
		}
	}
	share := m.flows.Share(deferring)
	for _, a := range m.byIndex {
		m.tx.account = a
		a.Flows.Drain(share)
		if a.Flows.Running() {
			m.advance(dueBudget)
		} else {
			a.Engine.Advance(m.logTime, 0)
		}
		a.Engine.Continue(max(continueBudget/a.Flows.Widest(), 1))
		m.react()
		a.Flows.CatchUp()
		a.Flows.FinishPublishing()
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
		if o >= a.Profiles.Headers.Count {
			return o // no profile has it: the engine passes over it
		}
		return a.Profiles.Root(o)
	}
	if err := a.Engine.Load(body, root); err != nil {
		out.Refusal = invalid("", "%s", err)
		return
	}
	m.counters.Chunks++
}

// define makes a segment's definition known to the engine.
func (m *Machine) define(a *account.State, s *Segment, offset int64) {
	m.defineRoot(a, s.ID, s.Root, offset)
}

func (m *Machine) defineRoot(a *account.State, id string, root *segment.Node, offset int64) {
	a.Engine.Define(id, root, offset, func(eventType string) bool {
		return a.Types.Seen(eventType, eventType == segment.AnyEvent)
	})
}

// NextDue is the earliest instant at which a tick has something to do.
func (m *Machine) NextDue() (ms int64, ok bool) {
	for _, a := range m.byIndex {
		if due, has := a.Engine.NextDue(); has && (!ok || due < ms) {
			ms, ok = due, true
		}
		if due, has := a.Flows.NextDueMs(); has && (!ok || due < ms) {
			ms, ok = due, true
		}
		if due, has := a.Features.NextDue(); has && (!ok || due < ms) {
			ms, ok = due, true
		}
	}
	return ms, ok
}

// Lagging reports whether some engine has due changes left.
func (m *Machine) Lagging() bool {
	for _, a := range m.busy {
		if a.Engine.Lagging() {
			return true
		}
	}
	return false
}
