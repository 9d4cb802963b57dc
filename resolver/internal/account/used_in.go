package account

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/campaigns"
)

// Use is something that refers to something else, which cannot be deleted meanwhile.
type Use struct {
	Kind string // segment, flow, campaign, form, or setting
	ID   string // of a setting its name
	Name string
}

// The kinds of a [Use].
const (
	useSegment  = "segment"
	useFlow     = "flow"
	useCampaign = "campaign"
	useForm     = "form"
	useSetting  = "setting"
)

// UseKinds are the kinds of a [Use].
func UseKinds() []string { return []string{useSegment, useFlow, useCampaign, useForm, useSetting} }

// SettingUse is the use by a setting.
func SettingUse(name string) Use { return Use{Kind: useSetting, ID: name, Name: name} }

// String names it as refusals do.
func (u Use) String() string {
	if u.Kind == useSetting {
		return "the setting " + u.ID
	}
	return u.Kind + ` "` + u.Name + `" (` + u.ID + ")"
}

// sortUses orders uses of one kind by name.
func sortUses(list []Use) []Use {
	slices.SortFunc(list, func(x, y Use) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID)) })
	return list
}

// JoinUses joins what refusals say of uses.
func JoinUses(list []Use) string {
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = u.String()
	}
	return strings.Join(names, ", ")
}

// flowsUsing lists the flows that refer to something.
func (a *State) flowsUsing(refers func(*flows.Flow) bool) []Use {
	var out []Use
	a.Flows.EachDefinition(func(id string, def *flows.Flow) {
		if refers(def) {
			out = append(out, Use{useFlow, id, def.Name})
		}
	})
	return sortUses(out)
}

// campaignsUsing lists the campaigns, not over yet, that have something in common. The
// present or last run of one is nil for none.
func (a *State) campaignsUsing(has func(*campaigns.Campaign, *campaigns.Run) bool) []Use {
	var out []Use
	for x, r := range a.Campaigns.Ongoing() {
		if has(x, r) {
			out = append(out, Use{useCampaign, x.ID, x.Name})
		}
	}
	return sortUses(out)
}

// AudiencesOf lists the campaigns, not over yet, that go to a list or segment.
func (a *State) AudiencesOf(id string) []Use {
	return a.campaignsUsing(func(c *campaigns.Campaign, r *campaigns.Run) bool {
		return slices.Contains(c.ListIDs, id) || slices.Contains(c.SegmentIDs, id) ||
			r != nil && (slices.Contains(r.ListIDs, id) || slices.Contains(r.SegmentIDs, id))
	})
}

// SegmentsUsing lists the segments that refer to a segment: by their definitions, and by
// those alone that are being replaced.
func (a *State) SegmentsUsing(id string) (now, before []Use) {
	for _, s := range a.Segments {
		switch u := (Use{useSegment, s.ID, s.Name}); {
		case slices.Contains(s.Root.SegmentIDs(), id):
			now = append(now, u)
		case slices.Contains(a.Engine.Users(id), s.ID):
			before = append(before, u)
		}
	}
	return sortUses(now), sortUses(before)
}

// UsesOfSegment lists what refers to a segment beside segments.
func (a *State) UsesOfSegment(id string) []Use {
	list := a.flowsUsing(func(f *flows.Flow) bool { return slices.Contains(f.References().Segments, id) })
	return append(list, a.AudiencesOf(id)...)
}

// UsesOfList lists what refers to a list.
func (a *State) UsesOfList(id string) []Use {
	var out []Use
	for _, s := range a.Segments {
		if slices.Contains(s.Root.ListIDs(), id) {
			out = append(out, Use{useSegment, s.ID, s.Name})
		}
	}
	out = append(sortUses(out), a.flowsUsing(func(f *flows.Flow) bool { return slices.Contains(f.References().Lists, id) })...)
	for _, f := range a.Forms.All() {
		if slices.Contains(f.Lists, id) {
			out = append(out, Use{useForm, f.ID, f.Name})
		}
	}
	return append(out, a.AudiencesOf(id)...)
}

// UsesOfTemplate lists the campaigns and flows that refer to a template.
func (a *State) UsesOfTemplate(id string) []Use {
	list := a.campaignsUsing(func(x *campaigns.Campaign, _ *campaigns.Run) bool { return x.TemplateID == id })
	return append(list, a.flowsUsing(func(f *flows.Flow) bool { return slices.Contains(f.References().Templates, id) })...)
}

// UsesOfDomain lists the campaigns and flows whose sender is on a domain. It does not
// keep the domain from being removed.
func (a *State) UsesOfDomain(name string) []Use {
	on := func(sender string) bool {
		i := strings.LastIndexByte(sender, '@')
		return i >= 0 && strings.EqualFold(sender[i+1:], name)
	}
	list := a.campaignsUsing(func(x *campaigns.Campaign, _ *campaigns.Run) bool { return on(x.Sender) })
	return append(list, a.flowsUsing(func(f *flows.Flow) bool {
		return slices.ContainsFunc(f.Steps, func(s flows.Step) bool { x := s.Email(); return x != nil && on(x.Sender) })
	})...)
}
