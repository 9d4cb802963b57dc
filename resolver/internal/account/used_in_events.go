package account

import (
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/segment"
)

// The service's own events name flows and campaigns in these properties, and conditions
// on such events may name them, too.
const (
	propertyFlow     = "flow_id"
	propertyCampaign = "campaign_id"
)

// usesByProperty lists the segments and flows with a condition on events, or a trigger,
// that compares a property with an id.
func (a *State) usesByProperty(property, id string) []Use {
	names := func(where []segment.Predicate) bool {
		return slices.ContainsFunc(where, func(p segment.Predicate) bool {
			return len(p.Path) == 1 && p.Path[0] == property &&
				slices.ContainsFunc(p.Values, func(v segment.Value) bool { return v.Kind == segment.ValueString && v.Str == id })
		})
	}
	inConditions := func(root *segment.Node) bool {
		return root != nil && slices.ContainsFunc(root.Activities(), func(x *segment.Activity) bool { return names(x.Where) })
	}
	var out []Use
	for _, s := range a.Segments {
		if inConditions(s.Root) {
			out = append(out, Use{useSegment, s.ID, s.Name})
		}
	}
	return append(sortUses(out), a.flowsUsing(func(f *flows.Flow) bool {
		return f.Trigger.Event != nil && names(f.Trigger.Event.Where) ||
			slices.ContainsFunc(f.Steps, func(s flows.Step) bool { return s.Condition != nil && inConditions(s.Condition.Root) })
	})...)
}

// UsesOfFlow lists the segments and flows whose conditions or triggers name a flow.
func (a *State) UsesOfFlow(id string) []Use { return a.usesByProperty(propertyFlow, id) }

// UsesOfCampaign lists the segments and flows whose conditions or triggers name a campaign.
func (a *State) UsesOfCampaign(id string) []Use { return a.usesByProperty(propertyCampaign, id) }
