package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment/engine"
)

// View is a view of an account, nil when there is none of that number. The host is
// nil for a machine that no node serves.
func (m *Machine) View(host view.Host, account uint64) *View {
	a := m.accounts[account]
	if a == nil {
		return nil
	}
	return view.New(host, m.store, a, m.next, m.logTime)
}

// PublishAll publishes the segments of all accounts; there are no readers yet, or the machine
// is held still.
func (m *Machine) PublishAll(p *view.Published) { p.All(m.byIndex, m.logTime) }

// PublishRecord publishes what the record, which was just applied, changed of segments. The
// machine is held still.
func (m *Machine) PublishRecord(p *view.Published, env eventlog.Envelope) {
	var saved uint64
	if env.Kind == eventlog.KindCommand {
		saved = env.Account
	}
	if a := m.onlyChanged(env); a != nil {
		p.Record([]*account.State{a}, saved, m.logTime)
	} else {
		p.Record(m.byIndex, saved, m.logTime)
	}
}

// Close closes the machine's files.
func (m *Machine) Close() error { return closeAll(m.store, m.idempotencyKeys.Runs) }

// Next is the offset of the record that is to be applied next.
func (m *Machine) Next() int64 { return m.next }

// LastEpoch is the newest epoch that the log has begun; its number is 0 when there is none.
func (m *Machine) LastEpoch() Epoch { return m.epoch }

// Signals are effects of a record that goroutines outside the machine wait for.
type Signals struct {
	// Accounts: an account, its secret or a setting that requests need has changed.
	Accounts bool
	// Outbox: items have been queued.
	Outbox bool
	// Campaigns: a run has started or stopped, or a campaign has become due.
	Campaigns bool
	// InApp: an inbox has changed.
	InApp bool
	// Pending: a task is left, which a continue record works on.
	Pending bool
}

// TakeSignals returns what came since the last call.
func (m *Machine) TakeSignals() Signals {
	s := Signals{Accounts: m.accountsChanged, Outbox: m.outboxes.Due, Campaigns: m.campaigns.Changed, InApp: m.inApp.Changed, Pending: m.Pending() > 0}
	m.accountsChanged, m.outboxes.Due, m.campaigns.Changed, m.inApp.Changed = false, false, false, false
	return s
}

// MachineStats are the numbers of a machine, for metrics and bounds.
type MachineStats struct {
	// Profiles counts profiles ever made, merged ones among them; Identities
	// the identifiers; IdempotencyKeys the keys held.
	Profiles, Identities, IdempotencyKeys int64
	// FlowsWaiting counts events that found no room in their record for those they
	// enrol in flows, and wait.
	FlowsWaiting int64
	// EmailsReserved counts reservations of e-mails that are neither confirmed nor
	// released, of at most 100,000; EmailsToRelease names of e-mails that the
	// directory does not know as released yet, of at most 200,000. Both are 0 in a
	// log of one partition.
	EmailsReserved, EmailsToRelease int64
	// Erased counts identifiers that are kept out because their people were erased.
	Erased int64
	Counters
}

// Stats returns the machine's numbers.
func (m *Machine) Stats() MachineStats {
	counters := m.counters
	counters.WebhooksDropped = m.outboxes.Dropped
	counters.ProfilesCreated, counters.Merges, counters.Conflicts = m.resolution.Created, m.resolution.Merges, m.resolution.Conflicts
	counters.Enrolments, counters.FlowLoops = m.flows.Enrolments, m.flows.Loops
	return MachineStats{
		Profiles: m.totals.Profiles, Identities: m.totals.Identities, IdempotencyKeys: m.idempotencyKeys.Size(),
		FlowsWaiting: m.totals.Waiting, Erased: m.totals.Erased,
		EmailsReserved: int64(m.emailDirectory.Unconfirmed()), EmailsToRelease: int64(m.emailDirectory.Unreleased()),
		Counters: counters,
	}
}

