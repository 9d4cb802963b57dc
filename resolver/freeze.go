package resolver

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"errors"
	"slices"

	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/state"
)

// freeze hands over what changed since the last checkpoint. It takes time in
// proportion to nothing but the numbers of accounts, pages and event types
// changed.
func (m *Machine) freeze() *checkpoint.Frozen {
	f := &checkpoint.Frozen{
		Chain: m.segmentFiles, WholeSegments: checkpoint.WholeSegments(m.segmentFiles),
		Manifest: checkpoint.Manifest{Version: checkpoint.ManifestVersion, ApplyVersion: ApplyVersion, Next: m.next, LogTime: m.logTime, NextTask: m.nextTask, ProfileIndex: profileIndexVersion, Reach: reachVersion, Epoch: m.epochEntity()},
		Records:  m.records.list(),
		KeyRuns:  slices.Clone(m.keys.Runs),
		DropKeys: m.logTime,
		Scrub:    m.scrub,
	}
	m.scrub = nil
	for _, a := range m.byIndex {
		for _, t := range a.dirty {
			m.store.PutEntity(state.EntityKey(a.number, state.EntityType, t.Key), must.JSON(t))
			t.dirty = false
		}
		a.dirty = a.dirty[:0]
		m.storeLooked(a)
		m.storeSets(a)
		m.storeRuns(a)
		m.storeEndpoints(a)
		m.storeFlows(a)
		f.Accounts = append(f.Accounts, checkpoint.FrozenAccount{Number: a.number, Identities: a.ids.Changed, Pages: a.headers.Freeze()})
		a.ids.Changed = nil
		f.Numbers = append(f.Numbers, a.number)
		f.Engines = append(f.Engines, checkpoint.FrozenEngine{Account: a.number, State: a.engine.Freeze(f.WholeSegments)})
		f.DropKeys = min(f.DropKeys, a.keysFromMs(m.logTime))
		m.tally(a)
	}
	f.Docs, f.Entities = m.store.Freeze()
	f.Index = m.store.FrozenIndex
	f.Keys = m.keys.Freeze()
	return f
}

// thaw ends the checkpoint that began with freeze.
func (m *Machine) thaw(w checkpoint.Written) {
	m.store.Thaw()
	m.keys.SetRuns(w.Runs)
	m.segmentFiles = w.Segments
}

// moveOn writes a checkpoint of a machine that serves no requests, which frees the memory of
// what changed, and prunes those before. feed has the rows that are not stored yet, nil
// for none.
func moveOn(c *checkpoint.Dir, m *Machine, feed *feed.Feed) error {
	f := m.freeze()
	w, err := c.Write(f, m.store.DB, feed, nil)
	if err != nil {
		return err
	}
	m.thaw(w)
	if err := errors.Join(c.DiscardRuns(f.KeyRuns, w.Runs), c.DiscardSegments(f.Chain, w.Segments)); err != nil {
		return err
	}
	_, err = c.Prune(-1)
	return err
}
