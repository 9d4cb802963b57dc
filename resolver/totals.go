package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/account"
)

// tally brings the totals up to date with an account.
func (m *Machine) tally(a *account.State) {
	now := a.Totals()
	if now == a.Tallied {
		return
	}
	m.totals.Add(a.Tallied, -1)
	m.totals.Add(now, 1)
	a.Tallied = now
}

// tallyAll brings the totals up to date with all accounts.
func (m *Machine) tallyAll() {
	for _, a := range m.byIndex {
		m.tally(a)
	}
}

// tallyRecord brings the totals up to date with what the record changed.
func (m *Machine) tallyRecord(env eventlog.Envelope) {
	if a := m.onlyChanged(env); a != nil {
		m.tally(a)
	} else {
		m.tallyAll()
	}
}

// onlyChanged is the one account that the record, which was just applied, may have changed;
// nil if there may be more of them. Ticks and continue records go through all accounts, and
// a command of the partition is of none.
func (m *Machine) onlyChanged(env eventlog.Envelope) *account.State {
	switch env.Kind {
	case eventlog.KindTick, eventlog.KindContinue:
		return nil
	case eventlog.KindCommand:
		if emaildir.Commands[m.tx.name] != nil {
			return nil
		}
	}
	return m.accounts[env.Account]
}
