package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/orders"
)

// orderHost is what orders see of their account, see [orders.Host].
type orderHost struct {
	m *Machine
	a *account.State
}

func (h orderHost) Root(ordinal uint32) uint32 { return h.a.Profiles.Root(ordinal) }

func (h orderHost) HashOrder(id string, buf *[]byte) identifier.Hash {
	return orders.HashID(h.a.Profiles.Hasher, id, buf)
}

// readOrder reads a standard event into scratch memory, and reports whether it repeats an
// order, with the profile that has that one.
func (m *Machine) readOrder(a *account.State, kind orders.Kind, ev *eventlog.Event, out *EventOutcome) (first uint32, repeated bool) {
	m.scratch.order, out.Order = orders.Read(kind, ev.Properties, ev.Redacted, m.rules)
	id, named := m.scratch.order.ID, out.Order == orders.Fine
	if !named {
		id, named = orders.PlacedID(ev.Properties, ev.Redacted)
	}
	if ev.Public && kind != orders.CartUpdated {
		out.Order = orders.PublicKey
	}
	if kind != orders.Placed || !named {
		return 0, false
	}
	return a.Orders.Owner(id)
}

// repeatOrder answers an event that repeats an order of a profile. It changes nothing.
func (m *Machine) repeatOrder(a *account.State, p *resolution.Lookup, first uint32, rules identrules.Event, out *EventOutcome) error {
	out.Status, out.Profile, out.Order = EventDuplicate, a.Profiles.Headers.Get(first).ID, orders.Repeated
	before, err := a.Profiles.Repeated(p, first, rules.Identifiers())
	out.NotAdded, out.Dropped, out.Erased = before.NotAdded, before.Dropped, before.Erased
	return err
}

// takeOrder makes the standard event in scratch memory part of the state, and records each
// change of revenue as an event. A change from staleMs or before triggers no flow. redacted says
// that history is rid of the event, and of what it changed of its own profile.
func (m *Machine) takeOrder(a *account.State, ordinal uint32, atMs, staleMs int64, redacted bool, rows *query.Batch, out *EventOutcome) {
	changes, problem := a.Orders.Take(m.tx(a), ordinal, atMs, &m.scratch.order)
	out.Order = problem
	for _, c := range changes {
		ev := eventlog.Event{Type: []byte(c.Event.Type), Properties: c.Event.Properties.Encode()}
		a.Engine.Touch(c.Ordinal)
		a.Engine.Event(c.Ordinal, c.AtMs, ev.Type, ev.Properties)
		a.Engine.Settle(c.Ordinal)
		t := a.Types.Count(ev.Type, c.AtMs)
		if !redacted || c.Ordinal != ordinal {
			a.Types.Look(t, c.Ordinal, c.AtMs, ev.Properties)
			appendRow(rows, a.Number, m.rec.work.Offset, m.rec.row, c.Ordinal, c.AtMs, &ev, nil)
		}
		m.rec.row++
		if a.Flows.Made() && c.AtMs > staleMs {
			a.Flows.Event(c.Ordinal, ev.Type, ev.Properties)
		}
	}
}

// noteTouch notes a click or an open of a message of a campaign or a flow, which orders may be
// attributed to. Others have no source, and neither has a campaign that was deleted.
func (m *Machine) noteTouch(a *account.State, ordinal uint32, kind string, source orders.Source) {
	if a.HasOrders && (source.Campaign != "" || source.Flow != "") {
		a.Orders.Touch(m.tx(a), ordinal, kind, source)
	}
}
