package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// totals are sums over accounts that are asked for after every record. They are kept, not
// counted anew: a record costs the same however many accounts there are.
type totals struct {
	profiles, identities int64
	waiting              int64 // events that wait for their people to be enrolled
	erased               int64 // erasures that are remembered
	unsaved              int64 // bytes, about, that changed since the last freeze
}

func (t *totals) add(x totals, sign int64) {
	t.profiles += sign * x.profiles
	t.identities += sign * x.identities
	t.waiting += sign * x.waiting
	t.erased += sign * x.erased
	t.unsaved += sign * x.unsaved
}

// totals counts an account.
func (a *account) totals() totals {
	return totals{
		profiles:   int64(a.profiles.Headers.Count),
		identities: int64(a.profiles.Identifiers.Size()),
		waiting:    int64(a.flows.Deferred()),
		erased:     int64(a.erasure.Marks()),
		// Of a page of headers little has changed, and its copy is short-lived.
		unsaved: int64(len(a.profiles.Identifiers.Changed))*20 + int64(a.profiles.Headers.ChangedPages())*profile.PageRows*profile.HeaderSize/8,
	}
}

// tally brings the totals up to date with an account.
func (m *Machine) tally(a *account) {
	now := a.totals()
	if now == a.tallied {
		return
	}
	m.totals.add(a.tallied, -1)
	m.totals.add(now, 1)
	a.tallied = now
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
func (m *Machine) onlyChanged(env eventlog.Envelope) *account {
	switch env.Kind {
	case eventlog.KindTick, eventlog.KindContinue:
		return nil
	case eventlog.KindCommand:
		if emaildir.Commands[m.rec.name] != nil {
			return nil
		}
	}
	return m.accounts[env.Account]
}
