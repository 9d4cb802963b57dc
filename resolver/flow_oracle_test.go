package resolver

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/segment"
)

// flowOracle interprets the written rules of flows, one thing after the other:
// it keeps the whole history of every person, asks the naive evaluator for the
// members of each segment at each instant at which that may change, and advances
// enrolments step by step. It has no indexes, no timers and no budgets.
type flowOracle struct {
	t       testing.TB
	who     *naive         // identities and merges
	people  []*person      // by ordinal
	now     int64          // log time
	at      int64          // the instant at hand, not after it
	optIn   bool           // e-mail goes to subscribers only
	limits  *pacing.Limits // quiet hours of all people, nil for none
	until   int64          // the quiet hours that hold up the enrolment at hand end then
	segs    map[string]*oracleSegment
	flows   []*oracleFlow // by number
	credits int64
	outbox  map[uint64]*oracleItem
	last    uint64 // number of the newest item
	keys    map[string]naiveKey
	quiet   bool // the record starts no flows

	rows   []oracleRow
	moves  []query.Transition
	untold []query.Transition
	queue  []oracleEntry
	depth  uint8
	ours   bool // what happens is the service's own doing
	begun  int  // enrolments of the record at hand
	scan   int  // profiles that a record looks at for a flow that goes live
	bits   func(f *oracleFlow, p, step int, way uint32) uint64
}

// person is what the oracle of resolution does not keep.
type person struct {
	events       []segment.NaiveEvent
	consents     map[string]profile.Consent
	lists        []string
	suppressions map[string]profile.SuppressionReason
	gone         bool
	loops        map[int64]int         // enrolments in a minute that the service itself caused
	facts        *segment.NaiveProfile // nil when something has changed
}

type oracleSegment struct {
	live, next *segment.Node
	members    map[int]bool
	pending    map[int]bool // transitions pending after a change of definition
	pendingMs  int64
}

type oracleItem struct {
	outbox.Item
	to    string // of an e-mail
	event []byte // what started the flow
}

type oracleRow struct {
	profile int
	at      int64
	typ     string
	props   string
}

// oracleEntry is a person to be enrolled.
type oracleEntry struct {
	f     *oracleFlow
	p     int
	at    int64
	depth uint8
	ours  bool
	event []byte
}

type oracleFlow struct {
	number                        uint32
	id, status, pausedFor         string
	def                           *flows.Flow
	publishing, scanning, deleted bool
	scanned                       int // profiles looked at while scanning
	published, paused, resumed    int64
	pauses                        [][2]int64 // that are over
	enrolments                    map[int][]flows.Enrolment
	dates                         map[int]int64
	waiting                       map[int]bool // to be enrolled when the flow continues
	counts                        automation.Counts
}

func newFlowOracle(t testing.TB, settings Settings, credits int64, scan int) *flowOracle {
	return &flowOracle{t: t, scan: scan, optIn: settings.RequireOptIn, limits: settings.SendingLimits, who: newNaive(settings), segs: map[string]*oracleSegment{},
		credits: credits, outbox: map[uint64]*oracleItem{}, keys: map[string]naiveKey{}}
}

func (f *oracleFlow) live() bool { return f.status == automation.Live && !f.deleted }

// since is when a live flow began to be live.
func (f *oracleFlow) since() int64 { return max(f.published, f.resumed) }

// current is a person's enrolment in progress.
func (f *oracleFlow) current(p int) *flows.Enrolment {
	if n := len(f.enrolments[p]); n > 0 && f.enrolments[p][n-1].Status == flows.InProgress {
		return &f.enrolments[p][n-1]
	}
	return nil
}

// begin lets the log's time continue with a record.
func (o *flowOracle) begin(stampMs int64) {
	o.now = max(o.now, stampMs)
	o.who.logTime = o.now
	o.quiet, o.ours, o.begun = false, false, 0
}

// advance carries out what is due: first all changes of segments up to an
// instant, then what flows have at that instant.
func (o *flowOracle) advance() {
	for {
		f, p, due, date := o.nextStep()
		until := o.now
		if f != nil {
			until = due
		}
		if x, at, ok := o.nextChange(until); ok {
			o.at = max(o.at, at)
			o.evaluate(x, segment.CauseExpiry)
			o.react()
			continue
		}
		o.at = max(o.at, until)
		if f == nil {
			break
		}
		o.runDue(f, p, due, date)
		o.react()
	}
	o.at = o.now
}

// nextStep is what is due first in a live flow, until now: by instant, then
// ordinal, then age of the flow, a date before an enrolment.
func (o *flowOracle) nextStep() (first *oracleFlow, p int, due int64, date bool) {
	better := func(f *oracleFlow, ordinal int, ms int64, isDate bool) {
		if ms <= o.now && (first == nil || ms < due || ms == due && ordinal < p) {
			first, p, due, date = f, ordinal, ms, isDate
		}
	}
	for _, f := range o.flows {
		if !f.live() {
			continue
		}
		for x, ms := range f.dates {
			better(f, x, ms, true)
		}
		for x := range f.enrolments {
			if w := f.current(x); w != nil && w.Phase != flows.Awaiting {
				better(f, x, w.DueMs, false)
			}
		}
	}
	return first, p, due, date
}

