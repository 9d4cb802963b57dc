package resolver

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment/engine"
)

// The statuses of a flow.
const (
	FlowDraft  = "draft"
	FlowLive   = "live"
	FlowPaused = "paused"
)

// PausedForCredits is the [Flow.PausedFor] of a flow that was paused because the
// account ran out of e-mail credits. It goes on when there are some again.
const PausedForCredits = "credits"

// The bounds of flows. They are part of the rules, like those in machine.go.
const (
	maxFlows      = 1000 // of an account
	maxFlowNumber = 100_000
	// maxFlowDepth is how many enrolments may start each other at one instant.
	maxFlowDepth = 16
	// flowSteps is how many steps a record carries out, roughly. What is left is
	// due, and goes on with the next.
	flowSteps = 4096
	// flowScan is how many profiles a record looks at for a flow that goes live.
	flowScan = 1000
	// maxPauses is how many pauses a flow remembers, beside the last.
	maxPauses = 64
	// ownRows is where the numbers of rows begin that flows add to a record of
	// events.
	ownRows = 1 << 24
)

// Flow is a flow as it is saved. Saved ones are replaced, never changed.
type Flow struct {
	ID     string `json:"id"`
	Number uint32 `json:"number"` // dense, in keys instead of the id
	Status string `json:"status"`
	// Definition is in canonical form.
	Definition json.RawMessage `json:"definition"`
	// Publishing drafts go live when the conditions of their steps are built.
	Publishing bool `json:"publishing,omitempty"`
	// PublishError says why a draft did not go live after all.
	PublishError string `json:"publish_error,omitempty"`
	PausedFor    string `json:"paused_for,omitempty"` // empty when somebody did
	CreatedMs    int64  `json:"created_ms"`
	UpdatedMs    int64  `json:"updated_ms"`
	PublishedMs  int64  `json:"published_ms,omitempty"`
	PausedMs     int64  `json:"paused_ms,omitempty"` // when it was last
	ResumedMs    int64  `json:"resumed_ms,omitempty"`
	// Pauses are those before the last that dates may have been due in which are not
	// worked off yet, in order.
	Pauses []Pause `json:"pauses,omitempty"`
	CopyOf string  `json:"copy_of,omitempty"`
	// ScanFrom is the first profile that was not looked at for its date, while
	// Scanning.
	ScanFrom uint32 `json:"scan_from,omitempty"`
	Scanning bool   `json:"scanning,omitempty"`
	// Deleted flows keep their number. Their enrolments go bit by bit.
	Deleted bool `json:"deleted,omitempty"`
}

// Pause is when a flow was paused: dates that were due then are missed, however
// late they are come to.
type Pause struct {
	FromMs  int64 `json:"from_ms"`
	UntilMs int64 `json:"until_ms"` // it was live again
}

// FlowCounts count what became of those who entered a flow.
type FlowCounts struct {
	Entered   uint64 `json:"entered"`
	Completed uint64 `json:"completed"`
	Exited    uint64 `json:"exited"`
	// LoopsCut are enrolments that did not begin because too many started each
	// other at one instant, or the service itself had caused too many of the
	// profile in that minute.
	LoopsCut uint64          `json:"loops_cut,omitempty"`
	Steps    []FlowStepCount `json:"steps"`
}

// FlowStepCount counts what became of those who came to a step.
type FlowStepCount struct {
	Arrived uint64 `json:"arrived"`
	At      uint64 `json:"at"` // are there now
	// Results are how often each [flows.Result] was met.
	Results map[flows.Result]uint64 `json:"results,omitempty"`
}

// left counts an enrolment that has left a step.
func (c *FlowCounts) left(step int, r flows.Result) {
	s := &c.Steps[step]
	s.At--
	if s.Results == nil {
		s.Results = map[flows.Result]uint64{}
	}
	s.Results[r]++
}

// flowState is a flow with what belongs to it in memory: a few bytes for each
// profile in it. The rest is in the store, a [flows.Record] for each profile.
type flowState struct {
	*Flow
	def     *flows.Flow
	counts  FlowCounts
	dirty   bool            // counts have changed in this generation
	known   *roaring.Bitmap // profiles with a record
	entered *roaring.Bitmap // profiles with an enrolment in the flow
	active  *roaring.Bitmap // those whose enrolment is in progress
	timers  dueset.Set      // enrolments in progress that go on by themselves
	dates   dueset.Set      // when the date trigger is due
	// pending are to be enrolled, because the trigger's segment had them when the
	// flow went live, or because they came while it was paused.
	pending *profile.OrdinalSet
	// about is what the events of the flow say, also encoded.
	about        properties
	aboutEncoded []byte
}

func (a *account) newFlowState(f *Flow, def *flows.Flow) *flowState {
	s := &flowState{Flow: f, def: def, known: roaring.New(), entered: roaring.New(), active: roaring.New()}
	s.pending = a.set(pendingSet(f.Number))
	s.counts.Steps = make([]FlowStepCount, len(def.Steps))
	s.describe()
	return s
}

func (f *flowState) describe() {
	f.about = properties{"flow_id": f.ID, "flow_name": f.def.Name}
	f.aboutEncoded = f.about.encode()
}

