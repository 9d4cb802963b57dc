package resolver

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/peek"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
)

// inspected is a flow with what memory has of it.
type inspected struct {
	automation.FlowState
	peek.Flow
}

// inspect lists the account's flows by number, deleted ones too.
func inspect(a *account.State) (list []inspected) {
	for _, f := range peek.Flows(a.Flows) {
		list = append(list, inspected{f.State.(automation.FlowState), f})
	}
	return list
}

// compare holds the machine against the oracle: everybody's enrolments, all
// effects, all events and transitions told.
func (s *flowSim) compare() {
	s.t.Helper()
	s.compareTold()
	s.compareOutbox()
	a := s.n.account()
	have := inspect(a)
	for _, f := range s.o.flows {
		s.compareFlow(&have[f.number], f)
	}
	if a.EmailCredits != s.o.credits {
		s.fatalf("%d credits, the oracle has %d", a.EmailCredits, s.o.credits)
	}
	for p, x := range s.o.people {
		if !s.o.there(p) {
			continue
		}
		var d profile.Document
		s.n.must(a.Profiles.Load(uint32(p), &d))
		w := s.o.who.profiles[p]
		if !reflect.DeepEqual(decodeObject(d.Attributes), w.attrs) || !reflect.DeepEqual(decodeObject(d.Geo), w.geo) || string(d.FirstName) != w.first {
			s.fatalf("profile %d has %s %s %q, the oracle has %v %v %q", p, d.Attributes, d.Geo, d.FirstName, w.attrs, w.geo, w.first)
		}
		for _, c := range d.Consents {
			if have := x.consents[profile.Channels[c.Channel]]; have.Status != c.Status {
				s.fatalf("profile %d: consent of %s is %d, the oracle has %d", p, profile.Channels[c.Channel], c.Status, have.Status)
			}
		}
	}
}

// compareTold compares what was recorded since the last time: each event of the
// service's own exactly once, in order.
func (s *flowSim) compareTold() {
	s.t.Helper()
	rows := &s.n.rows
	for ; s.rows < len(s.o.rows) || s.rows < rows.Rows(); s.rows++ {
		if s.rows >= len(s.o.rows) || s.rows >= rows.Rows() {
			s.fatalf("%d events are recorded, the oracle has %d: %+v", rows.Rows(), len(s.o.rows), s.o.rows[min(s.rows, len(s.o.rows)):])
		}
		got := oracleRow{int(rows.Ordinal[s.rows]), rows.TimeMs[s.rows], string(rows.EventType.At(s.rows)), string(rows.Properties.At(s.rows))}
		if want := s.o.rows[s.rows]; got != want {
			s.fatalf("F1: event %d of the log is %+v, the oracle has %+v", s.rows, got, want)
		}
	}
	for ; s.moves < len(s.o.moves) || s.moves < len(rows.Transitions); s.moves++ {
		if s.moves >= len(s.o.moves) || s.moves >= len(rows.Transitions) {
			s.fatalf("S2: %d transitions are told, the oracle has %d", len(rows.Transitions), len(s.o.moves))
		}
		got, want := rows.Transitions[s.moves], s.o.moves[s.moves]
		if got.Segment != want.Segment || got.Ordinal != want.Ordinal || got.Entered != want.Entered || got.AtMs != want.AtMs || told(got.Cause) != told(want.Cause) {
			s.fatalf("S2: transition %d is %+v, the oracle has %+v", s.moves, got, want)
		}
	}
}

// told is a cause as far as the oracle tells causes apart: what a profile did and
// what was changed of it are one.
func told(c segment.Cause) segment.Cause {
	if c == segment.CauseProfile {
		return segment.CauseEvent
	}
	return c
}

