package resolver

import (
	"github.com/musterhq/muster/resolver/internal/peek"
)

// What tests of other packages may see of a machine: see package peek.
func init() {
	peek.EmailNames = func(machine any) (held, directory []string) { return machine.(*Machine).emailNames() }
	peek.EnrolmentsPerRecord = func(machine any, n int) { machine.(*Machine).flows.Bounds.Enrolments = n }
}

// emailNames lists the names that accounts hold, and those that the directory has.
func (m *Machine) emailNames() (held, directory []string) {
	for n := range m.emailDirectory.Held() {
		held = append(held, string(n[:]))
	}
	holders, err := m.emailDirectory.Holders()
	if err != nil {
		panic(err)
	}
	for n := range holders {
		directory = append(directory, string(n[:]))
	}
	return held, directory
}