// flowSet is the flows of an account.
type flowSet struct {
	byID     map[string]*flowState
	byNumber []*flowState // deleted ones too
	dirty    []*flowState

	// What follows is found by index.
	all        []*flowState // not deleted, in order of number
	live       []*flowState
	catching   []*flowState            // live ones that have somebody pending, or scan
	unfinished []*flowState            // publishing, or deleted with enrolments left
	onEvent    map[string][]*flowState // live
	onList     map[string][]*flowState // live
	onSegment  map[string][]*flowState // live and paused
	onDate     []*flowState            // live and paused
	dateFields engine.Fields           // that their triggers look at
	widest     int                     // most flows that one segment triggers
	due        int64                   // nothing of a live flow is due before

	queue enrolQueue
}

func newFlowSet() flowSet {
	x := flowSet{byID: map[string]*flowState{}}
	x.index()
	return x
}

// index finds what concerns which flow, after one of them has changed.
func (x *flowSet) index() {
	x.all, x.live, x.catching, x.unfinished, x.onDate, x.dateFields, x.widest = nil, nil, nil, nil, nil, 0, 1
	x.onEvent, x.onList, x.onSegment = map[string][]*flowState{}, map[string][]*flowState{}, map[string][]*flowState{}
	for _, f := range x.byNumber {
		if f.Publishing || f.Deleted && !f.known.IsEmpty() {
			x.unfinished = append(x.unfinished, f)
		}
		if f.Deleted {
			continue
		}
		x.all = append(x.all, f)
		if f.Status == FlowDraft {
			continue
		}
		t := &f.def.Trigger
		switch t.Type {
		case flows.TriggerSegmentEntered, flows.TriggerSegmentExited:
			x.onSegment[t.SegmentID] = append(x.onSegment[t.SegmentID], f)
			x.widest = max(x.widest, len(x.onSegment[t.SegmentID]))
		case flows.TriggerDate:
			x.onDate = append(x.onDate, f)
			x.dateFields |= fieldOf(t.Date.Field)
		}
		if f.Status != FlowLive {
			continue
		}
		x.live = append(x.live, f)
		if f.Scanning || !f.pending.Bits.IsEmpty() {
			x.catching = append(x.catching, f)
		}
		switch t.Type {
		case flows.TriggerEvent:
			x.onEvent[t.Event.Event] = append(x.onEvent[t.Event.Event], f)
		case flows.TriggerListJoined:
			x.onList[t.ListID] = append(x.onList[t.ListID], f)
		}
	}
	x.due = math.MinInt64 // to be found
}

// fieldOf is what a date trigger's field belongs to.
func fieldOf(path string) engine.Fields {
	switch {
	case strings.HasPrefix(path, "attributes."):
		return engine.FieldAttributes
	case strings.HasPrefix(path, "geo."):
		return engine.FieldGeo
	}
	return engine.FieldCreatedAt
}

// soon notes that something of a live flow may be due earlier than known.
func (x *flowSet) soon(ms int64) { x.due = min(x.due, ms) }

// flowsBusy reports whether there is work for the next record.
func (a *account) flowsBusy(nowMs int64) bool {
	x := &a.flows
	if x.queue.waiting() {
		return true
	}
	if len(x.catching) > 0 && a.mayCatchUp() || slices.ContainsFunc(x.unfinished, func(f *flowState) bool { return f.Deleted }) {
		return true
	}
	f, _, _ := x.next(nowMs)
	return f != nil
}

// next is the first thing that is due in a live flow, not after untilMs: of
// equally early ones that of the lowest ordinal, then of the oldest flow. A date
// comes before an enrolment.
func (x *flowSet) next(untilMs int64) (f *flowState, it dueset.Item, date bool) {
	if x.due > untilMs {
		return nil, it, false
	}
	first := dueset.Item{Due: math.MaxInt64, Ordinal: profile.NoOrdinal}
	for _, c := range x.live {
		if d, ok := c.dates.Min(); ok && dueset.Compare(d, first) < 0 {
			f, first, date = c, d, true
		}
		if d, ok := c.timers.Min(); ok && dueset.Compare(d, first) < 0 {
			f, first, date = c, d, false
		}
	}
	x.due = first.Due
	if first.Due > untilMs {
		return nil, it, false
	}
	return f, first, date
}

// pendingSet names the set [flowState.pending].
func pendingSet(number uint32) string {
	return "flow/" + strconv.FormatUint(uint64(number), 10) + "/pending"
}

// conditionPrefix begins the ids of the segments that conditions of flows are to
// the engine. Nobody sees them.
const conditionPrefix = "flow/"

func conditionID(f *Flow, step int) string {
	return conditionPrefix + f.ID + "/" + strconv.Itoa(step)
}

func enrolmentKey(account uint64, flow, ordinal uint32) string {
	k := state.AccountKey(make([]byte, 0, state.KeyHead+8), state.TableEnrolment, account)
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(k, flow), ordinal))
}

// flow finds a flow that is not deleted.
func (a *account) flow(id string) *flowState {
	if f := a.flows.byID[id]; f != nil && !f.Deleted {
		return f
	}
	return nil
}

