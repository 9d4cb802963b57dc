package resolver

import (
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/segment/engine"
)

// applyEvent resolves one event to a profile and records it. It first works
// everything out in scratch memory and then commits: a refused event changes
// nothing.
func (m *Machine) applyEvent(a *account.State, p *resolution.Lookup, rules identrules.Event, index uint32, rows *query.Batch, out *EventOutcome) error {
	ev := &p.Event
	refuse := func(r *Refusal) error {
		out.Status, out.Refusal = EventRefused, r
		return nil
	}
	if ev.Refused {
		return refuse(erasure.Refuse(min(IdentityKind(ev.RefusedKind), identifier.Kinds-1)))
	}
	at := m.logTime
	if ev.HasTime {
		if at = ev.TimeMs; at > m.logTime {
			return refuse(invalid("timestamp", "timestamp must not be in the future"))
		}
		if rules.JudgedByAge() && at < m.logTime-a.Settings.MaxEventAgeMs() {
			return refuse(invalid("timestamp", "timestamp is more than %d hours ago, the most that max_event_age_hours of the settings allows; bring in older events by an import, and check the unit (Unix milliseconds)", a.Settings.Shown().MaxEventAgeHours))
		}
	}

	if len(ev.IdempotencyKey) > 0 {
		v, ok, err := m.idempotencyKeys.Get(p.Key)
		if err != nil {
			return err
		}
		if ok && v.AtMs > a.KeysFromMs(m.logTime) {
			out.Status, out.Profile = EventDuplicate, a.Profiles.Headers.Get(v.Ordinal).ID
			before, err := a.Profiles.Repeated(p, v.Ordinal, rules.Identifiers())
			out.NotAdded, out.Dropped, out.Erased, out.Foreign = before.NotAdded, before.Dropped, before.Erased, before.Foreign
			return err
		}
	}
	var reader feature.Reader
	if rules.Read() {
		if reader = a.Reader(ev.Type); reader != nil {
			of, repeats := reader.Read(m.tx.on(a), ev)
			out.NotTaken = reader.Warning()
			if repeats {
				return m.repeatEvent(a, p, of, rules, out)
			}
		}
	}
	if r := a.Types.Refuse(ev, rules); r != nil {
		return refuse(r)
	}
	r, refusal, err := a.Profiles.Resolve(p, at, rules.Identifiers())
	if err != nil {
		return err
	}
	if refusal != nil {
		return refuse(refusal)
	}
	if at > r.LastEvent {
		r.LastEvent = at
		r.Fields |= engine.FieldLastEvent
	}
	a.Profiles.Commit(m.tx.on(a), index, p, &r, rows)
	winner := r.Ordinal
	m.trackProfile(a, &r)
	if rules.Sent() {
		a.Engine.Sent(winner, at, ev.Type, ev.Properties)
	} else {
		a.Engine.Event(winner, at, ev.Type, ev.Properties)
	}
	a.Engine.Evaluate(winner)
	h := a.Profiles.Headers.Edit(winner)
	h.LastEvent = r.LastEvent
	out.Status, out.Profile, out.NotAdded, out.Dropped, out.Erased = EventAccepted, h.ID, r.NotAdded, r.Dropped, r.Erased
	if err := a.Profiles.Store(&r); err != nil {
		return err
	}
	if len(ev.IdempotencyKey) > 0 {
		m.idempotencyKeys.Put(p.Key, dedup.Answer{AtMs: m.logTime, Ordinal: winner})
	}
	typ := a.Types.CountSent(ev, at, rules)
	typ.Notify(m.tx.on(a), winner, at)
	if !ev.Redacted { // history and catalog are rid of those
		a.Types.Look(typ, winner, at, ev.Properties)
		key := ev.IdempotencyKey
		if rules.Sent() {
			m.tx.sentKey = query.AppendSentKey(m.tx.sentKey[:0], ev.Type, key)
			key = m.tx.sentKey
		}
		appendRow(rows, a.Number, m.tx.feature.Offset, index, winner, at, ev, key)
	}
	staleMs := int64(math.MinInt64) // what happened then or before triggers no flow
	if rules.JudgedByAge() {
		staleMs = m.logTime - a.Settings.FlowEventAgeMs()
	}
	if reader != nil {
		follow := reader.Take(m.tx.on(a), winner, at)
		out.NotTaken = reader.Warning()
		m.recordMore(a, follow, staleMs, winner, ev.Redacted, rows)
	}
	if a.Flows.Made() {
		// Each event has its effect before the next.
		if at > staleMs {
			a.Flows.Event(winner, ev.Type, ev.Properties)
		}
		m.react()
	}
	return nil
}

