package resolver

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
)

// saveAccount stores the account's entity and has the requests that read it see the
// change.
func (m *Machine) saveAccount(a *account.State) {
	m.accountsChanged = true
	m.saveNumbers(a)
}

// saveNumbers is saveAccount where only numbers have changed: of what is made next, or of
// credits.
func (m *Machine) saveNumbers(a *account.State) {
	m.store.PutEntity(state.EntityKey(a.Number, state.EntityAccount, ""), must.JSON(a.Entity))
}

// beginCatalog lets an account have a catalog that had none, because its records were
// made under older rules.
func (m *Machine) beginCatalog(a *account.State) {
	if !a.HasCatalog {
		a.HasCatalog = true
		a.Types.SetSketches(true)
		m.saveAccount(a)
	}
}

// beginConsentLog begins the log of consents of an account that was made before there was one.
func (m *Machine) beginConsentLog(a *account.State) {
	if !a.HasConsentLog {
		a.HasConsentLog = true
		m.saveNumbers(a)
	}
}

// beginOrders has clicks and opens noted of an account that was made before there were orders.
func (m *Machine) beginOrders(a *account.State) {
	if !a.HasOrders {
		a.HasOrders = true
		m.saveNumbers(a)
	}
}
