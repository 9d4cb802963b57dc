package resolver

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
func (a *account) usesByProperty(property, id string) []Use {
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
	for _, s := range a.segments {
		if inConditions(s.Root) {
			out = append(out, Use{UseSegment, s.ID, s.Name})
		}
	}
	return append(sortUses(out), a.flowsUsing(func(f *flows.Flow) bool {
		return f.Trigger.Event != nil && names(f.Trigger.Event.Where) ||
			slices.ContainsFunc(f.Steps, func(s flows.Step) bool { return s.Condition != nil && inConditions(s.Condition.Root) })
	})...)
}

// FlowUsedIn lists the segments and flows whose conditions or triggers name a flow; ok
// is false when there is none. They do not keep it from being deleted.
func (v *View) FlowUsedIn(id string) (list []Use, ok bool) {
	return v.a.usesByProperty(propertyFlow, id), v.a.flows.Has(id)
}

// CampaignUsedIn lists the segments and flows whose conditions or triggers name a
// campaign; ok is false when there is none. They do not keep it from being deleted.
func (v *View) CampaignUsedIn(id string) (list []Use, ok bool) {
	_, ok = v.a.campaigns.Campaign(id)
	return v.a.usesByProperty(propertyCampaign, id), ok
}
