package node

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/sources"
	"github.com/musterhq/muster/resolver/view"
)

// published is what requests read of a partition without waiting for the record that is
// being applied. Segments and stats are written while the machine's lock is held.
type published struct {
	segments  view.Published
	apps      atomic.Pointer[map[uint64]resolver.App]
	writeKeys atomic.Pointer[map[[32]byte]sources.Access] // by the SHA-256 of their text
	stats     atomic.Pointer[resolver.MachineStats]       // after the newest record
}

// reset publishes that there is nothing.
func (p *published) reset() {
	p.setApps(nil, nil)
	p.setStats(resolver.MachineStats{})
}

// setApps publishes accounts and write keys. They are not changed afterwards.
func (p *published) setApps(apps map[uint64]resolver.App, keys map[[32]byte]sources.Access) {
	p.apps.Store(&apps)
	p.writeKeys.Store(&keys)
}

// setStats publishes the machine's numbers.
func (p *published) setStats(s resolver.MachineStats) { p.stats.Store(&s) }

// app finds an account by its number.
func (p *published) app(account uint64) (resolver.App, bool) {
	a, ok := (*p.apps.Load())[account]
	return a, ok
}

// accounts lists the numbers of the accounts.
func (p *published) accounts() []uint64 { return slices.Collect(maps.Keys(*p.apps.Load())) }

// writeKey finds the source of an account's write key by the SHA-256 of the key.
func (p *published) writeKey(account uint64, hash [32]byte) (sources.Access, bool) {
	s, ok := (*p.writeKeys.Load())[hash]
	return s, ok && s.Account == account
}
