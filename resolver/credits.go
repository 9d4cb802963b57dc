package resolver

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
)

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