// nextChange is the first instant, from the one at hand until another, at which a
// person enters or leaves a segment because time passes.
func (o *flowOracle) nextChange(until int64) (who int, first int64, ok bool) {
	if until < o.at {
		return 0, 0, false
	}
	list := o.ranked()
	for p := range o.people {
		if !o.there(p) {
			continue
		}
		for _, t := range o.instants(p, until) {
			if ok && t >= first {
				break
			}
			if slices.ContainsFunc(list, func(s string) bool { return o.member(o.segs[s].live, p, t) != o.segs[s].members[p] }) {
				who, first, ok = p, t, true
				break
			}
		}
	}
	return who, first, ok
}

// instants are those at which an answer about a person may change by time alone.
func (o *flowOracle) instants(p int, until int64) (out []int64) {
	add := func(t int64) {
		if t >= o.at && t <= until {
			out = append(out, t)
		}
	}
	for _, s := range o.segs {
		if s.live == nil {
			continue
		}
		for _, l := range s.live.Leaves() {
			switch {
			case l.Activity != nil && l.Activity.WindowMs > 0:
				for _, e := range o.people[p].events {
					if e.Type == l.Activity.Event {
						add(e.TimeMs + l.Activity.WindowMs)
					}
				}
			case l.Attribute != nil && l.Attribute.Predicate.WindowMs > 0:
				w := l.Attribute.Predicate.WindowMs
				add(o.who.profiles[p].created + w)
				if t, ok := seenMs(o.who.profiles[p].attrs); ok {
					add(t)
					add(t + w)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ranked are the segments that are live, each behind those it refers to, then in
// order of their ids.
func (o *flowOracle) ranked() (ids []string) {
	for id, s := range o.segs {
		if s.live != nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(cmp.Compare(o.rank(x), o.rank(y)), cmp.Compare(x, y)) })
	return ids
}

func (o *flowOracle) rank(id string) (r int) {
	for _, ref := range o.segs[id].live.SegmentIDs() {
		r = max(r, o.rank(ref)+1)
	}
	return r
}

// there reports whether a person is one of their own and not erased.
func (o *flowOracle) there(p int) bool { return o.who.profiles[p].winner == p && !o.people[p].gone }

func (o *flowOracle) member(root *segment.Node, p int, at int64) bool {
	return o.there(p) && root.Naive(o.facts(p), at, func(id string) (*segment.Node, bool) {
		s := o.segs[id]
		return s.live, s.live != nil
	})
}

func (o *flowOracle) facts(p int) *segment.NaiveProfile {
	x, w := o.people[p], o.who.profiles[p]
	if x.facts != nil {
		return x.facts
	}
	object := func(v map[string]any) json.RawMessage {
		if len(v) == 0 {
			return nil
		}
		return must.JSON(v)
	}
	x.facts = &segment.NaiveProfile{Emails: w.idents[IdentityEmail], ExternalIDs: w.idents[IdentityExternalID], Phones: w.idents[IdentityPhone],
		FirstName: w.first, LastName: w.last, Geo: object(w.geo), Attributes: object(w.attrs), CreatedAtMs: w.created,
		Consents: map[string]segment.NaiveConsent{}, Lists: x.lists, Events: x.events}
	for channel, c := range x.consents {
		y := segment.NaiveConsent{Status: profile.ConsentStatuses[c.Status]}
		if c.SubscribedMs != 0 {
			y.SubscribedMs = &c.SubscribedMs
		}
		x.facts.Consents[channel] = y
	}
	return x.facts
}

// evaluate evaluates the segments of a person after a change.
func (o *flowOracle) evaluate(p int, cause segment.Cause) {
	for _, id := range o.ranked() {
		s := o.segs[id]
		if is := o.member(s.live, p, o.at); is != s.members[p] {
			o.turn(id, p, is, cause)
		}
	}
}

func (o *flowOracle) turn(id string, p int, is bool, cause segment.Cause) {
	s := o.segs[id]
	o.announce(id, p)
	s.members[p] = is
	o.untold = append(o.untold, query.Transition{Segment: id, Ordinal: uint32(p), Entered: is, Cause: cause, AtMs: o.at})
}

// announce emits a person's pending transition after a change of definition.
func (o *flowOracle) announce(id string, p int) {
	if s := o.segs[id]; s.pending[p] {
		delete(s.pending, p)
		o.untold = append(o.untold, query.Transition{Segment: id, Ordinal: uint32(p), Entered: s.members[p], Cause: segment.CauseDefinition, AtMs: s.pendingMs})
	}
}

func (o *flowOracle) announceAll() {
	ids := make([]string, 0, len(o.segs))
	for id := range o.segs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		for p := range o.people {
			o.announce(id, p)
		}
	}
}

// promote makes the newest definition of a segment the one that counts. Those
// that refer to it change with it.
func (o *flowOracle) promote(id string) {
	s := o.segs[id]
	s.live, s.next = s.next, nil
	for _, id := range o.ranked() {
		x := o.segs[id]
		for p := range o.people {
			if is := o.member(x.live, p, o.at); is != x.members[p] {
				x.members[p] = is
				if x.pending[p] = !x.pending[p]; !x.pending[p] {
					delete(x.pending, p)
				}
				x.pendingMs = o.at
			}
		}
	}
}
