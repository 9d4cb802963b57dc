package resolver

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
)

// saveAccount stores the account's entity and has requests told of it.
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

// spendCredits takes n e-mail credits; it takes none when there are not enough.
func (m *Machine) spendCredits(a *account.State, n int64) bool {
	if n < 0 || a.EmailCredits < n {
		return false
	}
	a.EmailCredits -= n
	m.store.PutEntity(state.EntityKey(a.Number, state.EntityAccount, ""), must.JSON(a.Entity))
	if a.EmailCredits == 0 {
		a.Flows.PauseForCredits()
	}
	return true
}

// giveBack returns the credit of a message that no relay has taken: a credit is
// for a message that went out, or may have.
func (m *Machine) giveBack(a *account.State, medium string, n uint64) {
	if medium == "email" && n > 0 {
		a.EmailCredits += int64(n)
		m.saveNumbers(a)
	}
}
