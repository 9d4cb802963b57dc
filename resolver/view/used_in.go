package view

import "github.com/musterhq/muster/resolver/internal/account"

// Use is something that refers to something else, which cannot be deleted meanwhile.
type Use = account.Use

// UseKinds are the kinds of a [Use].
func UseKinds() []string { return account.UseKinds() }

// Segment lists what refers to a segment; ok is false when there is none.
func (v UsedIn) Segment(id string) (list []Use, ok bool) {
	now, before := v.a.SegmentsUsing(id)
	return append(append(now, before...), v.a.UsesOfSegment(id)...), v.a.Segments[id] != nil
}

// List lists what refers to a list; ok is false when there is none.
func (v UsedIn) List(id string) (list []Use, ok bool) {
	return v.a.UsesOfList(id), v.a.Contacts.List(id) != nil
}

// Template lists what refers to a template; ok is false when there is none.
func (v UsedIn) Template(id string) (list []Use, ok bool) {
	list = v.a.UsesOfTemplate(id)
	if v.a.Settings.ConfirmTemplateID == id {
		list = append(list, account.SettingUse("confirm_template_id"))
	}
	_, ok = v.a.Campaigns.Template(id)
	return list, ok
}

// Domain lists the campaigns and flows that send from a domain; ok is false when
// there is none.
func (v UsedIn) Domain(name string) (list []Use, ok bool) {
	_, ok = v.a.Domains.Get(name)
	return v.a.UsesOfDomain(name), ok
}

// Flow lists the segments and flows whose conditions or triggers name a flow; ok
// is false when there is none. They do not keep it from being deleted.
func (v UsedIn) Flow(id string) (list []Use, ok bool) {
	return v.a.UsesOfFlow(id), v.a.Flows.Has(id)
}

// Campaign lists the segments and flows whose conditions or triggers name a
// campaign; ok is false when there is none. They do not keep it from being deleted.
func (v UsedIn) Campaign(id string) (list []Use, ok bool) {
	_, ok = v.a.Campaigns.Campaign(id)
	return v.a.UsesOfCampaign(id), ok
}
