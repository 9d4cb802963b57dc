package resolver

import "github.com/musterhq/muster/resolver/campaigns"

// campaignHost is what campaigns see of their account, see [campaigns.Host].
type campaignHost struct {
	m *Machine
	a *account
}

// TemplateUsers names the campaigns and flows that refer to a template.
func (h campaignHost) TemplateUsers(id string) string { return users(h.a.usesOfTemplate(id)) }

// ConfirmTemplate is the template of the account's settings.
func (h campaignHost) ConfirmTemplate() string { return h.a.Settings.ConfirmTemplateID }

func (a *account) hasTemplate(id string) bool {
	_, ok := a.sending.Template(id)
	return ok
}

// Sending is the account's templates.
func (v *View) Sending() *campaigns.State { return v.a.sending }
