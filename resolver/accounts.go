package resolver

import (
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/consentlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/resolver/signup"
)

func (m *Machine) addAccount(number uint64) *account.State {
	a := account.New(number, uint32(len(m.byIndex)))
	a.Conversations = conversations.New(a.Erasure.Erased)
	a.Outbox = outbox.New(number, m.outboxes, func() map[string]uint64 { return hookCounts(a) })
	a.Types = eventtypes.New(number, m.store, &m.looker, map[string]feature.Listener{conversations.Received: a.Conversations}, a.HasErased)
	a.Profiles = resolution.New(a.Name(), m.resolution, a.Sets, resolutionHost{m, a})
	a.Flows = automation.New(number, m.flows, flowPort{m, a})
	a.Contacts = contacts.New(number, m.store, a.Sets, &a.Profiles.Identifiers, func() identifier.Hasher { return a.Profiles.Hasher }, contactHost{m, a})
	a.ConsentLog = consentlog.New(number, m.store, a.Sets)
	a.Forms = forms.New(number, m.store, formHost{m, a})
	a.Pacing = pacing.New(number, m.store, a.Sets)
	a.Orders = orders.New(number, m.store, a.Sets, orderHost{m, a})
	a.InApp = inapp.New(number, m.inApp, a.Sets, inAppHost{m, a})
	a.Campaigns = campaigns.New(number, m.campaigns, campaignHost{m, a})
	a.Audit = audit.New(number, m.store)
	a.Sending = sending.New(number, a.Profiles, a.Outbox, a.Campaigns, a.Domains, &m.idempotencyKeys, sendingHost{m, a})
	a.Signup = signup.New(signup.Parts{Profiles: a.Profiles, Forms: a.Forms, Contacts: a.Contacts, Sending: a.Sending, Erasure: a.Erasure, Keys: &m.idempotencyKeys}, formHost{m, a})
	a.Register()
	m.shareWindows(a)
	m.accounts[number] = a
	m.byIndex = append(m.byIndex, a)
	return a
}

// hookCounts counts the account's events of the types that webhooks can subscribe to,
// without types that have none.
func hookCounts(a *account.State) map[string]uint64 {
	counts := map[string]uint64{}
	for typ := range hookNames {
		if t := a.Types.Get(typ); t != nil && t.Count > 0 {
			counts[typ] = t.Count
		}
	}
	return counts
}
