package automation

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment/engine"
)

// State is the flows of one account, and the profiles in them.
type State struct {
	account uint64
	run     *Runner
	port    Port

	byID     map[string]*flow
	byNumber []*flow // deleted ones too
	dirty    []*flow // their counts have changed and are not stored

	// What follows is found by index.
	all         []*flow // not deleted, in order of number
	live        []*flow
	backfilling []*flow            // live ones that still enrol pending profiles or look for dates
	publishing  []*flow            // drafts whose conditions are built
	deleting    []*flow            // deleted ones that have enrolments left
	onEvent     map[string][]*flow // live
	onList      map[string][]*flow // live
	onSegment   map[string][]*flow // live and paused
	onDate      []*flow            // live and paused
	dateFields  engine.Fields      // that their triggers look at
	widest      int                // most flows that one segment triggers
	due         int64              // nothing of a live flow is due before

	queue enrolQueue
}

// New returns the flows of an account that has none.
func New(account uint64, run *Runner, port Port) *State {
	s := &State{account: account, run: run, port: port, byID: map[string]*flow{}}
	s.index()
	return s
}

// index finds what concerns which flow, after one of them has changed.
func (s *State) index() {
	s.all, s.live, s.backfilling, s.publishing, s.deleting = nil, nil, nil, nil, nil
	s.onDate, s.dateFields, s.widest = nil, 0, 1
	s.onEvent, s.onList, s.onSegment = map[string][]*flow{}, map[string][]*flow{}, map[string][]*flow{}
	for _, f := range s.byNumber {
		if f.Deleted {
			if !f.known.IsEmpty() {
				s.deleting = append(s.deleting, f)
			}
			continue
		}
		if f.Publishing {
			s.publishing = append(s.publishing, f)
		}
		s.all = append(s.all, f)
		if f.Status == Draft {
			continue
		}
		t := &f.def.Trigger
		switch t.Type {
		case flows.TriggerSegmentEntered, flows.TriggerSegmentExited:
			s.onSegment[t.SegmentID] = append(s.onSegment[t.SegmentID], f)
			s.widest = max(s.widest, len(s.onSegment[t.SegmentID]))
		case flows.TriggerDate:
			s.onDate = append(s.onDate, f)
			s.dateFields |= fieldOf(t.Date.Field)
		}
		if f.Status != Live {
			continue
		}
		s.live = append(s.live, f)
		if f.Scanning || !f.pending.Bits.IsEmpty() {
			s.backfilling = append(s.backfilling, f)
		}
		switch t.Type {
		case flows.TriggerEvent:
			s.onEvent[t.Event.Event] = append(s.onEvent[t.Event.Event], f)
		case flows.TriggerListJoined:
			s.onList[t.ListID] = append(s.onList[t.ListID], f)
		}
	}
	s.due = math.MinInt64 // to be found
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
func (s *State) soon(ms int64) { s.due = min(s.due, ms) }

// Busy reports whether there is work for the next record.
func (s *State) Busy(nowMs int64) bool {
	if s.queue.waiting() {
		return true
	}
	if len(s.backfilling) > 0 && s.port.HasRoom() || len(s.deleting) > 0 {
		return true
	}
	f, _, _ := s.next(nowMs)
	return f != nil
}

// Running reports whether some flow is live.
func (s *State) Running() bool { return len(s.live) > 0 }

// Made reports whether the account has ever had a flow.
func (s *State) Made() bool { return len(s.byNumber) > 0 }

// Widest is how many flows, at most, one segment triggers; 1 if none does.
func (s *State) Widest() int { return s.widest }

// NextDueMs is an instant before which nothing of a live flow is due; not ok if nothing is.
func (s *State) NextDueMs() (ms int64, ok bool) {
	return s.due, len(s.live) > 0 && s.due != math.MaxInt64
}

// next is the first thing that is due in a live flow, not after untilMs: of
// equally early ones that of the lowest ordinal, then of the oldest flow. A date
// comes before an enrolment.
func (s *State) next(untilMs int64) (f *flow, it dueset.Item, date bool) {
	if s.due > untilMs {
		return nil, it, false
	}
	first := dueset.Item{Due: math.MaxInt64, Ordinal: profile.NoOrdinal}
	for _, c := range s.live {
		if d, ok := c.dates.Min(); ok && dueset.Compare(d, first) < 0 {
			f, first, date = c, d, true
		}
		if d, ok := c.timers.Min(); ok && dueset.Compare(d, first) < 0 {
			f, first, date = c, d, false
		}
	}
	s.due = first.Due
	if first.Due > untilMs {
		return nil, it, false
	}
	return f, first, date
}

// flow finds a flow that is not deleted.
func (s *State) flow(id string) *flow {
	if f := s.byID[id]; f != nil && !f.Deleted {
		return f
	}
	return nil
}

// save makes a flow the saved one and finds again what concerns whom.
func (s *State) save(f *flow, saved *Flow) {
	f.Flow = saved
	f.describe()
	s.put(saved)
	s.index()
}

// put stores a saved flow.
func (s *State) put(saved *Flow) {
	s.run.store.PutEntity(state.EntityKey(s.account, state.EntityFlow, saved.ID), must.PlainJSON(saved))
}

// install takes in a flow, in whatever order they come.
func (s *State) install(saved *Flow) (*flow, error) {
	def := new(flows.Flow)
	if !saved.Deleted {
		var err error
		if def, err = flows.Parse(saved.Definition); err != nil {
			return nil, fmt.Errorf("flow %s: %w", saved.ID, err)
		}
	}
	f := s.newFlow(saved, def)
	for int(saved.Number) >= len(s.byNumber) {
		deleted := &Flow{Number: uint32(len(s.byNumber)), Deleted: true}
		s.byNumber = append(s.byNumber, s.newFlow(deleted, new(flows.Flow)))
	}
	s.byNumber[saved.Number] = f
	s.byID[saved.ID] = f
	return f, nil
}

// count notes that the counts of a flow have changed.
func (s *State) count(f *flow) *Counts {
	if !f.dirty {
		f.dirty = true
		s.dirty = append(s.dirty, f)
	}
	return &f.counts
}

// Freeze hands to the store the counts that changed since the last checkpoint.
func (s *State) Freeze() {
	for _, f := range s.dirty {
		f.dirty = false
		if !f.Deleted {
			s.run.store.PutEntity(state.EntityKey(s.account, state.EntityFlowCounts, f.ID), must.JSON(f.counts))
		}
	}
	s.dirty = s.dirty[:0]
}

// Hash gives put the whole state, in an order that depends on it alone.
func (s *State) Hash(put func([]byte)) error {
	for _, f := range s.byNumber {
		put(must.JSON(f.Flow))
		if !f.Deleted {
			put(must.JSON(f.counts))
		}
		for it := f.known.Iterator(); it.HasNext(); {
			o := it.Next()
			b, err := s.run.store.Entity(state.EnrolmentKey(s.account, f.Number, o))
			if err != nil {
				return err
			}
			put(binary.LittleEndian.AppendUint32(nil, o))
			put(b)
		}
	}
	return s.hashDeferred(put)
}

func (s *State) newFlow(saved *Flow, def *flows.Flow) *flow {
	f := &flow{Flow: saved, def: def, known: roaring.New(), entered: roaring.New(), active: roaring.New()}
	f.pending = s.port.Set(pendingSet(saved.Number))
	f.counts.Steps = make([]StepCount, len(def.Steps))
	f.describe()
	return f
}
