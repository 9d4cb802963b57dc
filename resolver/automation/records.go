package automation

import (
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/state"
)

// loadEnrolments reads what is stored of a profile in a flow into the scratch record of
// the enrolment that is being run.
func (s *State) loadEnrolments(f *flow, o uint32) {
	s.loadRecord(f, o, &s.run.enrolments)
}

func (s *State) loadRecord(f *flow, o uint32, r *flows.Record) {
	r.DateMs, r.Enrolments = 0, r.Enrolments[:0]
	if !f.known.Contains(o) {
		return
	}
	b, err := s.run.store.Entity(state.EnrolmentKey(s.account, f.Number, o))
	if err == nil {
		err = r.Decode(b)
	}
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
}

func (s *State) saveEnrolments(f *flow, o uint32) {
	s.saveRecord(f, o, &s.run.enrolments)
}

// saveRecord stores what is known of a profile in a flow, and nothing when there
// is nothing.
func (s *State) saveRecord(f *flow, o uint32, r *flows.Record) {
	if r.DateMs == 0 && len(r.Enrolments) == 0 {
		s.dropEnrolments(f, o)
		return
	}
	f.known.Add(o)
	s.run.store.PutPayload(state.EnrolmentKey(s.account, f.Number, o), r.Append(nil))
}

func (s *State) dropEnrolments(f *flow, o uint32) {
	if f.known.CheckedRemove(o) {
		s.run.store.PutEntity(state.EnrolmentKey(s.account, f.Number, o), nil)
	}
}
