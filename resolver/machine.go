package resolver

import (
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/consentlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/sending"

	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/resolver/search"
	"github.com/musterhq/muster/segment"
)

// ApplyVersion is the version of the state machine's rules. It is part of the
// state: a build refuses a state made under newer rules.
const ApplyVersion = state.ApplyVersion

// applyVersionCatalog is the first version by which accounts have a catalog of properties
// and attributes from the beginning.
const applyVersionCatalog = 9

// rulesCatalog is the version of the rules of events from which on an account has a
// catalog of properties.
const rulesCatalog = 2

// beginCatalog lets an account have a catalog that had none, because its records were
// made under older rules.
func (m *Machine) beginCatalog(a *account.State) {
	if !a.HasCatalog {
		a.HasCatalog = true
		a.Types.SetSketches(true)
		m.saveAccount(a)
	}
}

// applyVersionConsentLog is the first version by which accounts have a log of consents from
// the beginning.
const applyVersionConsentLog = 16

// The state machine's bounds. They are part of the rules: changing one changes
// what Apply does and needs a new ApplyVersion.
const (
	maxSegments     = 10_000
	maxImports      = 50_000  // files remembered per account
	recordWindow    = 1 << 18 // record ids remembered against repeats
	continueWork    = 64      // values a continue record works off
	maxPendingTasks = 1000
	// ownRows is where the numbers of rows begin that flows add to a record of events.
	ownRows = 1 << 24
)

// Machine is the state of one partition. Apply is called by one goroutine;
// reads go through a [View].
type Machine struct {
	store *state.Store

	next     int64 // offset of the next record
	logTime  int64 // Unix ms, the largest stamp so far
	accounts map[uint64]*account.State
	byIndex  []*account.State
	totals   account.Totals  // over all accounts, see tally
	index    *search.Index   // of profiles
	emails   *emaildir.State // of contacts, over all accounts
	keys     dedup.Keys
	records  recordRing
	epoch    Epoch // the newest, see epoch.go
	counters Counters
	backlog
	sinceCheckpoint

	// accountsChanged means that what requests know of accounts without a read
	// (App) may have changed.
	accountsChanged bool

	shared
	rec     command // the record being applied
	scratch scratch
	normal  []byte // scratch: the normal form of an identifier
}

// backlog is work that is too large for one record.
type backlog struct {
	tasks    []task
	nextTask uint64
	busy     map[uint64]*account.State // whose segment engine has work left
}

// sinceCheckpoint is what the next checkpoint needs to know of the one before and of what
// came since, beside what changed.
type sinceCheckpoint struct {
	scrub []checkpoint.Scrubbed
	// segmentFiles hold the engines' state as of the last checkpoint.
	segmentFiles []checkpoint.SegmentFile
}

// shared is what parts of the accounts share with the same parts of the others.
type shared struct {
	resolution *resolution.Shared
	outboxes   *outbox.Shared
	campaigns  *campaigns.Shared
	flows      *automation.Runner
	looker     catalog.Looker
}

// scratch is memory that Apply uses again for each record.
type scratch struct {
	other   profile.Document
	sentKey []byte
	facts   segment.Facts
	touched byte // keeps what readWindow reads from being optimized away
}

// Counters count what Apply did since the process started.
type Counters struct {
	Records, Events, Duplicates, Refused, ProfilesCreated, Merges, Conflicts, Transitions, Chunks uint64
	Enrolments, FlowLoops                                                                         uint64
	// WebhooksDropped are events for which an endpoint had no room.
	WebhooksDropped uint64
}

func newMachine(s *state.Store) *Machine {
	m := &Machine{
		store:    s,
		accounts: map[uint64]*account.State{},
		index:    search.NewIndex(s),
		keys:     dedup.NewKeys(),
		backlog:  backlog{busy: map[uint64]*account.State{}},
		emails:   emaildir.New(s),
		records:  newRecordRing(recordWindow),
	}
	m.shared = shared{
		resolution: resolution.NewShared(s, m.index), outboxes: outbox.NewShared(s),
		campaigns: campaigns.NewShared(s), flows: automation.NewRunner(s),
	}
	return m
}

func (m *Machine) addAccount(number uint64) *account.State {
	a := account.New(number, uint32(len(m.byIndex)))
	a.Outbox = outbox.New(number, m.outboxes, func() map[string]uint64 { return hookCounts(a) })
	a.Types = eventtypes.New(number, m.store, &m.looker, map[string]feature.Listener{conversations.Received: a.Conversations}, a.HasErased)
	a.Profiles = resolution.New(a.Name(), m.resolution, a.Sets, resolutionHost{m, a})
	a.Flows = automation.New(number, m.flows, flowPort{m, a})
	a.Contacts = contacts.New(number, m.store, a.Sets, &a.Profiles.Identifiers, func() identifier.Hasher { return a.Profiles.Hasher }, contactHost{m, a})
	a.ConsentLog = consentlog.New(number, m.store, a.Sets)
	a.Forms = forms.New(number, m.store, formHost{m, a})
	a.Pacing = pacing.New(number, m.store, a.Sets)
	a.Campaigns = campaigns.New(number, m.campaigns, campaignHost{m, a})
	a.Audit = audit.New(number, m.store)
	a.Sending = sending.New(number, a.Profiles, a.Outbox, a.Campaigns, a.Domains, &m.keys, sendingHost{m, a})
	m.accounts[number] = a
	m.byIndex = append(m.byIndex, a)
	return a
}

