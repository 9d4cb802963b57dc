package profiles

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
)

func (a *API) timelineRoute() handler.Route {
	entry := shape.Named("TimelineEntry", shape.Object(
		shape.Req("at", shape.Instant("When it happened.")),
		shape.Req("kind", shape.Word("What it is.", timelineKinds...)),
		shape.Opt("event", shapes.ProfileEvent),
		shape.Opt("transition", shape.Named("TimelineTransition", shape.Object(shape.Req("segment_id", shape.SegmentID("")), shape.Req("segment_name", shape.Text("Customers", "Name at present; null for a deleted segment.").OrNull()),
			shape.Req("entered", shape.Boolean(true, "false for an exit.")), shape.Req("cause", shape.Word("", "event", "expiry", "profile", "merge", "definition")), shape.Req("profile_id", shape.ProfileID("Whose entry or exit it was: this profile, or one that became part of it. A profile leaves its segments when it becomes part of another, which may stay in them."))))),
		shape.Opt("step", shape.Named("TimelineStep", shape.Object(shape.Req("flow_id", shape.FlowID("")), shape.Req("flow_name", shape.Text("Welcome", "")), shape.Req("enrolment", shape.Count(1, "Number among the profile's enrolments in the flow.")),
			shape.Req("step_id", shape.Text("mail", "")), shape.Req("step_type", shape.Text("email", "")), shape.Req("result", shape.Text("queued", "What became of the step at present; `pending` while the profile is at it. Results that begin with `skipped_` say why a message was not sent.")),
			shape.Req("branch", shape.Count(0, "Index of the branch that a split chose.").OrNull()), shape.Req("reason", shape.Text("timeout", "Why the step failed.").OrNull())))),
		shape.Opt("merge", shape.Named("TimelineMerge", shape.Object(shape.Req("profile_id", shape.ProfileID("The profile that became part of this one."))))),
	))
	return handler.Route{Handle: a.profileTimeline, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/timeline", Permission: "events:read", ID: "profileTimeline", Summary: "Read a profile's timeline",
		About: "Events, entries into and exits from segments, messages, enrolments in flows and their steps, merges, consents, suppressions, lists and devices, the newest first. After a merge it has what happened to both profiles. " +
			"An entry has the detail of its kind: `transition`, `step` (also of a `message` that a flow skipped), `merge`, and `event` for all others. Entries of one millisecond are in the order in which they were recorded; of those, merges are the oldest, then come the steps of flows, and the ends of enrolments are the newest. " +
			"Steps are kept of the enrolment in progress and of the last 10 that ended in each flow; the recipients that a campaign skipped are counted and not in it.",
		Query: []operation.Parameter{operation.Query("kinds", shape.Text("transition,message", "Entries of these kinds alone, with commas between: "+strings.Join(timelineKinds, ", ")+"."))},
		Data:  shape.List(entry, ""), Paged: true}}
}

// timelineEntry is something that happened to a profile. One of the pointers is set.
type timelineEntry struct {
	At         string              `json:"at"`
	Kind       string              `json:"kind"`
	Event      *record.Event       `json:"event,omitempty"`
	Transition *timelineTransition `json:"transition,omitempty"`
	Step       *timelineStep       `json:"step,omitempty"`
	Merge      *timelineMerge      `json:"merge,omitempty"`

	place timelinePlace
}

type timelineTransition struct {
	SegmentID   string  `json:"segment_id"`
	SegmentName *string `json:"segment_name"`
	Entered     bool    `json:"entered"`
	Cause       string  `json:"cause"`
	ProfileID   string  `json:"profile_id"`
}

type timelineStep struct {
	FlowID    string  `json:"flow_id"`
	FlowName  string  `json:"flow_name"`
	Enrolment uint32  `json:"enrolment"`
	StepID    string  `json:"step_id"`
	StepType  string  `json:"step_type"`
	Result    string  `json:"result"`
	Branch    *int    `json:"branch"`
	Reason    *string `json:"reason"`
}

type timelineMerge struct {
	ProfileID string `json:"profile_id"`
}

// timelinePlace orders the entries of a timeline and is what a cursor names. It never
// changes, so that pages neither lose nor repeat an entry.
type timelinePlace struct {
	atMs  int64
	phase uint8 // within the millisecond: one of those below
	// a, b and c are of an event the offset, 0 and the index in the record; of a
	// transition the offset, 1 and the number in the record; of a step the number of
	// the flow, that of the enrolment and the index in its path; of a merge the ordinal
	// in c.
	a    int64
	b, c uint32
}