func noFlow() *Refusal { return notFound("id", "there is no flow with this id") }

// saveFlow makes a flow the saved one and finds anew what concerns whom.
func (m *Machine) saveFlow(a *account, f *flowState, saved *Flow) {
	f.Flow = saved
	f.describe()
	m.store.PutEntity(state.EntityKey(a.number, state.EntityFlow, saved.ID), must.PlainJSON(saved))
	a.flows.index()
}

// installFlow takes in a flow, in whatever order they come.
func (a *account) installFlow(saved *Flow) (*flowState, error) {
	def := new(flows.Flow)
	if !saved.Deleted {
		var err error
		if def, err = flows.Parse(saved.Definition); err != nil {
			return nil, fmt.Errorf("flow %s: %w", saved.ID, err)
		}
	}
	f := a.newFlowState(saved, def)
	x := &a.flows
	for int(saved.Number) >= len(x.byNumber) {
		gone := &Flow{Number: uint32(len(x.byNumber)), Deleted: true}
		x.byNumber = append(x.byNumber, a.newFlowState(gone, new(flows.Flow)))
	}
	x.byNumber[saved.Number] = f
	x.byID[saved.ID] = f
	return f, nil
}

// count notes that the counts of a flow have changed.
func (x *flowSet) count(f *flowState) *FlowCounts {
	if !f.dirty {
		f.dirty = true
		x.dirty = append(x.dirty, f)
	}
	return &f.counts
}

// storeFlows hands the counts changed since the last checkpoint to the store.
func (m *Machine) storeFlows(a *account) {
	for _, f := range a.flows.dirty {
		f.dirty = false
		if !f.Deleted {
			m.store.PutEntity(state.EntityKey(a.number, state.EntityFlowCounts, f.ID), must.JSON(f.counts))
		}
	}
	a.flows.dirty = a.flows.dirty[:0]
}

// flowLoad is what is read of enrolments while the state is loaded.
type flowLoad struct {
	record        flows.Record
	timers, dates map[*flowState][]dueset.Item
}

// entry reads the record of a profile in a flow.
func (l *flowLoad) entry(m *Machine, number uint64, rest, value []byte) error {
	a := m.accounts[number]
	if a == nil || len(rest) != 8 {
		return fmt.Errorf("enrolment of an unknown account")
	}
	flow, o := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
	if int(flow) >= len(a.flows.byNumber) || o >= a.headers.Count {
		return fmt.Errorf("enrolment of profile %d in flow %d: there is no such thing", o, flow)
	}
	f := a.flows.byNumber[flow]
	if err := l.record.Decode(value); err != nil {
		return err
	}
	f.known.Add(o)
	if len(l.record.Ways) > 0 {
		f.entered.Add(o)
	}
	if l.record.DateMs != 0 {
		l.dates[f] = append(l.dates[f], dueset.Item{Due: l.record.DateMs, Ordinal: o})
	}
	if e := l.record.Current(); e != nil {
		f.active.Add(o)
		if !f.Deleted && (e.Step < 0 || e.Step >= len(f.def.Steps)) {
			return fmt.Errorf("enrolment of profile %d in flow %s stands at step %d of %d", o, f.ID, e.Step, len(f.def.Steps))
		}
		if e.Timed() {
			l.timers[f] = append(l.timers[f], dueset.Item{Due: e.DueMs, Ordinal: o})
		}
	}
	return nil
}

// loadFlows reads the enrolments of flows. Profiles have been read.
func (m *Machine) loadFlows() error {
	l := flowLoad{timers: map[*flowState][]dueset.Item{}, dates: map[*flowState][]dueset.Item{}}
	if err := m.store.Each(state.TableEnrolment, func(number uint64, rest, value []byte) error { return l.entry(m, number, rest, value) }); err != nil {
		return err
	}
	for f, items := range l.timers {
		f.timers.Load(items)
	}
	for f, items := range l.dates {
		f.dates.Load(items)
	}
	for _, a := range m.byIndex {
		a.flows.index()
		m.updateBacklog(a)
	}
	return nil
}

// hashFlows is the flows' part of the state's hash.
func (m *Machine) hashFlows(put func([]byte), a *account) error {
	for _, f := range a.flows.byNumber {
		put(must.JSON(f.Flow))
		if !f.Deleted {
			put(must.JSON(f.counts))
		}
		for it := f.known.Iterator(); it.HasNext(); {
			o := it.Next()
			b, err := m.store.Entity(enrolmentKey(a.number, f.Number, o))
			if err != nil {
				return err
			}
			put(binary.LittleEndian.AppendUint32(nil, o))
			put(b)
		}
	}
	return m.hashWaiting(put, a)
}

// byAge lists flows, the oldest first; of equally old ones by id, as pages do.
func (x *flowSet) byAge() []*flowState {
	out := slices.Clone(x.all)
	sortByAge(out)
	return out
}

// sortByAge sorts flows, the oldest first; of equally old ones by id, as pages do.
func sortByAge(list []*flowState) {
	slices.SortFunc(list, func(x, y *flowState) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}
