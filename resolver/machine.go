package resolver

import (
	"errors"

	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/search"
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

// applyVersionConsentLog is the first version by which accounts have a log of consents from
// the beginning.
const applyVersionConsentLog = 16

// applyVersionOrders is the first version by which accounts note clicks and opens for the
// attribution of orders from the beginning.
const applyVersionOrders = 21

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

	next            int64 // offset of the next record
	logTime         int64 // Unix ms, the largest stamp so far
	accounts        map[uint64]*account.State
	byIndex         []*account.State // the same, by State.Index
	totals          account.Totals   // over all accounts, see tally
	index           *search.Index    // of profiles
	emailDirectory  *emaildir.State  // of contacts, over all accounts
	idempotencyKeys dedup.Keys
	records         dedup.Records
	epoch           state.Epoch // the newest
	// rules is the newest version of the rules that a record has said, 0 before
	// [state.RulesNoted].
	rules    int
	counters Counters
	backlog
	sinceCheckpoint

	// accountsChanged means that what requests know of accounts without a read
	// (App) may have changed.
	accountsChanged bool

	shared
	tx transaction // the record being applied
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
	inApp      *inapp.Shared
	flows      *automation.Runner
	looker     catalog.Looker
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
		store:           s,
		accounts:        map[uint64]*account.State{},
		index:           search.NewIndex(s),
		idempotencyKeys: dedup.NewKeys(),
		backlog:         backlog{busy: map[uint64]*account.State{}},
		emailDirectory:  emaildir.New(s),
		records:         dedup.NewRecords(recordWindow),
	}
	m.shared = shared{
		resolution: resolution.NewShared(s, m.index, &m.tx.profiles), outboxes: outbox.NewShared(s, &m.tx.queued),
		campaigns: campaigns.NewShared(s), inApp: &inapp.Shared{Store: s}, flows: automation.NewRunner(s, &m.tx.flows),
	}
	return m
}

// ErrLagging means that a checkpoint must wait: the segment engine is working
// off what fell due at once, and its state in between is not written.
var ErrLagging = errors.New("the segment engine is working off what fell due")
