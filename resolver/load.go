package resolver

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/search"
	"github.com/musterhq/muster/segment/engine"
)

// LoadCheckpoint makes the live directories those of the checkpoint and reads the state.
// The store and the runs are the machine's to close.
func LoadCheckpoint(c *checkpoint.Dir, f checkpoint.Manifest, ids []eventlog.RecordID, cacheBytes int64, log *slog.Logger) (*Machine, error) {
	if err := c.Restore(f); err != nil {
		return nil, fmt.Errorf("restore checkpoint %d: %w", f.Next, err)
	}
	c.Took.End("link")
	s, err := state.OpenOn(c.Disk, c.FS, c.Path(checkpoint.DirLive), cacheBytes, state.NewPebbleLogger(log).Ending(c.Fatal), c.Damaged)
	if err != nil {
		return nil, err
	}
	if err := checkpoint.CheckOrigin(s, f, c.Path(checkpoint.DirLive)); err != nil {
		return nil, errors.Join(err, s.DB.Close())
	}
	var runs []*dedup.Run
	for _, name := range f.Runs {
		r, err := dedup.OpenRun(c.FS, c.Path(checkpoint.DirKeys, name), name)
		if err != nil {
			return nil, errors.Join(err, closeAll(s, runs))
		}
		runs = append(runs, r)
	}
	c.Took.End("store")
	// At once: taking a partition waits for it.
	segments := make(chan checkpoint.SegmentStates, 1)
	go func() { segments <- c.ReadSegments(f.Segments) }()
	loaded := s.Loading()
	m, err := loadMachine(s, f, ids, runs)
	loaded()
	c.Took.End("state")
	if read := <-segments; err == nil {
		err = m.adoptSegments(read)
	}
	c.Took.End("segments")
	if err != nil {
		return nil, errors.Join(err, closeAll(s, runs))
	}
	if f.Version != 0 && f.ProfileIndex != search.IndexVersion {
		if err := search.Build(s, c.Disk, m.hasAccount); err != nil {
			return nil, errors.Join(err, closeAll(s, runs))
		}
		c.Took.End("profile index")
	}
	if f.Version != 0 && f.Reach != reach.Version {
		if err := m.makeReach(); err != nil {
			return nil, errors.Join(err, closeAll(s, runs))
		}
		c.Took.End("reach")
	}
	return m, nil
}

// loadMachine reads the state a checkpoint restored.
func loadMachine(s *state.Store, f checkpoint.Manifest, ids []eventlog.RecordID, runs []*dedup.Run) (*Machine, error) {
	m := newMachine(s)
	m.next, m.logTime, m.nextTask, m.rules = f.Next, f.LogTime, f.NextTask, f.Rules
	if f.Epoch != nil {
		m.epoch = *f.Epoch
	}
	for _, id := range ids {
		m.records.Add(id)
	}
	m.idempotencyKeys.SetRuns(runs)
	for _, load := range []struct {
		table byte
		entry func(account uint64, rest, value []byte) error
	}{{state.TableEntity, m.loadEntity}, {state.TableHeader, m.loadPage}} {
		if err := s.Each(load.table, load.entry); err != nil {
			return nil, err
		}
	}
	if err := resolution.LoadIdentifiers(s, m.profiles); err != nil {
		return nil, err
	}
	if err := m.loadEnrolments(); err != nil {
		return nil, err
	}
	if err := m.emailDirectory.Open(); err != nil {
		return nil, err
	}
	for _, a := range m.byIndex {
		if err := a.CheckSets(); err != nil {
			return nil, err
		}
		if err := a.Features.Open(a.Profiles.Headers.Count); err != nil {
			return nil, err
		}
	}
	m.tallyAll()
	slices.SortFunc(m.tasks, func(a, b task) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return m, nil
}

func (m *Machine) loadEntity(number uint64, rest, value []byte) error {
	if len(rest) == 0 {
		return fmt.Errorf("entity without a kind")
	}
	kind, name := rest[0], string(rest[1:])
	if kind == state.EntityAccount {
		var e account.Entity
		if err := json.Unmarshal(value, &e); err != nil {
			return err
		}
		return m.addAccount(number).Install(e)
	}
	a := m.accounts[number]
	if a == nil {
		return fmt.Errorf("entity of an unknown account")
	}
	if known, err := a.Load(kind, name, value); known || err != nil {
		return err
	}
	var err error
	switch kind {
	case state.EntityReservation:
		return m.emailDirectory.LoadHeld(number, name, value)
	case state.EntityTask:
		var t task
		err = json.Unmarshal(value, &t)
		m.tasks = append(m.tasks, t)
	default:
		err = fmt.Errorf("%w: entity of kind %q", ErrNewer, kind)
	}
	return err
}

// makeReach makes the sets of reachable profiles of a state that was just loaded and has
// none, or those of another version.
func (m *Machine) makeReach() error {
	for _, a := range m.byIndex {
		a.Profiles.Reach.Clear()
	}
	return resolution.FillReach(m.store, m.profiles)
}

// profiles are those of an account, nil if there is none of that number.
func (m *Machine) profiles(number uint64) *resolution.State {
	if a := m.accounts[number]; a != nil {
		return a.Profiles
	}
	return nil
}

func (m *Machine) hasAccount(number uint64) bool { return m.accounts[number] != nil }

func (m *Machine) loadPage(number uint64, rest, value []byte) error {
	a := m.accounts[number]
	if a == nil || len(rest) != 4 {
		return fmt.Errorf("page of an unknown account")
	}
	return a.Profiles.LoadPage(binary.BigEndian.Uint32(rest), value)
}

// loadEnrolments reads the enrolments of flows. Profiles have been read.
func (m *Machine) loadEnrolments() error {
	err := m.flows.LoadEnrolments(func(number uint64) *automation.State {
		if a := m.accounts[number]; a != nil {
			return a.Flows
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range m.byIndex {
		a.Flows.Open()
		m.updateBacklog(a)
	}
	return nil
}

func closeAll(s *state.Store, runs []*dedup.Run) error {
	var err error
	for _, r := range runs {
		err = errors.Join(err, r.Close())
	}
	return errors.Join(err, s.Close())
}

// adoptSegments restores the engines of accounts that are loaded.
func (m *Machine) adoptSegments(s checkpoint.SegmentStates) error {
	if s.Err != nil {
		return s.Err
	}
	for _, a := range m.byIndex {
		r := s.Of[a.Number]
		if r == nil {
			r = engine.NewRestorer()
		}
		e, err := r.Engine(a.Profiles.Universe())
		if err != nil {
			return fmt.Errorf("account %016x: segments: %w", a.Number, err)
		}
		a.Engine = e
		m.shareWindows(a)
		m.updateBacklog(a)
	}
	m.segmentFiles = s.Chain
	return nil
}
