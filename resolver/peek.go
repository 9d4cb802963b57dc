package resolver

import (
	"github.com/musterhq/muster/resolver/internal/peek"
)

// What tests of other packages may see of a machine: see package peek.
func init() {
	peek.EmailNames = func(machine any) (held, directory []string) { return machine.(*Machine).emailNames() }
	peek.EnrolmentsPerRecord = func(machine any, n int) { machine.(*Machine).flows.Bounds.Enrolments = n }
	peek.Profiles = func(view any) uint64 { return view.(*View).a.universe().GetCardinality() }
	peek.NextDue = func(view any) (ms int64, ok bool) { return view.(*View).a.engine.NextDue() }
}

// emailNames lists the names that accounts hold, and those that the directory has.
func (m *Machine) emailNames() (held, directory []string) {
	for n := range m.reservations {
		held = append(held, string(n[:]))
	}
	prefix := emailKey(emailHolder)
	keys := map[string]bool{}
	for k := range m.store.Entities {
		keys[k] = true
	}
	_ = m.store.Scan(prefix, func(k, _ []byte) error { keys[string(k)] = true; return nil })
	for k := range keys {
		if len(k) != len(prefix)+len(EmailName{}) || k[:len(prefix)] != prefix {
			continue
		}
		name := k[len(prefix):]
		if _, ok := m.holder(EmailName([]byte(name))); ok {
			directory = append(directory, name)
		}
	}
	return held, directory
}