// GenerationBytes estimates the memory of what changed since the last freeze.
func (m *Machine) GenerationBytes() int64 {
	return m.store.CurrentBytes + int64(m.idempotencyKeys.Unsaved())*48 + m.totals.Unsaved
}

// Apps are the accounts as requests need them, by number.
func (m *Machine) Apps() map[uint64]App {
	apps := make(map[uint64]App, len(m.byIndex))
	for _, a := range m.byIndex {
		apps[a.Number] = App{Account: a.Number, SecretHash: a.SecretSum, Active: !a.Deactivated, IgnoreUnknownFields: a.Settings.IgnoreUnknownFields}
	}
	return apps
}

// OutboxAccounts lists the accounts that have items due at nowMs, and how many items
// wait in all.
func (m *Machine) OutboxAccounts(nowMs int64) (due []uint64, waiting int) {
	for _, a := range m.byIndex {
		waiting += a.Outbox.Len()
		if a.Outbox.Ready(nowMs) {
			due = append(due, a.Number)
		}
	}
	return due, waiting
}

// AccountsSending lists the accounts that have campaigns whose run continues. It looks at
// all runs.
func (m *Machine) AccountsSending() (list []uint64) {
	for _, a := range m.byIndex {
		if a.Campaigns.Sends() {
			list = append(list, a.Number)
		}
	}
	return list
}

// AccountsWithDueCampaigns lists the accounts that have campaigns whose time has come.
func (m *Machine) AccountsWithDueCampaigns() (list []uint64) {
	for _, a := range m.byIndex {
		if a.Campaigns.HasDue() {
			list = append(list, a.Number)
		}
	}
	return list
}

// ErasuresPending is how many erasures are not out of all files.
func (m *Machine) ErasuresPending() (n int) {
	for _, a := range m.byIndex {
		n += a.Erasure.Pending()
	}
	return n
}

// Enrolled reports whether those are enrolled whom a record of the account has put
// into the queue.
func (m *Machine) Enrolled(account uint64, out *Outcome) bool {
	return m.accounts[account].Flows.Passed(out.enrolments)
}

// BuildWork finds an account whose segment engine needs something from outside, the
// one served last after all others. States that rest are passed over.
func (m *Machine) BuildWork(last uint64, resting func(account uint64, state uint32) bool) (account uint64, w engine.Work, ok bool) {
	start := 0
	if a := m.accounts[last]; a != nil {
		start = int(a.Index) + 1
	}
	for i := range m.byIndex {
		a := m.byIndex[(start+i)%len(m.byIndex)]
		if w, ok := a.Engine.Work(func(state uint32) bool { return resting(a.Number, state) }); ok {
			return a.Number, w, true
		}
	}
	return 0, w, false
}

// Profile is the id of an ordinal of an account; current is false when it has become part
// of another.
func (m *Machine) Profile(account uint64, ordinal uint32) (id ProfileID, current bool) {
	a := m.accounts[account]
	return a.Profiles.Headers.Get(ordinal).ID, a.Profiles.Root(ordinal) == ordinal
}

// KeyAccess finds the key of an account by the SHA-256 of its text. ok is false
// when there is none that holds: no such account or key, one that was revoked,
// an account that is deactivated or whose API access is off. All of these take
// the same steps.
func (m *Machine) KeyAccess(account uint64, hash [32]byte) (access KeyAccess, ok bool) {
	a, knownAccount := m.accounts[account]
	if !knownAccount {
		a = decoyAccount
	}
	k, permissions, holds := a.Access.Holds(hash)
	for _, also := range [...]bool{knownAccount, !a.Deactivated, a.APIAccess} {
		if !also {
			holds = false
		}
	}
	if !holds {
		return access, false
	}
	return KeyAccess{Account: account, KeyID: k.ID, SurfaceCPerMinute: a.Settings.SurfaceCPerMinute, Permissions: permissions}, true
}