// compareOutbox compares effects: each is there once, for the right profile.
func (s *flowSim) compareOutbox() {
	s.t.Helper()
	a := s.n.account()
	if lastItem(s.n.m) != s.o.last || a.Outbox.Len() != len(s.o.outbox) {
		s.fatalf("F1: %d effects were intended and %d wait, the oracle has %d and %d", lastItem(s.n.m), a.Outbox.Len(), s.o.last, len(s.o.outbox))
	}
	for seq, want := range s.o.outbox {
		got := *itemOf(a, seq)
		got.ItemName = outbox.ItemName{} // the oracle keeps no log
		if g, w := string(must.JSON(got)), string(must.JSON(want.Item)); g != w {
			s.fatalf("F1: effect %d is %s, the oracle has %s", seq, g, w)
		}
		var x struct { // of all kinds
			To    string          `json:"to"`
			Event json.RawMessage `json:"event"`
		}
		b, err := a.Outbox.Payload(seq)
		s.n.must(err)
		s.n.must(json.Unmarshal(b, &x))
		if x.To != want.to || !bytes.Equal(x.Event, want.event) {
			s.fatalf("F1: effect %d goes to %q for %s, the oracle says %q for %s", seq, x.To, x.Event, want.to, want.event)
		}
	}
}

// compareLedger compares effects with steps, whichever node carried them out and
// when: with a record, as many messages are new as steps queued one, and each new
// call is awaited by one enrolment, or was by one that a merge has ended since.
func (s *flowSim) compareLedger() {
	s.t.Helper()
	a := s.n.account()
	queued := uint64(0)
	for _, f := range inspect(a) {
		if s.deleted[f.Number] {
			continue // it is counted no more
		}
		s.deleted[f.Number] = f.Deleted
		n := uint64(0)
		for _, c := range f.Counts.Steps {
			first := c.Results[flows.Queued]
			sent := first
			if c.Channels != nil { // those on a further channel are new messages, too
				sent = 0
			}
			for _, x := range c.Channels {
				sent += x.Queued
			}
			if sent < first {
				s.fatalf("F1: %d people were queued a message, %d messages on channels", first, sent)
			}
			n += sent
		}
		queued += n - s.queued[f.Number]
		s.queued[f.Number] = n
	}
	messages, gone, calls := uint64(0), uint64(0), map[uint64]int{}
	for seq := s.last + 1; seq <= lastItem(s.n.m); seq++ {
		switch it := itemOf(a, seq); {
		case it == nil && strings.HasPrefix(s.step, CommandContactErase):
			gone++ // what was due came first
		case it == nil:
			s.fatalf("F1: effect %d is gone at once", seq)
		case it.Kind == outbox.KindCall:
			calls[seq] = 0
		default:
			messages++
		}
	}
	if messages > queued || messages+gone < queued {
		s.fatalf("F1: %d steps queued a message, %d messages are new", queued, messages)
	}
	s.last = lastItem(s.n.m)
	if len(calls) == 0 {
		return
	}
	merged := 0
	for _, f := range inspect(a) {
		if f.Deleted {
			continue
		}
		for it := f.Ever.Iterator(); it.HasNext(); {
			r := s.enrolments(&f, it.Next())
			for i := range r.Enrolments {
				e := &r.Enrolments[i]
				if n, ok := calls[e.Item]; ok && e.Phase == flows.Awaiting {
					calls[e.Item] = n + 1
				}
				if e.Reason == flows.ByMerge && e.EndedMs == s.n.m.logTime {
					merged++
				}
			}
		}
	}
	for seq, n := range calls {
		if merged -= 1 - n; n > 1 || n == 0 && merged < 0 {
			s.fatalf("F1: call %d is awaited by %d enrolments", seq, n)
		}
	}
}

// stillFlow is what a record may not change of a flow that is paused before and
// after it.
type stillFlow struct {
	resumedMs          int64
	entered, completed uint64
	arrived            string
}

// pausedMoveNobody checks, whichever node carries things out and when, that no
// profile has begun, ended or come to a step in a flow that was paused all through
// a record.
func (s *flowSim) pausedMoveNobody() {
	s.t.Helper()
	for _, f := range inspect(s.n.account()) {
		if f.Status != automation.Paused {
			delete(s.still, f.Number)
			continue
		}
		now := stillFlow{resumedMs: f.ResumedMs, entered: f.Counts.Entered, completed: f.Counts.Completed}
		for _, c := range f.Counts.Steps {
			now.arrived += strconv.FormatUint(c.Arrived, 10) + " "
		}
		if before, ok := s.still[f.Number]; ok && before.resumedMs == now.resumedMs && before != now {
			s.fatalf("F1: flow %d is paused and went from %+v to %+v", f.Number, before, now)
		}
		s.still[f.Number] = now
	}
}

