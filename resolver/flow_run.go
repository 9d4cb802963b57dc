package resolver

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/jsontext"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// The events that flows record on profiles.
const (
	typeFlowEntered   = "flow_entered"
	typeFlowCompleted = "flow_completed"
	typeFlowExited    = "flow_exited"
)

// maxFlowEvent bounds what is kept of what started a flow; larger properties are
// not kept.
const maxFlowEvent = 16 << 10

// flowTrigger is an enrolment to be made.
type flowTrigger struct {
	f     *flowState
	o     uint32
	atMs  int64
	depth uint8
	own   bool // the service itself caused it
	call  bool // a call did, which is answered with what becomes of it
	event []byte
}

// trigger has somebody enrolled when the record has reached a state that fits
// together: see react.
func (m *Machine) trigger(f *flowState, o uint32, atMs int64, event []byte) {
	if len(event) > maxFlowEvent {
		event = nil
	}
	m.triggers = append(m.triggers, flowTrigger{f: f, o: o, atMs: atMs, depth: m.depth, own: m.ofOurOwn(), event: event})
}

// flowEvent looks for flows that an event triggers.
func (m *Machine) flowEvent(a *account, o uint32, typ, properties []byte) {
	if m.quiet || a.engine.Anonymous().Contains(o) {
		return // an anonymous profile enrols by segments alone that include it
	}
	now := a.engine.NowMs()
	for _, f := range a.flows.onEvent[string(typ)] {
		if !slices.ContainsFunc(f.def.Trigger.Event.Where, func(p segment.Predicate) bool { return !p.Match(properties, now) }) {
			m.trigger(f, o, now, properties)
		}
	}
	if len(a.flows.onList) > 0 && string(typ) == typeListJoined {
		if raw, ok := jsontext.Lookup(properties, []string{"list_id"}); ok {
			if id, ok := jsontext.Text(raw, nil); ok {
				for _, f := range a.flows.onList[string(id)] {
					m.trigger(f, o, now, properties)
				}
			}
		}
	}
}

// flowTransition looks for flows that an entry or exit triggers. A merge triggers
// none, nor does what is imported.
func (m *Machine) flowTransition(a *account, t *query.Transition) {
	for _, f := range a.flows.onSegment[t.Segment] {
		// Into is the direction that enrols.
		into := t.Entered == (f.def.Trigger.Type == flows.TriggerSegmentEntered)
		silent := m.quiet || t.Cause == segment.CauseMerge || a.gone(t.Ordinal)
		switch {
		case f.Status != FlowLive && !into:
			f.pending.Remove(t.Ordinal)
		case silent:
			// Nobody enrols for it. Who is pending in a live flow is to be enrolled all
			// the same.
		case f.Status == FlowLive:
			// Who was pending enrols for what it was pending for first.
			if f.pending.Remove(t.Ordinal) {
				m.trigger(f, t.Ordinal, f.sinceMs(), nil)
			}
			if into {
				m.trigger(f, t.Ordinal, max(t.AtMs, f.sinceMs()), nil)
			}
		default:
			f.pending.Add(t.Ordinal)
		}
	}
}

// sinceMs is when a live flow began to be live.
func (f *Flow) sinceMs() int64 { return max(f.PublishedMs, f.ResumedMs) }

// react hands over the transitions of the record's account and enrols whoever
// something has triggered a flow for, until nothing new follows.
func (m *Machine) react(c *command) {
	m.emitTransitions(c)
	for i := 0; i < len(m.triggers); i++ {
		t := m.triggers[i]
		if m.mustDefer(c.account, &t) {
			m.deferEnrolment(c.account, &t)
			continue
		}
		m.enrol(c, &t)
		m.emitTransitions(c)
	}
	m.queueDeferred(c.account)
	m.depth = 0
	clear(m.triggers)
	m.triggers = m.triggers[:0]
}

