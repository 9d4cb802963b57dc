package resolver

import (
	"errors"
	"slices"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/search"
)

// Freeze hands over what changed since the last checkpoint, for [Machine.WriteCheckpoint].
// It takes time in proportion to nothing but the numbers of accounts, pages and event
// types changed. The caller keeps Apply and readers out, has asked [Machine.Lagging], and
// calls [Machine.Thaw] before it freezes again.
func (m *Machine) Freeze() *checkpoint.Frozen {
	f := &checkpoint.Frozen{
		Chain: m.segmentFiles, WholeSegments: checkpoint.WholeSegments(m.segmentFiles),
		Manifest: checkpoint.Manifest{Version: checkpoint.ManifestVersion, ApplyVersion: ApplyVersion, Next: m.next, LogTime: m.logTime, NextTask: m.nextTask, ProfileIndex: search.IndexVersion, Reach: reach.Version, Rules: m.rules, Epoch: m.epochEntity()},
		Records:  m.records.List(),
		KeyRuns:  slices.Clone(m.idempotencyKeys.Runs),
		DropKeys: m.logTime,
		Scrub:    m.scrub,
	}
	m.scrub = nil
	for _, a := range m.byIndex {
		a.StoreSets(m.store)
		a.Features.Freeze()
		f.Accounts = append(f.Accounts, checkpoint.FrozenAccount{Number: a.Number, Identities: a.Profiles.Identifiers.Changed, Pages: a.Profiles.Headers.Freeze()})
		a.Profiles.Identifiers.Changed = nil
		f.Numbers = append(f.Numbers, a.Number)
		f.Engines = append(f.Engines, checkpoint.FrozenEngine{Account: a.Number, State: a.Engine.Freeze(f.WholeSegments)})
		f.DropKeys = min(f.DropKeys, a.KeysFromMs(m.logTime))
		m.tally(a)
	}
	f.Docs, f.Entities = m.store.Freeze()
	f.Index = m.store.FrozenIndex
	f.Keys = m.idempotencyKeys.Freeze()
	return f
}

// Thaw ends the checkpoint that began with [Machine.Freeze]: what was frozen is in files now, and is
// read from there. The caller keeps Apply and readers out.
func (m *Machine) Thaw(w checkpoint.Written) {
	m.store.Thaw()
	m.idempotencyKeys.SetRuns(w.Runs)
	m.segmentFiles = w.Segments
}

// WriteCheckpoint writes what [Machine.Freeze] has handed over, and commits the checkpoint.
// It runs beside Apply: it reads nothing of the machine but files. feed has the rows that
// history lacks, nil for none; throttle slows the writing down, nil does not. An error of a
// full disk leaves f as it is, to be written again.
func (m *Machine) WriteCheckpoint(c *checkpoint.Dir, f *checkpoint.Frozen, feed *feed.Feed, throttle *checkpoint.Throttle) (checkpoint.Written, error) {
	return c.Write(f, m.store.DB, feed, throttle)
}

// MoveOn writes a checkpoint of a machine that no node serves, which frees the memory
// of what changed, and prunes those before. feed has the rows that are not stored yet,
// nil for none.
func (m *Machine) MoveOn(c *checkpoint.Dir, feed *feed.Feed) error {
	f := m.Freeze()
	w, err := m.WriteCheckpoint(c, f, feed, nil)
	if err != nil {
		return err
	}
	m.Thaw(w)
	if err := errors.Join(c.DiscardRuns(f.KeyRuns, w.Runs), c.DiscardSegments(f.Chain, w.Segments)); err != nil {
		return err
	}
	_, err = c.Prune(-1)
	return err
}