func (s *flowSim) compareFlow(got *inspected, want *oracleFlow) {
	s.t.Helper()
	if want.deleted && got.Deleted {
		return
	}
	if got.Status != want.status || got.PausedFor != want.pausedFor || got.Publishing != want.publishing || got.Deleted != want.deleted {
		s.fatalf("flow %d is %+v, the oracle has it %s for %q, publishing %v, deleted %v", want.number, got.FlowState.Flow, want.status, want.pausedFor, want.publishing, want.deleted)
	}
	if !bytes.Equal(must.JSON(got.Counts), must.JSON(want.counts)) {
		s.fatalf("flow %d counts %s, the oracle has %s", want.number, must.JSON(got.Counts), must.JSON(want.counts))
	}
	if list := slices.Sorted(maps.Keys(want.waiting)); !slices.Equal(list, ordinals(got.Queued)) && !got.Deleted {
		s.fatalf("flow %d: %v are to be enrolled, the oracle has %v", want.number, got.Queued, list)
	}
	for p := range s.o.people {
		r := s.enrolments(got, uint32(p))
		if len(r.Enrolments) != len(want.enrolments[p]) {
			s.fatalf("F1: flow %d, profile %d: %d enrolments %+v, the oracle has %d %+v", want.number, p, len(r.Enrolments), r.Enrolments, len(want.enrolments[p]), want.enrolments[p])
		}
		for i, e := range r.Enrolments {
			w := want.enrolments[p][i]
			if len(e.Event) == 0 && len(w.Event) == 0 {
				e.Event, w.Event = nil, nil
			}
			if !reflect.DeepEqual(e, w) {
				s.fatalf("F1: flow %d, profile %d: way %d is\n%+v, the oracle has\n%+v", want.number, p, i, e, w)
			}
		}
		if due := want.dates[p]; r.DateMs != due {
			s.fatalf("flow %d, profile %d: the date is due at %d, the oracle has %d", want.number, p, r.DateMs, due)
		}
	}
}

// enrolments is the stored enrolments of a profile in a flow.
func (s *flowSim) enrolments(f *inspected, p uint32) (r flows.Record) {
	if f.Known.Contains(p) {
		b, err := s.n.m.store.Entity(state.EnrolmentKey(testAccount, f.Number, p))
		s.n.must(err)
		s.n.must(r.Decode(b))
	}
	return r
}

func ordinals(b *roaring.Bitmap) (out []int) {
	for it := b.Iterator(); it.HasNext(); {
		out = append(out, int(it.Next()))
	}
	return out
}

