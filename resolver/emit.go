package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/segment/engine"
)

// trackProfile tells the segment engine of a profile that was resolved, but for
// the event and the settling.
func (m *Machine) trackProfile(a *account, r *resolution.Result) {
	e := a.engine
	e.Touch(r.Ordinal)
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
	fields = a.trackIdentity(r.Ordinal, &m.resolution.Doc, fields)
	if e.Looks(fields) {
		m.resolution.Doc.FillFacts(&m.scratch.facts, a.contacts.ListIDs(), r.LastEvent)
		e.Profile(r.Ordinal, &m.scratch.facts, fields)
	}
	a.flows.DatesOf(r.Ordinal, &m.resolution.Doc, fields)
	if wasAnonymous && !m.resolution.Doc.IsAnonymous() {
		e.Settle(r.Ordinal) // who enters by being identified enters by that, whatever the event changes
	}
	a.types.LookAtProfile(r.Ordinal, m.logTime, &m.resolution.Doc, r.Fields)
}

// trackIdentity tells the segment engine whether a profile is anonymous, and returns the
// fields that it must be told of. One that ceases to be enters where it was kept out, and is
// looked at as a new one is.
func (a *account) trackIdentity(o uint32, d *profile.Document, changed engine.Fields) engine.Fields {
	if is := d.IsAnonymous(); is != a.engine.Anonymous().Contains(o) {
		a.engine.SetAnonymous(o, is)
		return engine.AllFields
	}
	return changed
}

// trackMerge tells the segment engine that profiles became one and has it
// settled, before anything is told of what brought them together: who enters by
// the merge starts no flow, who enters by what came with it does.
func (m *Machine) trackMerge(a *account, r *resolution.Result) {
	e, winner := a.engine, r.Ordinal
	// All of them first: bringing one up to the time settles, and must not settle
	// what a merge has begun.
	for i := range r.Merged {
		e.Touch(r.Merged[i].Ordinal)
	}
	for i := range r.Merged {
		e.Merge(winner, r.Merged[i].Ordinal)
	}
	e.SetAnonymous(winner, m.resolution.MergedFacts().Fields.Anonymous)
	if e.Looks(engine.AllFields) {
		e.Profile(winner, m.resolution.MergedFacts(), engine.AllFields)
	}
	e.Settle(winner)
}

// appendEvent records an event of the service's own on a profile. The engine has been
// told of the profile's changes, and is told to settle afterwards.
func (m *Machine) appendEvent(c *command, o uint32, x feature.Event) {
	m.appendEncoded(c, o, x, x.Properties.Encode())
}

// appendEncoded is appendEvent for properties that are encoded already.
func (m *Machine) appendEncoded(c *command, o uint32, x feature.Event, encoded []byte) {
	a := c.account
	ev := eventlog.Event{Type: []byte(x.Type), Properties: encoded}
	at := a.engine.NowMs() // not after the log time: what is due happens at its instant
	a.engine.Event(o, at, ev.Type, ev.Properties)
	a.types.Look(a.types.Count(ev.Type, at), o, at, ev.Properties)
	appendRow(c.rows, a.number, c.out.Offset, m.rec.row, o, at, &ev, nil)
	m.rec.row++
	m.notifyWebhooks(a, o, &x)
	a.flows.Event(o, ev.Type, ev.Properties)
}

// updateProfile stores what a command made of a profile's document, tells the segment
// engine which fields have changed, and records events.
func (m *Machine) updateProfile(c *command, o uint32, d *profile.Document, fields engine.Fields, events ...feature.Event) {
	a := c.account
	a.profiles.Save(o, d)
	a.engine.Touch(o)
	tell := a.trackIdentity(o, d, fields)
	if a.engine.Looks(tell) {
		d.FillFacts(&m.scratch.facts, a.contacts.ListIDs(), a.profiles.Headers.Get(o).LastEvent)
		a.engine.Profile(o, &m.scratch.facts, tell)
	}
	a.flows.DatesOf(o, d, tell)
	a.types.LookAtProfile(o, m.logTime, d, fields)
	for _, x := range events {
		m.appendEvent(c, o, x)
	}
	a.engine.Settle(o)
}

// profileOf finds the profile an id stands for, through merges, and decodes its
// document.
func (m *Machine) profileOf(a *account, id string) (o uint32, d *profile.Document, refusal *Refusal) {
	o, ok := a.resolveText(id)
	if !ok {
		if o, ok := a.ordinalOf(id); ok && a.profiles.Gone(o) {
			a.erasure.NoteRefused()
		}
		return 0, nil, resolution.NoProfile()
	}
	if err := a.profiles.Load(o, &m.resolution.Doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return o, &m.resolution.Doc, nil
}

// resolveText finds the profile an id stands for, through merges; not ok is one that
// never was or was erased.
func (a *account) resolveText(id string) (o uint32, ok bool) {
	p, ok := ParseProfileID(id)
	if !ok {
		return 0, false
	}
	return a.profiles.Find(p)
}
