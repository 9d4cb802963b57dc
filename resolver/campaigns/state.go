// Package campaigns has what an account sends to many: campaigns, their schedules and
// runs, and templates.
//
// A campaign is a message. A run sends it: it takes its audience at the start as a set of
// profiles, and batch by batch those who may be sent to become pending. The dispatcher
// carries out the run and reports each message, see [Result]. What recipients do later
// counts for the campaign, and by the sets of recipients for the run that reached them.
//
// Texts are the bodies of campaigns and templates, and what campaigns are sent with. They
// may be long and are seldom read, so they are in the store alone: the account has their
// sizes. They stand in a table apart from entities, so that a start does not read them.
//
// What is stored is in files of its own: campaigns.go with channels.go, push.go and whatsapp.go,
// run.go with rate.go, template.go. These know nothing of the state. state.go, sets.go and
// texts.go have the state, the other files what is done with it; load.go, freezing and the hash.
// commands.go names the commands.
package campaigns

import (
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

const dayMs = 24 * 60 * 60 * 1000

// Shared is what the campaigns of one machine's accounts have in common.
type Shared struct {
	Store *state.Store
	// Changed is set when a run has started or stopped, or a campaign has become due. The node
	// clears it when it acts on it.
	Changed bool
	// MaxCampaigns bounds the campaigns of an account, MaxTextBytes its texts. They are
	// part of the rules: only tests change them.
	MaxCampaigns int
	MaxTextBytes int64
}

// NewShared returns what campaigns share whose texts are in the store.
func NewShared(store *state.Store) *Shared {
	return &Shared{Store: store, MaxCampaigns: maxCampaigns, MaxTextBytes: maxTextBytes}
}

// State is the templates, campaigns and runs of one account.
type State struct {
	account uint64
	shared  *Shared
	host    Host

	templates map[string]*Template
	campaigns map[string]*Campaign
	ids       map[uint32]string // by number
	oneOffs   []uint32          // numbers of the campaigns that are one-off, the oldest first
	// schedules are when campaigns become due, by their numbers; due those whose time has
	// come and whose run is not started.
	schedules dueset.Set
	due       map[uint32]struct{}
	wakes     dueset.Set      // when runs continue that wait, by the numbers of their campaigns
	runs      map[string]*Run // by campaign: the present or last one
	dirty     []*Run          // changed since the last checkpoint
	textBytes int64           // of the texts in the store, see putText
}

// New returns the state of an account without campaigns.
func New(account uint64, shared *Shared, host Host) *State {
	return &State{
		account: account, shared: shared, host: host,
		templates: map[string]*Template{}, campaigns: map[string]*Campaign{}, ids: map[uint32]string{}, runs: map[string]*Run{},
	}
}

// put stores an entity, nil to remove it.
func (s *State) put(kind byte, id string, value []byte) {
	s.shared.Store.PutEntity(state.EntityKey(s.account, kind, id), value)
}

// noCampaign refuses an id that names nothing.
func noCampaign() *refuse.Refusal { return refuse.NotFound("id", "there is no campaign with this id") }

// touch notes that a run has changed since the last checkpoint.
func (s *State) touch(r *Run) {
	if !r.dirty {
		r.dirty = true
		s.dirty = append(s.dirty, r)
	}
}

// run finds the run a command speaks of, nil when that is over.
func (s *State) run(id string, number int) (*Campaign, *Run) {
	if r := s.runs[id]; r.Busy() && r.Run == number {
		return s.campaigns[id], r
	}
	return nil, nil
}

// maxTextBytes bounds the texts of an account, in bytes.
const maxTextBytes = 1 << 30
