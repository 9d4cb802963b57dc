package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/segment/engine"
)

// trackProfile tells the segment engine of a profile that was resolved. The event itself, and
// the evaluation of the segments that it changes, are applyEvent's.
func (m *Machine) trackProfile(a *account.State, r *resolution.Result) {
	e := a.Engine
	e.Touch(r.Ordinal)
	if r.Unread && !e.Looks(r.Fields) {
		return // at most the time of its last event is new, which nothing else looks at
	}
	if err := a.Profiles.Read(r); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	fields := r.Fields
	if r.Created {
		e.Create(r.Ordinal)
	}
	if r.Created || len(r.Merged) > 0 {
		fields = engine.AllFields
	}
	if len(r.Merged) > 0 {
		m.trackMerge(a, r)
	}
	wasAnonymous := e.Anonymous().Contains(r.Ordinal)
	fields = trackIdentity(a, r.Ordinal, &m.tx.profiles.Doc, fields)
	if e.Looks(fields) {
		m.tx.profiles.Doc.FillFacts(&m.tx.facts, a.Contacts.ListIDs(), r.LastEvent)
		e.Profile(r.Ordinal, &m.tx.facts, fields)
	}
	a.Flows.DatesOf(r.Ordinal, &m.tx.profiles.Doc, fields)
	if wasAnonymous && !m.tx.profiles.Doc.IsAnonymous() {
		e.Evaluate(r.Ordinal) // a segment entered by being identified is entered by that, whatever the event changes
	}
	a.Types.LookAtProfile(r.Ordinal, m.logTime, &m.tx.profiles.Doc, r.Fields)
}

// trackIdentity tells the segment engine whether a profile is anonymous, and returns the
// changed fields to pass on. A profile that ceases to be anonymous enters the segments that
// kept it out, and is evaluated as a new one.
func trackIdentity(a *account.State, o uint32, d *profile.Document, changed engine.Fields) engine.Fields {
	if is := d.IsAnonymous(); is != a.Engine.Anonymous().Contains(o) {
		a.Engine.SetAnonymous(o, is)
		return engine.AllFields
	}
	return changed
}

// trackMerge passes a merge to the segment engine and evaluates the winner's segments
// before the event that caused the merge: entering a segment by the merge starts no
// flow, entering by the event does.
func (m *Machine) trackMerge(a *account.State, r *resolution.Result) {
	e, winner := a.Engine, r.Ordinal
	// All of them first: Touch evaluates segments, and must not evaluate those that an
	// unfinished merge has marked.
	for i := range r.Merged {
		e.Touch(r.Merged[i].Ordinal)
	}
	for i := range r.Merged {
		e.Merge(winner, r.Merged[i].Ordinal)
	}
	e.SetAnonymous(winner, m.tx.profiles.MergedFacts().Fields.Anonymous)
	if e.Looks(engine.AllFields) {
		e.Profile(winner, m.tx.profiles.MergedFacts(), engine.AllFields)
	}
	e.Evaluate(winner)
}

// appendEvent records an event of the service's own on a profile. The engine has the
// profile's changes by then, and evaluates its segments afterwards.
func (m *Machine) appendEvent(tx *transaction, o uint32, x feature.Event) {
	m.appendEncoded(tx, o, x, x.Properties.Encode())
}

// appendEncoded is appendEvent for properties that are encoded already.
func (m *Machine) appendEncoded(tx *transaction, o uint32, x feature.Event, encoded []byte) {
	a := tx.account
	ev := eventlog.Event{Type: []byte(x.Type), Properties: encoded}
	at := a.Engine.NowMs() // not after the log time: what is due happens at its instant
	a.Engine.Event(o, at, ev.Type, ev.Properties)
	a.Types.Look(a.Types.Count(ev.Type, at), o, at, ev.Properties)
	appendRow(tx.rows, a.Number, tx.out.Offset, tx.row, o, at, &ev, nil)
	tx.row++
	m.notifyWebhooks(a, o, &x)
	a.Flows.Event(o, ev.Type, ev.Properties)
}

// updateProfile stores what a command made of a profile's document, tells the segment
// engine which fields have changed, and records events.
func (m *Machine) updateProfile(tx *transaction, o uint32, d *profile.Document, fields engine.Fields, events ...feature.Event) {
	a := tx.account
	a.Profiles.Save(o, d)
	a.Engine.Touch(o)
	changed := trackIdentity(a, o, d, fields)
	if a.Engine.Looks(changed) {
		d.FillFacts(&tx.facts, a.Contacts.ListIDs(), a.Profiles.Headers.Get(o).LastEvent)
		a.Engine.Profile(o, &tx.facts, changed)
	}
	a.Flows.DatesOf(o, d, changed)
	a.Types.LookAtProfile(o, m.logTime, d, fields)
	for _, x := range events {
		m.appendEvent(tx, o, x)
	}
	a.Engine.Evaluate(o)
}

// makeProfile makes a profile with identifiers that no profile has.
func (m *Machine) makeProfile(a *account.State, of eventlog.Event) (uint32, *Refusal) {
	p := a.Profiles.LookUp(of)
	r, refusal, err := a.Profiles.Resolve(p, m.logTime, identrules.Identifiers{})
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if refusal != nil {
		return 0, refusal
	}
	a.Profiles.Commit(m.tx.on(a), 0, p, &r, m.tx.rows)
	m.trackProfile(a, &r)
	a.Engine.Evaluate(r.Ordinal)
	if err := a.Profiles.Store(&r); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return r.Ordinal, nil
}

// profileOf finds the profile an id stands for, through merges, and decodes its
// document.
func (m *Machine) profileOf(a *account.State, id string) (o uint32, d *profile.Document, refusal *Refusal) {
	o, ok := a.ResolveText(id)
	if !ok {
		if o, ok := a.OrdinalOf(id); ok && a.Profiles.Erased(o) {
			a.Erasure.NoteRefused()
		}
		return 0, nil, resolution.NoProfile()
	}
	if err := a.Profiles.Load(o, &m.tx.profiles.Doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return o, &m.tx.profiles.Doc, nil
}

func appendRow(rows *query.Batch, account uint64, offset int64, index, ordinal uint32, atMs int64, ev *eventlog.Event, key []byte) {
	rows.Account = append(rows.Account, account)
	rows.Offset = append(rows.Offset, offset)
	rows.Index = append(rows.Index, index)
	rows.Ordinal = append(rows.Ordinal, ordinal)
	rows.TimeMs = append(rows.TimeMs, atMs)
	rows.EventType.Append(ev.Type)
	rows.Properties.Append(ev.Properties)
	rows.IdempotencyKey.Append(key)
}