// Apply applies the record at the offset. Rows for history are appended to
// rows, the answer is written to out. An error is fatal: the record could not
// be understood or the store failed, and nothing may be applied after it.
func (m *Machine) Apply(offset int64, data []byte, rows *query.Batch, out *Outcome) error {
	if offset != m.next {
		return fmt.Errorf("record %d does not follow record %d", offset, m.next-1)
	}
	env, body, err := eventlog.DecodeEnvelope(data)
	if err != nil {
		return err
	}
	out.Reset(offset)
	m.next++
	m.logTime = max(m.logTime, env.StampMs)
	m.counters.Records++
	if !m.records.add(env.ID) {
		out.Refusal = &Refusal{Code: "conflict", Message: "this record was applied before"}
		return nil
	}
	a := m.accounts[env.Account]
	m.begin(command{account: a, env: env, rows: rows, out: out})
	if a != nil {
		// What falls due comes before what happens now.
		m.advance(dueBudget)
		a.Outbox.EndDay(m.tx(a))
		a.Campaigns.Advance(m.tx(a))
	}
	if err := m.applyKind(env, body, rows, out); err != nil {
		return err
	}
	if a != nil {
		m.react()
		a.Flows.FinishPublishing()
		m.updateBacklog(a)
		a.Erasure.EndRecord(m.tx(a))
	}
	m.tallyRecord(env)
	out.enrolments = m.flows.Position()
	return nil
}

// begin readies what belongs to one record.
func (m *Machine) begin(c command) {
	c.work = feature.Tx{AtMs: m.logTime, Record: c.env.ID, Offset: c.out.Offset, Store: m.store}
	if c.env.Kind == eventlog.KindEvents || c.env.Kind == eventlog.KindImport {
		c.row = ownRows // the record's events come first
	}
	m.rec = c
	m.flows.Begin(m.logTime)
	m.resolution.AtMs = m.logTime
	m.outboxes.Begin()
}

func (m *Machine) applyKind(env eventlog.Envelope, body []byte, rows *query.Batch, out *Outcome) error {
	switch env.Kind {
	case eventlog.KindEvents:
		return m.applyEvents(env, body, rows, out)
	case eventlog.KindImport:
		return m.applyImport(env, body, rows, out)
	case eventlog.KindContinue:
		return m.applyContinue()
	case eventlog.KindTick:
		m.applyTick()
		return nil
	case eventlog.KindChunk:
		m.applyChunk(env, body, out)
		return nil
	case eventlog.KindCommand:
		name, args, err := eventlog.DecodeCommand(body)
		if err != nil {
			return err
		}
		return m.applyCommand(env, name, args, rows, out)
	}
	return fmt.Errorf("%w: record of kind %d", ErrNewer, env.Kind)
}

// Skip passes over a record that cannot be applied. It must be told so at each
// replay.
func (m *Machine) Skip(offset int64) error {
	if offset != m.next {
		return fmt.Errorf("record %d does not follow record %d", offset, m.next-1)
	}
	m.next++
	return nil
}

func (o *Outcome) Reset(offset int64) {
	*o = Outcome{Offset: offset, Events: o.Events[:0], From: o.From}
}

func (m *Machine) applyEvents(env eventlog.Envelope, body []byte, rows *query.Batch, out *Outcome) error {
	a := m.accounts[env.Account]
	if a == nil {
		out.Refusal = notFound("", "no account has the number %016x", env.Account)
		return nil
	}
	return m.applyList(a, env, body, rows, out, nil)
}

// applyList applies the events of a body. Those in stored, by their place in the list,
// are on record already.
func (m *Machine) applyList(a *account.State, env eventlog.Envelope, body []byte, rows *query.Batch, out *Outcome, stored *roaring.Bitmap) error {
	r, err := eventlog.NewEventsReader(body)
	if errors.Is(err, eventlog.ErrNewerRules) {
		return fmt.Errorf("%w: %w", ErrNewer, err)
	}
	if err != nil {
		return err
	}
	rules := identrules.Event{Version: r.Rules(), Live: env.Kind == eventlog.KindEvents}
	if rules.Version >= rulesCatalog {
		m.beginCatalog(a)
	}
	for i := uint32(0); ; {
		window := m.readWindow(a, &r)
		for w := range window {
			out.Events = append(out.Events, EventOutcome{})
			o := &out.Events[i]
			if stored != nil && stored.Contains(i) {
				o.Status = EventDuplicate
				m.counters.Duplicates++
				i++
				continue
			}
			if err := m.applyEvent(a, &window[w], rules, i, rows, o); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
			switch o.Status {
			case EventAccepted:
				m.counters.Events++
			case EventDuplicate:
				m.counters.Duplicates++
			case EventRefused:
				m.counters.Refused++
			}
			i++
		}
		if len(window) < resolution.WindowEvents {
			return r.Err()
		}
	}
}

// recordRing remembers the newest record ids.
type recordRing struct {
	ids  []eventlog.RecordID
	set  map[eventlog.RecordID]struct{}
	at   int
	size int
}

func newRecordRing(size int) recordRing {
	return recordRing{set: map[eventlog.RecordID]struct{}{}, size: size}
}

// add remembers an id and forgets the oldest beyond the window. It returns
// false when the id is in the window already.
func (r *recordRing) add(id eventlog.RecordID) bool {
	if _, ok := r.set[id]; ok {
		return false
	}
	if len(r.ids) < r.size {
		r.ids = append(r.ids, id)
	} else {
		delete(r.set, r.ids[r.at])
		r.ids[r.at] = id
		r.at = (r.at + 1) % r.size
	}
	r.set[id] = struct{}{}
	return true
}

// list returns the ids, oldest first.
func (r *recordRing) list() []eventlog.RecordID {
	out := make([]eventlog.RecordID, 0, len(r.ids))
	return append(append(out, r.ids[r.at:]...), r.ids[:r.at]...)
}

// ErrLagging means that a checkpoint must wait: the segment engine is working
// off what fell due at once, and its state in between is not written.
var ErrLagging = errors.New("the segment engine is working off what fell due")