// consistent checks what is derived in memory, and what counts say, against what
// is stored. It holds at any time, also while work is left for further records.
func (s *flowSim) consistent() {
	s.t.Helper()
	a := s.n.account()
	s.soundQueue()
	stored := map[string]bool{}
	for key := range s.n.storedWays() {
		stored[key] = true
	}
	for _, f := range inspect(a) {
		var timers, dates []dueset.Item
		at := make([]uint64, len(f.Counts.Steps))
		known, entered, active := roaring.New(), roaring.New(), roaring.New()
		for o := range a.Profiles.Headers.Count {
			key := state.EnrolmentKey(a.Number, f.Number, o)
			if stored[key] != f.Known.Contains(o) {
				s.fatalf("flow %d, profile %d: stored %v, known %v", f.Number, o, stored[key], f.Known.Contains(o))
			}
			if !stored[key] {
				continue
			}
			known.Add(o)
			r := s.enrolments(&f, o)
			if !f.Deleted && (a.Profiles.Root(o) != o || a.Profiles.Erased(o)) {
				s.fatalf("F1: flow %d has enrolments of profile %d, which is no more", f.Number, o)
			}
			if len(r.Enrolments) > 0 {
				entered.Add(o)
			} else if r.DateMs == 0 {
				s.fatalf("flow %d, profile %d: nothing is stored at length", f.Number, o)
			}
			if r.DateMs != 0 {
				dates = append(dates, dueset.Item{Due: r.DateMs, Ordinal: o})
			}
			for i := range r.Enrolments {
				s.soundEnrolment(&f, o, &r.Enrolments[i])
			}
			if e := r.Current(); e != nil {
				active.Add(o)
				if e.Timed() {
					timers = append(timers, dueset.Item{Due: e.DueMs, Ordinal: o})
				}
				if !f.Deleted {
					at[e.Step]++
				}
			}
		}
		if !known.Equals(f.Known) || !entered.Equals(f.Ever) || !active.Equals(f.Active) {
			s.fatalf("flow %d: known %v %v entered %v %v active %v %v", f.Number, f.Known, known, f.Ever, entered, f.Active, active)
		}
		if f.Deleted {
			continue
		}
		for i, c := range f.Counts.Steps {
			results := uint64(0)
			for _, n := range c.Results {
				results += n
			}
			if c.At != at[i] || c.Arrived != c.At+results {
				s.fatalf("flow %d, step %d: counts %+v, %d stand there", f.Number, i, c, at[i])
			}
		}
		if f.Counts.Entered != f.Counts.Completed+f.Counts.Exited+active.GetCardinality() {
			s.fatalf("flow %d: counts %+v, %d are in it", f.Number, f.Counts, active.GetCardinality())
		}
		s.sameItems(&f, "timers", f.Timers, timers)
		s.sameItems(&f, "dates", f.Dates, dates)
	}
}

// soundQueue checks that what is stored of those who wait to be enrolled is what
// the queue says, one entry each.
func (s *flowSim) soundQueue() {
	s.t.Helper()
	prefix := state.EntityKey(testAccount, state.EntityWaiting, "")
	stored := 0
	for key := range s.n.stored(state.TableEntity) {
		if strings.HasPrefix(key, prefix) {
			stored++
		}
	}
	x := s.n.account().Flows
	next, err := peek.Deferred(x, func(_ uint32, flows []uint32) {
		if len(flows) == 0 {
			s.fatalf("enrolments wait, but no flow is left")
		}
		stored--
	})
	s.n.must(err)
	if x.Deferred() == 0 && next != 0 {
		s.fatalf("an empty queue begins at %d", next)
	}
	if stored != 0 {
		s.fatalf("%d entries more are stored than the queue has", stored)
	}
}

// soundEnrolment checks that an enrolment passed no step twice.
func (s *flowSim) soundEnrolment(f *inspected, o uint32, e *flows.Enrolment) {
	s.t.Helper()
	seen := map[int]bool{}
	for _, v := range e.Path {
		if seen[v.Step] {
			s.fatalf("F1: flow %d, profile %d: step %d is passed twice: %+v", f.Number, o, v.Step, e)
		}
		seen[v.Step] = true
	}
}

func (s *flowSim) sameItems(f *inspected, what string, set *dueset.Set, want []dueset.Item) {
	s.t.Helper()
	slices.SortFunc(want, dueset.Compare)
	var got []dueset.Item
	for it, ok := set.Min(); ok; it, ok = set.Min() {
		set.Remove(it)
		got = append(got, it)
	}
	for _, it := range got {
		set.Add(it)
	}
	if !slices.Equal(got, want) {
		s.fatalf("flow %d: %s in memory %v, stored %v", f.Number, what, got, want)
	}
}

// storedWays are the keys of all records of enrolments.
func (n *flowNode) storedWays() map[string]bool { return n.stored(state.TableEnrolment) }

// stored are the keys of a table, as of now.
func (n *flowNode) stored(table byte) map[string]bool {
	out := map[string]bool{}
	n.must(n.m.store.Each(table, func(account uint64, rest, _ []byte) error {
		out[string(append(state.AccountKey(nil, table, account), rest...))] = true
		return nil
	}))
	for _, layer := range []map[string][]byte{n.m.store.FrozenEntities, n.m.store.Entities} {
		for k, v := range layer {
			if k[0] == table {
				out[k] = v != nil
			}
		}
	}
	for k, there := range out {
		if !there {
			delete(out, k)
		}
	}
	return out
}