// repeatEvent answers an event that says what a feature has of a profile already. It changes
// nothing.
func (m *Machine) repeatEvent(a *account.State, p *resolution.Lookup, of uint32, rules identrules.Event, out *EventOutcome) error {
	out.Status, out.Profile = EventDuplicate, a.Profiles.Headers.Get(of).ID
	before, err := a.Profiles.Repeated(p, of, rules.Identifiers())
	out.NotAdded, out.Dropped, out.Erased = before.NotAdded, before.Dropped, before.Erased
	return err
}

// recordMore records the events that follow from one of a profile. Those from staleMs or
// before trigger no flow. redacted says that history is rid of that one, and of what follows
// from it on its own profile.
func (m *Machine) recordMore(a *account.State, list []feature.Recorded, staleMs int64, ordinal uint32, redacted bool, rows *query.Batch) {
	for _, x := range list {
		ev := eventlog.Event{Type: []byte(x.Event.Type), Properties: x.Event.Properties.Encode()}
		a.Engine.Touch(x.Ordinal)
		a.Engine.Event(x.Ordinal, x.AtMs, ev.Type, ev.Properties)
		a.Engine.Evaluate(x.Ordinal)
		t := a.Types.Count(ev.Type, x.AtMs)
		if !redacted || x.Ordinal != ordinal {
			a.Types.Look(t, x.Ordinal, x.AtMs, ev.Properties)
			appendRow(rows, a.Number, m.tx.feature.Offset, m.tx.row, x.Ordinal, x.AtMs, &ev, nil)
		}
		m.tx.row++
		if a.Flows.Made() && x.AtMs > staleMs {
			a.Flows.Event(x.Ordinal, ev.Type, ev.Properties)
		}
	}
}

// readWindow reads the next events and looks their identifiers up; what applying them needs
// is near the processor afterwards.
func (m *Machine) readWindow(a *account.State, r *eventlog.EventsReader) []resolution.Lookup {
	window := a.Profiles.ReadWindow(r)
	document := a.Engine.Looks(engine.FieldLastEvent) // then trackProfile reads it with each event
	near := m.tx.near[:len(window)]
	for i := range window {
		p := &window[i]
		if len(p.Event.IdempotencyKey) > 0 {
			m.idempotencyKeys.PrefetchPages(p.Key)
		}
		near[i] = a.Engine.Prefetch(a.Profiles.Prefetch(p), p.Event.Type)
	}
	for i := range window {
		if len(window[i].Event.IdempotencyKey) > 0 {
			m.idempotencyKeys.Prefetch(window[i].Key)
		}
		if o := near[i].Profile; o != profile.NoOrdinal {
			a.Profiles.PrefetchDocument(&window[i], o, document)
			near[i].Rows()
		}
	}
	return window
}

func (m *Machine) applyEvents(env eventlog.Envelope, body []byte, rows *query.Batch, out *Outcome) error {
	a := m.accounts[env.Account]
	if a == nil {
		out.Refusal = notFound("", "no account has the number %016x", env.Account)
		return nil
	}
	return m.applyList(a, env, body, rows, out, nil)
}

// applyList applies the events of a body. Those in stored, by their place in the list,
// are on record already.
func (m *Machine) applyList(a *account.State, env eventlog.Envelope, body []byte, rows *query.Batch, out *Outcome, stored *roaring.Bitmap) error {
	r, err := eventlog.NewEventsReader(body)
	if errors.Is(err, eventlog.ErrNewerRules) {
		return fmt.Errorf("%w: %w", ErrNewer, err)
	}
	if err != nil {
		return err
	}
	rules := identrules.Event{Version: r.Rules(), Live: env.Kind == eventlog.KindEvents}
	if rules.Version >= rulesCatalog {
		m.beginCatalog(a)
	}
	if rules.Read() {
		m.beginOrders(a)
	}
	for i := uint32(0); ; {
		window := m.readWindow(a, &r)
		for w := range window {
			out.Events = append(out.Events, EventOutcome{})
			o := &out.Events[i]
			if stored != nil && stored.Contains(i) {
				o.Status = EventDuplicate
				m.counters.Duplicates++
				i++
				continue
			}
			if err := m.applyEvent(a, &window[w], rules, i, rows, o); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
			switch o.Status {
			case EventAccepted:
				m.counters.Events++
			case EventDuplicate:
				m.counters.Duplicates++
			case EventRefused:
				m.counters.Refused++
			}
			i++
		}
		if len(window) < resolution.WindowEvents {
			return r.Err()
		}
	}
}
