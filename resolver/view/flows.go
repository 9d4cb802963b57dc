package view

import (
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// Flows are the account's flows.
func (v *View) Flows() *automation.State { return v.a.Flows }

// FlowTrial is [automation.State.Trial] of a profile's present document.
func (v *View) FlowTrial(f *automation.FlowState, ordinal uint32) (automation.Trial, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return automation.Trial{}, err
	}
	return v.a.Flows.Trial(f, ordinal, &d)
}