// The phases of a millisecond. State has no offset of merges and steps.
const (
	phaseMerge uint8 = iota
	phaseRecord
	phaseStep
	phaseEnd // of enrolments
)

// lateEvents are in phaseEnd.
var lateEvents = []string{"flow_completed", "flow_exited"}

func (p timelinePlace) compare(o timelinePlace) int {
	return cmp.Or(cmp.Compare(p.atMs, o.atMs), cmp.Compare(p.phase, o.phase), cmp.Compare(p.a, o.a), cmp.Compare(p.b, o.b), cmp.Compare(p.c, o.c))
}

const timelinePlaceBytes = 8 + 1 + 8 + 4 + 4

func (p timelinePlace) encode() string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(p.atMs))
	b = binary.LittleEndian.AppendUint64(append(b, p.phase), uint64(p.a))
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, p.b), p.c)
	return paging.Encode(paging.History, b)
}

// timelinePlaceOf reads the cursor, nil for none.
func timelinePlaceOf(c *handler.Call) (*timelinePlace, error) {
	b, err := c.Cursor(paging.History, timelinePlaceBytes)
	if b == nil {
		return nil, err
	}
	le := binary.LittleEndian
	return &timelinePlace{int64(le.Uint64(b)), b[8], int64(le.Uint64(b[9:])), le.Uint32(b[17:]), le.Uint32(b[21:])}, nil
}

// event is the key before which events are those before the place.
func (p *timelinePlace) event() *query.TimelineKey {
	if p == nil {
		return nil
	}
	k := &query.TimelineKey{TimeMs: p.atMs, Offset: p.a, Index: p.c}
	switch {
	case p.phase == phaseMerge:
		k.Offset = -1
	case p.phase == phaseStep:
		k.Offset = math.MaxInt64
	case p.phase == phaseEnd:
		k.Late = true
	case p.b != 0: // a transition: it is later than the events of its record
		k.Index = math.MaxUint32
	}
	return k
}

// transition is the place before which transitions are those before the place.
func (p *timelinePlace) transition() *query.TransitionPlace {
	if p == nil {
		return nil
	}
	out := &query.TransitionPlace{AtMs: p.atMs, Key: query.TransitionKey{Offset: p.a, Seq: p.c}}
	switch {
	case p.phase == phaseMerge:
		out.Key.Offset = -1
	case p.phase > phaseRecord:
		out.Key.Offset = math.MaxInt64
	case p.b == 0: // an event: transitions of its record are later
		out.Key.Seq = 0
	}
	return out
}

// profileTimeline answers GET /profiles/{id}/timeline.
func (a *API) profileTimeline(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	kinds, err := askedKinds(string(c.QueryArgs().Peek("kinds")))
	if err != nil {
		return nil, err
	}
	t := &timelineRead{api: a, kinds: kinds, limit: limit + 1}
	if t.before, err = timelinePlaceOf(c); err != nil {
		return nil, err
	}
	if err := c.Read(func(v *resolver.View) error { return t.state(v, c.Account, c.PathID()) }); err != nil {
		return nil, err
	}
	if err := t.history(c); err != nil {
		return nil, err
	}
	slices.SortFunc(t.entries, func(x, y timelineEntry) int { return y.place.compare(x.place) })
	list, next := t.entries, ""
	var room paging.Room
	n := 0
	for n < min(limit, len(list)) && room.Take(&list[n]) {
		n++
	}
	if len(list) > n {
		list, next = list[:n], list[n-1].place.encode()
	}
	return handler.Page{Items: append([]timelineEntry{}, list...), Next: next}, c.Hold(room.Bytes)
}

// timelineRead collects the entries of a page: of each source those that could be on it.
type timelineRead struct {
	api      *API
	kinds    map[string]bool
	before   *timelinePlace
	limit    int
	account  uint64
	cut      query.Cut
	ordinals []uint32
	ids      []string          // of the ordinals
	names    map[string]string // of segments
	entries  []timelineEntry
}

func (t *timelineRead) add(atMs int64, kind string, e timelineEntry) {
	e.At, e.Kind = record.Time(atMs), kind
	t.entries = append(t.entries, e)
}