// enrol begins a profile's enrolment in a flow and runs it.
func (m *Machine) enrol(c *command, t *flowTrigger) {
	a, f, o := c.account, t.f, c.account.root(t.o)
	switch {
	case a.gone(o):
		return
	case f.Status != FlowLive:
		f.missed(o)
		return
	case f.entered.Contains(o) && (f.def.Reentry != flows.AfterExit || f.active.Contains(o)):
		return
	case t.depth > maxFlowDepth:
		m.cutLoop(a, f)
		return
	}
	if err := m.load(a, o, &m.doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if t.own {
		if !m.doc.Caused.Add(a.engine.NowMs()) {
			m.cutLoop(a, f)
			return
		}
		m.save(a, o, &m.doc)
	}
	m.loadEnrolments(a, f, o)
	m.host = flowHost{m: m, c: c, f: f, o: o}
	e := m.enrolments.Begin(f.def.Start(t.atMs, t.depth, t.event, &m.host))
	f.entered.Add(o)
	f.active.Add(o)
	a.flows.count(f).Entered++
	m.counters.Enrolments++
	m.enrolBudget--
	m.depth = t.depth + 1
	m.recordEvent(c, o, ownEvent{typeFlowEntered, f.about}, f.aboutEncoded)
	m.runEnrolment(c, f, o, e, t.atMs)
}

// missed notes that a profile's turn finds the flow paused: by the last credit, it
// may be, which an enrolment before it took in the same record. Of a segment it
// counts as having entered (or left) during the pause; other triggers are missed.
func (f *flowState) missed(o uint32) {
	if f.Status == FlowPaused && f.def.Trigger.SegmentID != "" {
		f.pending.Add(o)
	}
}

// runDue carries out what is due in a flow.
func (m *Machine) runDue(c *command, f *flowState, it dueset.Item, date bool) {
	a, o := c.account, it.Ordinal
	if err := m.load(a, o, &m.doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	m.loadEnrolments(a, f, o)
	if date {
		f.dates.Remove(it)
		m.enrolments.DateMs = f.dateOf(&m.doc, it.Due)
		m.enterDate(a, f, o, m.enrolments.DateMs)
		m.saveEnrolments(a, f, o)
		if !f.wasPaused(it.Due) {
			m.trigger(f, o, max(it.Due, f.sinceMs()), nil)
		}
	} else {
		f.timers.Remove(it)
		m.host = flowHost{m: m, c: c, f: f, o: o}
		m.runEnrolment(c, f, o, m.enrolments.Current(), max(it.Due, f.sinceMs()))
	}
	m.react(c)
}

// runEnrolment runs the enrolment in the scratch record, with the profile's
// document in m.doc and the host set.
func (m *Machine) runEnrolment(c *command, f *flowState, o uint32, e *flows.Enrolment, atMs int64) {
	a := c.account
	m.host.e = e
	f.def.Run(e, atMs, &m.flowBudget, &m.host)
	m.depth = e.Depth + 1
	switch {
	case e.Status == flows.InProgress:
		m.enterTimer(a, f, o, e)
	case e.Status == flows.Completed:
		f.active.Remove(o)
		a.flows.count(f).Completed++
		m.recordEvent(c, o, ownEvent{typeFlowCompleted, f.about}, f.aboutEncoded)
	default:
		f.active.Remove(o)
		a.flows.count(f).Exited++
		p := properties{"flow_id": f.ID, "flow_name": f.def.Name, "reason": e.Reason.String()}
		m.recordEvent(c, o, ownEvent{typeFlowExited, p}, p.encode())
	}
	m.saveEnrolments(a, f, o)
	m.host = flowHost{} // the record at hand is nobody's
}

// recordEvent records an event of the service's own on a profile of which nothing else
// changes.
func (m *Machine) recordEvent(c *command, o uint32, x ownEvent, encoded []byte) {
	c.account.engine.Touch(o)
	m.appendEncoded(c, o, x, encoded)
	c.account.engine.Settle(o)
}

// enterTimer notes when an enrolment in progress goes on, if it does by itself.
func (m *Machine) enterTimer(a *account, f *flowState, o uint32, e *flows.Enrolment) {
	if e.Timed() {
		f.timers.Add(dueset.Item{Due: e.DueMs, Ordinal: o})
		a.flows.soon(e.DueMs)
	}
}

// loadEnrolments reads what is stored of a profile in a flow into the scratch record of
// the enrolment that is being run.
func (m *Machine) loadEnrolments(a *account, f *flowState, o uint32) {
	m.loadRecord(a, f, o, &m.enrolments)
}

func (m *Machine) loadRecord(a *account, f *flowState, o uint32, r *flows.Record) {
	r.DateMs, r.Ways = 0, r.Ways[:0]
	if !f.known.Contains(o) {
		return
	}
	b, err := m.store.Entity(enrolmentKey(a.number, f.Number, o))
	if err == nil {
		err = r.Decode(b)
	}
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
}

func (m *Machine) saveEnrolments(a *account, f *flowState, o uint32) {
	m.saveRecord(a, f, o, &m.enrolments)
}

// saveRecord stores what is known of a profile in a flow, and nothing when there
// is nothing.
func (m *Machine) saveRecord(a *account, f *flowState, o uint32, r *flows.Record) {
	if r.DateMs == 0 && len(r.Ways) == 0 {
		m.dropEnrolments(a, f, o)
		return
	}
	f.known.Add(o)
	m.store.PutPayload(enrolmentKey(a.number, f.Number, o), r.Append(nil))
}

func (m *Machine) dropEnrolments(a *account, f *flowState, o uint32) {
	if f.known.CheckedRemove(o) {
		m.store.PutEntity(enrolmentKey(a.number, f.Number, o), nil)
	}
}

// flowHost is the world of one enrolment in a flow. The profile's document is in
// m.doc.
type flowHost struct {
	m *Machine
	c *command
	f *flowState
	o uint32
	e *flows.Enrolment
}

func (h *flowHost) Live() bool { return h.f.Status == FlowLive }

func (h *flowHost) Arrived(step int) {
	s := &h.c.account.flows.count(h.f).Steps[step]
	s.Arrived++
	s.At++
}

func (h *flowHost) Left(step int, r flows.Result) {
	h.c.account.flows.count(h.f).left(step, r)
}

func (h *flowHost) Matches(step int) bool {
	e := h.c.account.engine
	return e.Contains(conditionID(h.f.Flow, step), h.o, e.NowMs())
}

func (h *flowHost) Random(step int) uint64 {
	out, buf := h.c.account.splitBits(h.m.normal, h.f.Number, h.o, h.e.Number, step)
	h.m.normal = buf
	return out
}

// splitBits is what decides a split for a profile, the same for the same enrolment and
// step. buf is scratch.
func (a *account) splitBits(buf []byte, flow, o, enrolment uint32, step int) (bits uint64, scratch []byte) {
	id := a.headers.Get(o).ID
	buf = append(append(buf[:0], "split\x00"...), id[:]...)
	for _, n := range [...]uint32{flow, uint32(step), enrolment} {
		buf = binary.LittleEndian.AppendUint32(buf, n)
	}
	sum := a.hasher.Sum(buf)
	return binary.LittleEndian.Uint64(sum[:]), buf
}

// item is an item of the outbox for a step.
func (h *flowHost) item(kind string, step int) outbox.Item {
	return outbox.Item{Kind: kind, Ordinal: h.o, Flow: h.f.ID, Step: h.f.def.Steps[step].ID}
}

// reachable judges whether the profile may be sent to on a channel, as campaigns
// do.
func (h *flowHost) reachable(medium string, kind IdentityKind) flows.Result {
	return h.c.account.flowReach(&h.m.doc, medium, kind)
}

func (a *account) flowReach(d *profile.Document, medium string, kind IdentityKind) flows.Result {
	switch reason := a.whyUnreachable(d, medium); {
	case !d.Has(kind):
		return flows.NoAddress
	case reason == "":
		return flows.Queued
	case d.Blocked(byte(slices.Index(profile.Channels, medium))) != 0:
		return flows.Blocked
	}
	return flows.NotSubscribed
}

func (h *flowHost) Email(step int, x *flows.Email) flows.Result {
	m, a := h.m, h.c.account
	if r := h.reachable("email", IdentityEmail); r != flows.Queued {
		return r
	}
	if a.EmailCredits < 1 {
		m.pauseForCredits(a)
		return flows.OutOfCredits
	}
	it := h.item(outbox.KindEmail, step)
	it.Ref = x.TemplateID
	payload := must.JSON(OutboxMail{
		To: string(m.doc.Newest(IdentityEmail)), TemplateID: x.TemplateID, Subject: x.Subject,
		Sender: cmp.Or(x.Sender, a.defaultSender()), SenderName: x.SenderName, ReplyTo: x.ReplyTo,
		Advertising: true, Event: json.RawMessage(h.e.Event),
	})
	if _, refusal := a.outbox.Queue(m.tx(a), it, payload); refusal != nil {
		return flows.Later
	}
	if !m.spendCredits(a, 1) {
		panic("e-mail credits were there a moment ago")
	}
	return flows.Queued
}

func (h *flowHost) SMS(step int, x *flows.SMS) flows.Result {
	if r := h.reachable("sms", IdentityPhone); r != flows.Queued {
		return r
	}
	payload := must.JSON(OutboxText{Text: x.Text, Event: json.RawMessage(h.e.Event)})
	if _, refusal := h.c.account.outbox.Queue(h.m.tx(h.c.account), h.item(outbox.KindSMS, step), payload); refusal != nil {
		return flows.Later
	}
	return flows.Queued
}

func (h *flowHost) Webhook(step int, x *flows.Webhook) (flows.Result, uint64) {
	r := OutboxRequest{URL: x.URL, Method: x.Method, TimeoutMs: int64(x.TimeoutSeconds) * 1000, Attempts: x.Attempts, Event: json.RawMessage(h.e.Event)}
	for _, l := range x.Headers {
		r.Headers = append(r.Headers, HeaderLine(l))
	}
	seq, refusal := h.c.account.outbox.Queue(h.m.tx(h.c.account), h.item(outbox.KindCall, step), must.JSON(r))
	if refusal != nil {
		return flows.Later, 0
	}
	return flows.Queued, seq
}

// tagsField is the attribute that holds a profile's tags.
const tagsField = "tags"

func (h *flowHost) Tag(_ int, x *flows.Tag) flows.Result {
	have, _ := jsontext.Lookup(h.m.doc.Attributes, []string{tagsField})
	tags, differs := x.Apply(have)
	if !differs {
		return flows.Done
	}
	return h.updateProfile(must.JSON(map[string]any{"attributes": map[string]any{tagsField: json.RawMessage(tags)}}))
}

func (h *flowHost) Update(_ int, x *flows.Update) flows.Result {
	patch, err := x.Patch(h.lookup())
	if err != nil {
		return flows.Refused
	}
	return h.updateProfile(patch)
}

// lookup answers merge tags of what a flow sets on the profile.
func (h *flowHost) lookup() merge.Lookup {
	d := &h.m.doc
	return func(path []string) (string, bool) {
		text := func(b []byte) (string, bool) { return string(b), len(b) > 0 }
		switch {
		case len(path) > 1 && path[0] == "geo":
			return jsontext.Scalar(d.Geo, path[1:])
		case len(path) > 1 && path[0] == "attributes":
			return jsontext.Scalar(d.Attributes, path[1:])
		case len(path) > 1 && path[0] == "event":
			return jsontext.Scalar(h.e.Event, path[1:])
		case len(path) > 1:
			return "", false
		}
		switch path[0] {
		case "first_name":
			return text(d.FirstName)
		case "last_name":
			return text(d.LastName)
		case "email":
			return text(d.Newest(IdentityEmail))
		case "phone":
			return text(d.Newest(IdentityPhone))
		case "external_id":
			return text(d.Newest(IdentityExternalID))
		case "profile_id":
			return h.c.account.headers.Get(h.o).ID.String(), true
		}
		return "", false
	}
}

// profilePatch is what a step changes of a profile, as an event would say it.
type profilePatch struct {
	FirstName  nameChange      `json:"first_name"`
	LastName   nameChange      `json:"last_name"`
	Geo        json.RawMessage `json:"geo"`
	Attributes json.RawMessage `json:"attributes"`
}

// nameChange is a name to be set; null removes it.
type nameChange struct {
	set   bool
	value string
}

// UnmarshalJSON reads a text or null.
func (n *nameChange) UnmarshalJSON(b []byte) error {
	n.set = true
	return json.Unmarshal(b, &n.value)
}

// updateProfile changes the profile as a patch says. What would grow too large is not
// changed at all.
func (h *flowHost) updateProfile(patch []byte) flows.Result {
	m, d := h.m, &h.m.doc
	var p profilePatch
	if err := json.Unmarshal(patch, &p); err != nil {
		return flows.Refused
	}
	m.merger.Reset()
	fields := engine.Fields(0)
	next := *d
	for _, x := range [...]struct {
		dst   *[]byte
		src   nameChange
		field engine.Fields
	}{{&next.FirstName, p.FirstName, engine.FieldFirstName}, {&next.LastName, p.LastName, engine.FieldLastName}} {
		if x.src.set && string(*x.dst) != x.src.value {
			if len(x.src.value) > maxIdentifierBytes {
				return flows.Refused
			}
			*x.dst = []byte(x.src.value)
			fields |= x.field
		}
	}
	for _, x := range [...]struct {
		dst   *[]byte
		src   []byte
		field engine.Fields
	}{{&next.Geo, p.Geo, engine.FieldGeo}, {&next.Attributes, p.Attributes, engine.FieldAttributes}} {
		merged, differs, err := m.merger.Merge(*x.dst, x.src, profile.Overwrite)
		if err != nil || profile.TooLarge(merged) {
			return flows.Refused
		}
		if differs {
			*x.dst = bytes.Clone(merged)
			fields |= x.field
		}
	}
	if fields == 0 {
		return flows.Done
	}
	d.FirstName, d.LastName, d.Geo, d.Attributes = next.FirstName, next.LastName, next.Geo, next.Attributes
	d.SaidOtherwise(p.FirstName.set, p.LastName.set, p.Geo, p.Attributes, m.logTime)
	m.updateProfile(h.c, h.o, d, fields)
	return flows.Done
}
