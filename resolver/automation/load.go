package automation

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Load takes back what a checkpoint has; known is false for an entity of another feature.
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityFlow:
		f := new(Flow)
		if err = json.Unmarshal(value, f); err == nil {
			_, err = s.install(f)
		}
		return true, err
	case state.EntityFlowCounts:
		// Behind the flows in the order of keys.
		f := s.byID[name]
		if f == nil {
			return true, fmt.Errorf("counts of an unknown flow")
		}
		return true, json.Unmarshal(value, &f.counts)
	case state.EntityWaiting:
		return true, s.loadDeferred(name)
	}
	return false, nil
}

// loading is the enrolments read while the state is loaded.
type loading struct {
	record        flows.Record
	timers, dates map[*flow][]dueset.Item
}

// LoadEnrolments reads the enrolments of all accounts; of finds the flows of one, nil if
// there is no such account. Flows and profiles have been read.
func (r *Runner) LoadEnrolments(of func(account uint64) *State) error {
	l := loading{timers: map[*flow][]dueset.Item{}, dates: map[*flow][]dueset.Item{}}
	err := r.store.Each(state.TableEnrolment, func(account uint64, rest, value []byte) error {
		s := of(account)
		if s == nil || len(rest) != 8 {
			return fmt.Errorf("enrolment of an unknown account")
		}
		return l.entry(s, binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:]), value)
	})
	if err != nil {
		return err
	}
	for f, items := range l.timers {
		f.timers.Load(items)
	}
	for f, items := range l.dates {
		f.dates.Load(items)
	}
	return nil
}

// entry reads the record of a profile in a flow.
func (l *loading) entry(s *State, number, o uint32, value []byte) error {
	if int(number) >= len(s.byNumber) || o >= s.port.ProfileCount() {
		return fmt.Errorf("enrolment of profile %d in flow %d: there is no such thing", o, number)
	}
	f := s.byNumber[number]
	if err := l.record.Decode(value); err != nil {
		return err
	}
	f.known.Add(o)
	if len(l.record.Enrolments) > 0 {
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

// Open finds what concerns which flow, when all was loaded.
func (s *State) Open() { s.index() }