func (t *timelineRead) isBefore(p timelinePlace) bool {
	return t.before == nil || p.compare(*t.before) < 0
}

// state reads what the state has: whose history it is, merges and steps of flows.
func (t *timelineRead) state(v *resolver.View, account uint64, id string) error {
	ordinal, ok := v.Profiles().ResolveText(id)
	if !ok {
		return handler.ErrNoProfile
	}
	merges, err := v.Profiles().Merges(ordinal)
	if err != nil {
		return err
	}
	t.account, t.cut, t.ordinals, t.names, t.entries = account, v.Cut(), []uint32{ordinal}, map[string]string{}, nil
	t.ids = []string{v.Profiles().ID(ordinal).String()}
	for _, m := range merges {
		t.ordinals, t.ids = append(t.ordinals, m.Ordinal), append(t.ids, m.ID.String())
		if place := (timelinePlace{atMs: m.AtMs, phase: phaseMerge, c: m.Ordinal}); t.kinds[kindMerge] && t.isBefore(place) {
			t.add(m.AtMs, kindMerge, timelineEntry{Merge: &timelineMerge{m.ID.String()}, place: place})
		}
	}
	if t.kinds[kindTransition] {
		for _, s := range v.Segments().All() {
			t.names[s.ID] = s.Name
		}
	}
	if !t.kinds[kindStep] && !t.kinds[kindMessage] {
		return nil
	}
	place := func(s *automation.Step) timelinePlace {
		return timelinePlace{s.AtMs, phaseStep, int64(s.Flow.Number), s.Enrolment, s.Index}
	}
	steps, err := v.Flows().StepsOf(ordinal, t.limit, func(s *automation.Step) bool { return t.kinds[kindOfStep(s)] && t.isBefore(place(s)) })
	if err != nil {
		return err
	}
	for i := range steps {
		s := &steps[i]
		out := &timelineStep{FlowID: s.Flow.ID, FlowName: s.Name, Enrolment: s.Enrolment, StepID: s.ID, StepType: s.Type, Result: s.Result.String()}
		if s.Result == flows.Branched {
			out.Branch = &s.Branch
		}
		if s.Result == flows.Failed {
			out.Reason = record.TextOrNull(s.FailReason)
		}
		t.add(s.AtMs, kindOfStep(s), timelineEntry{Step: out, place: place(s)})
	}
	return nil
}

// history reads events and transitions at the cut of the state.
func (t *timelineRead) history(c *handler.Call) error {
	types, except := eventTypesOf(t.kinds)
	events := types == nil || len(types) > 0
	if !events && !t.kinds[kindTransition] {
		return nil
	}
	a := t.api
	ctx, done, err := a.opts.Evaluation.Begin(c, t.cut)
	if err != nil {
		return err
	}
	defer done()
	if events {
		list, err := a.opts.History.Timeline(ctx, query.TimelineQuery{
			Cut: t.cut, Account: t.account, Ordinals: t.ordinals, Types: types, Except: except, Recorded: true, Late: lateEvents, Before: t.before.event(), Limit: t.limit})
		if err != nil {
			return evaluation.HistoryError(err)
		}
		for i, e := range record.Events(list) {
			k := list[i].Key
			place := timelinePlace{k.TimeMs, phaseRecord, k.Offset, 0, k.Index}
			if k.Late {
				place.phase = phaseEnd
			}
			t.add(k.TimeMs, kindOfEvent(e.EventType, list[i].Sent), timelineEntry{Event: &e, place: place})
		}
	}
	if !t.kinds[kindTransition] {
		return nil
	}
	list, err := a.opts.History.ProfileTransitions(ctx, query.ProfileTransitionsQuery{
		Cut: t.cut, Account: t.account, Ordinals: t.ordinals, Before: t.before.transition(), Limit: t.limit})
	if err != nil {
		return evaluation.HistoryError(err)
	}
	for _, x := range list {
		out := &timelineTransition{SegmentID: x.Segment, Entered: x.Entered, Cause: x.Cause.String(), ProfileID: t.ids[slices.Index(t.ordinals, x.Ordinal)]}
		if name, ok := t.names[x.Segment]; ok {
			out.SegmentName = &name
		}
		t.add(x.AtMs, kindTransition, timelineEntry{Transition: out, place: timelinePlace{x.AtMs, phaseRecord, x.Key.Offset, 1, x.Key.Seq}})
	}
	return nil
}
