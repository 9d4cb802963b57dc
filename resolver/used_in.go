package resolver

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
	UseSegment  = "segment"
	UseFlow     = "flow"
	UseCampaign = "campaign"
	UseForm     = "form"
	UseSetting  = "setting"
)

// String names it as refusals do.
func (u Use) String() string {
	if u.Kind == UseSetting {
		return "the setting " + u.ID
	}
	return u.Kind + ` "` + u.Name + `" (` + u.ID + ")"
}

// sortUses orders uses of one kind by name.
func sortUses(list []Use) []Use {
	slices.SortFunc(list, func(x, y Use) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID)) })
	return list
}

// users joins what refusals say of uses.
func users(list []Use) string {
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = u.String()
	}
	return strings.Join(names, ", ")
}

// flowsUsing lists the flows that refer to something.
func (a *account) flowsUsing(refers func(*flows.Flow) bool) []Use {
	var out []Use
	a.flows.EachDefinition(func(id string, def *flows.Flow) {
		if refers(def) {
			out = append(out, Use{UseFlow, id, def.Name})
		}
	})
	return sortUses(out)
}

// campaignsUsing lists the campaigns, not over yet, that have something in common. The
// present or last run of one is nil for none.
func (a *account) campaignsUsing(has func(*campaigns.Campaign, *campaigns.Run) bool) []Use {
	var out []Use
	for x, r := range a.campaigns.Ongoing() {
		if has(x, r) {
			out = append(out, Use{UseCampaign, x.ID, x.Name})
		}
	}
	return sortUses(out)
}

// audiencesOf lists the campaigns, not over yet, that go to a list or segment.
func (a *account) audiencesOf(id string) []Use {
	return a.campaignsUsing(func(c *campaigns.Campaign, r *campaigns.Run) bool {
		return slices.Contains(c.ListIDs, id) || slices.Contains(c.SegmentIDs, id) ||
			r != nil && (slices.Contains(r.ListIDs, id) || slices.Contains(r.SegmentIDs, id))
	})
}

// segmentsUsing lists the segments that refer to a segment: by their definitions, and by
// those alone that are being replaced.
func (a *account) segmentsUsing(id string) (now, before []Use) {
	for _, s := range a.segments {
		switch u := (Use{UseSegment, s.ID, s.Name}); {
		case slices.Contains(s.Root.SegmentIDs(), id):
			now = append(now, u)
		case slices.Contains(a.engine.Users(id), s.ID):
			before = append(before, u)
		}
	}
	return sortUses(now), sortUses(before)
}

// usesOfSegment lists what refers to a segment beside segments.
func (a *account) usesOfSegment(id string) []Use {
	list := a.flowsUsing(func(f *flows.Flow) bool { return slices.Contains(f.References().Segments, id) })
	return append(list, a.audiencesOf(id)...)
}

// usesOfList lists what refers to a list.
func (a *account) usesOfList(id string) []Use {
	var out []Use
	for _, s := range a.segments {
		if slices.Contains(s.Root.ListIDs(), id) {
			out = append(out, Use{UseSegment, s.ID, s.Name})
		}
	}
	out = append(sortUses(out), a.flowsUsing(func(f *flows.Flow) bool { return slices.Contains(f.References().Lists, id) })...)
	for _, f := range a.forms.All() {
		if slices.Contains(f.Lists, id) {
			out = append(out, Use{UseForm, f.ID, f.Name})
		}
	}
	return append(out, a.audiencesOf(id)...)
}

// usesOfTemplate lists the campaigns and flows that refer to a template.
func (a *account) usesOfTemplate(id string) []Use {
	list := a.campaignsUsing(func(x *campaigns.Campaign, _ *campaigns.Run) bool { return x.TemplateID == id })
	return append(list, a.flowsUsing(func(f *flows.Flow) bool { return slices.Contains(f.References().Templates, id) })...)
}

// usesOfDomain lists the campaigns and flows whose sender is on a domain. It does not
// keep the domain from being removed.
func (a *account) usesOfDomain(name string) []Use {
	on := func(sender string) bool {
		i := strings.LastIndexByte(sender, '@')
		return i >= 0 && strings.EqualFold(sender[i+1:], name)
	}
	list := a.campaignsUsing(func(x *campaigns.Campaign, _ *campaigns.Run) bool { return on(x.Sender) })
	return append(list, a.flowsUsing(func(f *flows.Flow) bool {
		return slices.ContainsFunc(f.Steps, func(s flows.Step) bool { x := s.Email(); return x != nil && on(x.Sender) })
	})...)
}

// SegmentUsedIn lists what refers to a segment; ok is false when there is none.
func (v *View) SegmentUsedIn(id string) (list []Use, ok bool) {
	now, before := v.a.segmentsUsing(id)
	return append(append(now, before...), v.a.usesOfSegment(id)...), v.a.segments[id] != nil
}

// ListUsedIn lists what refers to a list; ok is false when there is none.
func (v *View) ListUsedIn(id string) (list []Use, ok bool) {
	return v.a.usesOfList(id), v.a.contacts.List(id) != nil
}

// TemplateUsedIn lists what refers to a template; ok is false when there is none.
func (v *View) TemplateUsedIn(id string) (list []Use, ok bool) {
	list = v.a.usesOfTemplate(id)
	if v.a.Settings.ConfirmTemplateID == id {
		list = append(list, Use{Kind: UseSetting, ID: "confirm_template_id", Name: "confirm_template_id"})
	}
	_, ok = v.a.campaigns.Template(id)
	return list, ok
}

// DomainUsedIn lists the campaigns and flows that send from a domain; ok is false when
// there is none.
func (v *View) DomainUsedIn(name string) (list []Use, ok bool) {
	_, ok = v.a.domains.Get(name)
	return v.a.usesOfDomain(name), ok
}
