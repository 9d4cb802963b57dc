package resolver

import (
	"encoding/json"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
)

// The commands of flows.
const (
	CommandFlowCreate    = "flow.create"
	CommandFlowUpdate    = "flow.update"
	CommandFlowDelete    = "flow.delete"
	CommandFlowDuplicate = "flow.duplicate"
	CommandFlowPublish   = "flow.publish"
	CommandFlowPause     = "flow.pause"
	CommandFlowResume    = "flow.resume"
	CommandFlowToggle    = "flow.toggle"
	CommandFlowTrigger   = "flow.trigger"
)

// FlowSave creates a draft, or changes the one with the ID.
type FlowSave struct {
	ID         string          `json:"id,omitempty"`
	Definition json.RawMessage `json:"definition"`
	// IfVersion is the version that is replaced, see [Flow.Version]; "" for any.
	IfVersion string `json:"if_version,omitempty"`
}

// FlowID names a flow.
type FlowID struct {
	ID string `json:"id"`
}

// FlowTrigger enrols a contact in a flow whose trigger is the API.
type FlowTrigger struct {
	ID         string `json:"id"`
	Email      string `json:"email,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	Phone      string `json:"phone,omitempty"`
	// Data is an object, behind the merge tags event.….
	Data json.RawMessage `json:"data,omitempty"`
	// Key makes a repeat harmless: it enrols nobody again.
	Key string `json:"key,omitempty"`
}

// FlowTriggered is the answer to a [FlowTrigger].
type FlowTriggered struct {
	Profile string `json:"profile_id"`
	// Enrolled is false for a repeat of a key, which has enrolled before.
	Enrolled bool `json:"enrolled"`
}

// FlowReply says what became of a flow.
type FlowReply struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Publishing bool   `json:"publishing,omitempty"`
}

func (c *command) replyFlow(f *flowState) {
	c.reply(FlowReply{f.ID, f.Status, f.Publishing})
}

func (m *Machine) createFlow(cmd *command, c FlowSave) *Refusal {
	return m.addFlow(cmd, c.Definition, "")
}

// addFlow makes a draft.
func (m *Machine) addFlow(cmd *command, definition []byte, copyOf string) *Refusal {
	a := cmd.account
	switch n := len(a.flows.all); {
	case n >= maxFlows:
		return atLimit("", "this account has %d flows, the most it can have; delete one first", maxFlows)
	case len(a.flows.byNumber) >= maxFlowNumber:
		return atLimit("", "this account has made %d flows, the most it can make", maxFlowNumber)
	}
	def, refusal := parseFlow(definition)
	if refusal != nil {
		return refusal
	}
	f, err := a.installFlow(&Flow{
		ID: feature.NewID("flw_", cmd.env.ID), Number: uint32(len(a.flows.byNumber)), Status: FlowDraft,
		Definition: def.JSON(), CreatedMs: m.logTime, UpdatedMs: m.logTime, CopyOf: copyOf,
	})
	if err != nil {
		return invalid("definition", "%s", err)
	}
	m.saveFlow(a, f, f.Flow)
	cmd.replyFlow(f)
	return nil
}

func parseFlow(definition []byte) (*flows.Flow, *Refusal) {
	def, err := flows.Parse(definition)
	if err != nil {
		return nil, invalid("definition", "%s", err)
	}
	if r := refuse.Name(def.Name); r != nil {
		return nil, r
	}
	return def, nil
}

func (m *Machine) updateFlow(cmd *command, c FlowSave) *Refusal {
	a := cmd.account
	f := a.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status != FlowDraft:
		return conflicts("id", "the flow has gone live, so its content is locked; duplicate it, change the copy and publish that")
	case f.Publishing:
		return conflicts("id", "the flow is being published; change it when that has ended")
	}
	if r := feature.OtherVersion(c.IfVersion, f.Flow.Version); r != nil {
		return r
	}
	def, refusal := parseFlow(c.Definition)
	if refusal != nil {
		return refusal
	}
	saved := *f.Flow
	saved.Definition, saved.UpdatedMs, saved.PublishError = def.JSON(), m.logTime, ""
	f.def = def
	f.counts.Steps = make([]FlowStepCount, len(def.Steps))
	a.flows.count(f)
	m.saveFlow(a, f, &saved)
	cmd.replyFlow(f)
	return nil
}

// deleteFlow removes a draft or a paused flow. What is stored of who was in it
// goes bit by bit.
func (m *Machine) deleteFlow(cmd *command, c FlowID) *Refusal {
	a := cmd.account
	f := a.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == FlowLive:
		return conflicts("id", "the flow is live; pause it first")
	}
	m.dropConditions(a, f)
	m.dropSet(a, pendingSet(f.Number))
	f.pending = a.set(pendingSet(f.Number))
	f.timers.Load(nil)
	f.dates.Load(nil)
	f.def = new(flows.Flow)
	m.store.PutEntity(state.EntityKey(a.number, state.EntityFlowCounts, f.ID), nil)
	m.saveFlow(a, f, &Flow{ID: f.ID, Number: f.Number, Deleted: true})
	return nil
}

func (m *Machine) duplicateFlow(cmd *command, c FlowID) *Refusal {
	f := cmd.account.flow(c.ID)
	if f == nil {
		return noFlow()
	}
	def := *f.def
	def.Name = copyName(def.Name)
	return m.addFlow(cmd, def.JSON(), f.ID)
}

// copyName is the name of a copy.
func copyName(name string) string {
	const of = "Copy of "
	for len(name) > refuse.MaxNameBytes-len(of) {
		r := []rune(name)
		name = string(r[:len(r)-1])
	}
	return of + name
}

// publishFlow takes a draft live, as soon as the conditions of its steps are
// built.
func (m *Machine) publishFlow(cmd *command, c FlowID) *Refusal {
	a := cmd.account
	f := a.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == FlowPaused:
		return conflicts("id", "the flow was published before and is paused; resume it")
	case f.Status == FlowLive || f.Publishing:
		cmd.replyFlow(f)
		return nil
	}
	if r := m.mayGoLive(a, f); r != nil {
		return r
	}
	leaves := 0
	for _, i := range f.def.Conditions() {
		leaves += len(f.def.Steps[i].Condition.Root.Leaves())
	}
	if n := a.engine.Leaves() + leaves; leaves > 0 && n > maxLeaves {
		return atLimit("definition", "the segments and flows of this account would have %d conditions, the most they can have is %d; share conditions or delete some", n, maxLeaves)
	}
	for _, i := range f.def.Conditions() {
		// What fell due with this record is in history, too.
		m.defineRoot(a, conditionID(f.Flow, i), f.def.Steps[i].Condition.Root, cmd.out.Offset+1)
	}
	saved := *f.Flow
	saved.Publishing, saved.PublishError = true, ""
	m.saveFlow(a, f, &saved)
	m.finishPublishing(a)
	cmd.replyFlow(f)
	return nil
}

// finishPublishing takes flows live whose conditions are built. Segments must
// owe nothing, so that each entry enrols once.
func (m *Machine) finishPublishing(a *account) {
	for _, f := range a.flows.unfinished {
		if f.Publishing && !a.engine.Working() && m.conditionsLive(a, f) {
			m.goLive(a, f)
		}
	}
}

func (m *Machine) conditionsLive(a *account, f *flowState) bool {
	for _, i := range f.def.Conditions() {
		if !a.engine.Live(conditionID(f.Flow, i)) {
			return false
		}
	}
	t := &f.def.Trigger
	return t.SegmentID == "" || a.segments[t.SegmentID] == nil || a.engine.Live(t.SegmentID)
}

// goLive ends publishing, one way or the other.
func (m *Machine) goLive(a *account, f *flowState) {
	saved := *f.Flow
	saved.Publishing = false
	if r := m.mayGoLive(a, f); r != nil {
		// What it needs was deleted or used up meanwhile.
		saved.PublishError = r.Message
		m.dropConditions(a, f)
		m.saveFlow(a, f, &saved)
		return
	}
	saved.Status, saved.PublishedMs = FlowLive, m.logTime
	switch t := &f.def.Trigger; t.Type {
	case flows.TriggerSegmentEntered:
		f.pending.Assign(a.engine.Members(t.SegmentID, m.logTime))
	case flows.TriggerDate:
		saved.Scanning = true
	}
	m.saveFlow(a, f, &saved)
}

func (m *Machine) dropConditions(a *account, f *flowState) {
	for _, i := range f.def.Conditions() {
		a.engine.Undefine(conditionID(f.Flow, i))
	}
}

// mayGoLive says all that keeps a flow from being live.
func (m *Machine) mayGoLive(a *account, f *flowState) *Refusal {
	if faults := f.def.Validate(flowWorld{a}); len(faults) > 0 {
		return invalid("definition", "the flow is not complete: %s", faults)
	}
	if f.def.SendsEmail() && a.EmailCredits < 1 {
		return conflicts("", "the account is out of e-mail credits; top up and try again")
	}
	return nil
}

// flowWorld is what a flow may refer to.
type flowWorld struct{ a *account }

func (w flowWorld) Segment(id string) bool { return w.a.segments[id] != nil }

func (w flowWorld) List(id string) bool { return w.a.list(id) != nil }

func (w flowWorld) Template(id string) (subject string, ok bool) {
	t, ok := w.a.campaigns.Template(id)
	return t.Subject, ok
}

// Sender says what keeps an address from being a sender, empty for nothing.
func (w flowWorld) Sender(address string) string {
	r := w.a.domains.MayBeSender(address)
	if r == nil {
		return ""
	}
	// The fault names the field.
	if why, ok := strings.CutPrefix(r.Message, "sender: "); ok {
		return "cannot be used: " + why
	}
	return strings.TrimPrefix(r.Message, "sender ")
}

func (w flowWorld) CheckCondition(root *segment.Node) error {
	if err := segment.CheckRefs("", root, w.a.definition); err != nil {
		return err
	}
	return segment.CheckLists(root, func(id string) bool { return w.a.list(id) != nil })
}

func (m *Machine) pauseFlow(cmd *command, c FlowID) *Refusal {
	f := cmd.account.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == FlowDraft:
		return conflicts("id", "the flow is a draft; only a flow that was published can be paused")
	case f.Status == FlowLive:
		m.pause(cmd.account, f, "")
	}
	cmd.replyFlow(f)
	return nil
}

func (m *Machine) pause(a *account, f *flowState, why string) {
	saved := *f.Flow
	saved.Pauses = f.pausesKept()
	saved.Status, saved.PausedMs, saved.PausedFor = FlowPaused, m.logTime, why
	m.saveFlow(a, f, &saved)
}

func (m *Machine) resumeFlow(cmd *command, c FlowID) *Refusal {
	a := cmd.account
	f := a.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.Status == FlowDraft:
		return conflicts("id", "the flow is a draft; publish it first")
	case f.Status == FlowPaused:
		if r := m.mayGoLive(a, f); r != nil {
			return r
		}
		m.resume(a, f)
	}
	cmd.replyFlow(f)
	return nil
}

func (m *Machine) resume(a *account, f *flowState) {
	m.keepPending(a, f)
	saved := *f.Flow
	saved.Status, saved.ResumedMs, saved.PausedFor = FlowLive, m.logTime, ""
	m.saveFlow(a, f, &saved)
}

// keepPending leaves out who is pending and, since a merge, not where it would
// enrol: a merge tells of no exit of the profile that goes on.
func (m *Machine) keepPending(a *account, f *flowState) {
	if f.pending.Bits.IsEmpty() {
		return
	}
	switch t := &f.def.Trigger; t.Type {
	case flows.TriggerSegmentEntered:
		f.pending.Assign(roaring.And(f.pending.Bits, a.engine.Members(t.SegmentID, m.logTime)))
	case flows.TriggerSegmentExited:
		f.pending.Assign(roaring.AndNot(f.pending.Bits, a.engine.Members(t.SegmentID, m.logTime)))
	}
}

func (m *Machine) toggleFlow(cmd *command, c FlowID) *Refusal {
	if f := cmd.account.flow(c.ID); f != nil && f.Status == FlowLive {
		return m.pauseFlow(cmd, c)
	}
	return m.resumeFlow(cmd, c)
}

// pauseForCredits pauses the live flows that send e-mail: there are no credits.
func (m *Machine) pauseForCredits(a *account) {
	for _, f := range a.flows.live {
		if f.def.SendsEmail() {
			m.pause(a, f, PausedForCredits)
		}
	}
}

// resumeForCredits takes those flows live again that were paused for want of
// credits and lack nothing else.
func (m *Machine) resumeForCredits(a *account) {
	for _, f := range a.flows.all {
		if f.Status == FlowPaused && f.PausedFor == PausedForCredits && m.mayGoLive(a, f) == nil {
			m.resume(a, f)
		}
	}
}

// triggerFlow enrols a contact by a call.
func (m *Machine) triggerFlow(cmd *command, c FlowTrigger) *Refusal {
	a := cmd.account
	f := a.flow(c.ID)
	switch {
	case f == nil:
		return noFlow()
	case f.def.Trigger.Type != flows.TriggerAPI:
		return conflicts("id", "the flow is not triggered by calls: its trigger is %s", f.def.Trigger.Type)
	}
	if r := c.checkLengths(); r != nil {
		return r
	}
	o, refusal := m.known(a, &c)
	if refusal != nil {
		return refusal
	}
	var key identifier.Hash
	if c.Key != "" {
		key = flowKeyHash(a, &c, &m.normal)
		switch v, ok, err := m.keys.Get(key); {
		case err != nil:
			panic(err) // the store is at fault; the record is named
		case ok && v.AtMs > a.keysFromMs(m.logTime):
			if a.root(v.Ordinal) != o {
				return conflicts("idempotency_key", "idempotency_key was used for another contact; use a new one for each")
			}
			cmd.reply(FlowTriggered{a.headers.Get(o).ID.String(), false})
			return nil
		}
	}
	switch {
	case f.Status == FlowDraft:
		return conflicts("id", "the flow is a draft; publish it first")
	case f.Status == FlowPaused:
		return conflicts("id", "the flow is paused; resume it first")
	case f.active.Contains(o):
		return conflicts("", "the contact is in this flow already")
	case f.entered.Contains(o) && f.def.Reentry != flows.AfterExit:
		return conflicts("", "the contact was in this flow before, and its reentry is %q", f.def.Reentry)
	}
	if c.Key != "" {
		m.keys.Put(key, dedup.Answer{AtMs: m.logTime, Ordinal: o})
	}
	m.trigger(f, o, m.logTime, c.Data)
	m.triggers[len(m.triggers)-1].call = true
	cmd.reply(FlowTriggered{a.headers.Get(o).ID.String(), true})
	return nil
}

// checkLengths says what is too long.
func (c *FlowTrigger) checkLengths() *Refusal {
	switch {
	case len(c.Key) > maxSendKeyBytes:
		return invalid("idempotency_key", "idempotency_key must have at most %d bytes", maxSendKeyBytes)
	case len(c.Data) > maxFlowEvent:
		return invalid("data", "data must have at most %d bytes", maxFlowEvent)
	}
	return nil
}

// flowKeyHash names the key of a call.
func flowKeyHash(a *account, c *FlowTrigger, buf *[]byte) identifier.Hash {
	if h, ok := identifier.Unmask(identifier.MaskIdempotencyKey, []byte(c.Key), 1); ok {
		return h[0]
	}
	return a.hasher.HashIdempotencyKey([]byte("flow\x00"+c.ID+"\x00"+c.Key), buf)
}

// known finds the profile of the first identifier that is on file.
func (m *Machine) known(a *account, c *FlowTrigger) (uint32, *Refusal) {
	given := false
	for k, value := range [...]string{c.Email, c.ExternalID, c.Phone} {
		if strings.TrimSpace(value) == "" {
			continue
		}
		given = true
		if h, ok := a.hasher.HashIdentifier(IdentityKind(k), []byte(value), &m.normal); ok {
			if o := a.ids.Owner(h); o != profile.NoOrdinal {
				return o, nil
			}
			m.noteErased(a, h)
		}
	}
	if !given {
		return 0, invalid("email", "email, external_id or phone Field required: the contact to be enrolled")
	}
	return 0, notFound("", "no contact has these identifiers; create it first")
}

// answerFlow tells a flow what became of a call. In one that is paused that is
// noted, and the enrolment goes on with it at resume.
func (m *Machine) answerFlow(cmd *command, it *outbox.Item, delivered bool, reason string) {
	a := cmd.account
	f, o := a.flow(it.Flow), a.root(it.Ordinal)
	if f == nil || a.gone(o) || !f.active.Contains(o) {
		return
	}
	if err := m.load(a, o, &m.doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	m.loadEnrolments(a, f, o)
	m.host = flowHost{m: m, c: cmd, f: f, o: o}
	e := m.enrolments.Current()
	m.host.e = e
	if f.def.Answer(e, it.Seq, delivered, reason, m.logTime) {
		m.runEnrolment(cmd, f, o, e, m.logTime)
	}
	m.host = flowHost{}
}
