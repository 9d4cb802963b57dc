package view

import (
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/sources"
)

// Company is the account's company.
func (v *View) Company() account.Company { return v.a.Company }

// Settings are the account's settings.
func (v *View) Settings() account.Settings { return v.a.Settings }

// CompanyState is a company as its administrator sees it.
type CompanyState struct {
	account.Company
	Account      uint64
	APIAccess    bool
	Active       bool
	EmailCredits int64
	CreatedMs    int64
	Users        int
	// SurfaceCPerMinute is the setting of this name.
	SurfaceCPerMinute int
}

// CompanyState is the state of the account's company.
func (v *View) CompanyState() CompanyState {
	a := v.a
	return CompanyState{
		Company: a.Company, Account: a.Number, APIAccess: a.APIAccess, Active: !a.Deactivated,
		EmailCredits: a.EmailCredits, CreatedMs: a.CreatedMs, Users: a.Access.CountUsers(),
		SurfaceCPerMinute: a.Settings.SurfaceCPerMinute,
	}
}

// Active reports whether the account lets anybody in.
func (v *View) Active() bool { return !v.a.Deactivated }

// Access is who may do what in the account. It must not be used when the view has ended.
func (v *View) Access() *access.State { return v.a.Access }

// Domains are those that e-mail is sent from, see [View.Access].
func (v *View) Domains() *domains.State { return v.a.Domains }

// Credentials are keys to other services, and theirs, see [View.Access].
func (v *View) Credentials() *credentials.State { return v.a.Credentials }

// Sources are the account's sources of events.
func (v *View) Sources() *sources.State { return v.a.Sources }

// Contacts are the account's contacts, with its lists.
func (v *View) Contacts() *contacts.State { return v.a.Contacts }

// Campaigns are the account's campaigns, with their runs, and its templates.
func (v *View) Campaigns() *campaigns.State { return v.a.Campaigns }

// EventTypes is the account's event catalog.
func (v *View) EventTypes() *eventtypes.State { return v.a.Types }

// Audit is the account's audit log.
func (v *View) Audit() *audit.State { return v.a.Audit }

// ChangerName returns the present name of a user or an API key, the e-mail of a user
// without a name, "" for one that was deleted.
func (v *View) ChangerName(by audit.Author) string {
	if by.Kind == audit.ByKey {
		return v.a.NameOf("api_key", by.ID)
	}
	if u, ok := v.a.Access.User(by.ID); ok && u.Name == "" {
		return u.Email
	}
	return v.a.NameOf("user", by.ID)
}

// Secret is a secret of the account that stays the same; keys of other kinds
// are derived from it.
func (v *View) Secret() []byte { return []byte(v.a.HashKey) }

// epoch is that of the lease that this node holds, 0 when embedded.
func (v *base) epoch() uint64 {
	if v.host == nil {
		return 0
	}
	return v.host.Epoch()
}

// Orders are the account's orders and their revenue.
func (v *View) Orders() *orders.State { return v.a.Orders }

// Forms are the account's signup forms.
func (v *View) Forms() *forms.State { return v.a.Forms }

// InApp are the in-app messages of the account's people, see [View.Access].
func (v *View) InApp() *inapp.State { return v.a.InApp }
