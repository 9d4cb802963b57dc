// Package campaigns has what an account sends to many: campaigns, their schedules and
// runs, and templates.
//
// A campaign is a message. A run sends it: it takes its audience at the start as a set of
// profiles, and batch by batch those who may be sent to become pending. Whoever carries
// out a run reports each message, see [Result]. What recipients do later counts for the
// campaign, and by the sets of recipients for the run that reached them.
//
// Texts are the bodies of campaigns and templates, and what campaigns are sent with. They
// may be long and are seldom read, so they are in the store alone: the account has their
// sizes. They stand in a table apart from entities, so that a start does not read them.
package campaigns

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

const dayMs = 24 * 60 * 60 * 1000

// Shared is what the campaigns of one machine's accounts have in common.
type Shared struct {
	Store *state.Store
	// Started is set when a run has started or a campaign has become due. Whoever acts on
	// it clears it.
	Started bool
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
	wakes     dueset.Set      // when runs go on that wait, by the numbers of their campaigns
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

// Commands are what changes the state.
var Commands = map[string]feature.Command[*State]{
	CommandTemplateSave:   feature.Do((*State).saveTemplate),
	CommandTemplateDelete: feature.Do((*State).deleteTemplate),

	CommandSave:       feature.Do((*State).save),
	CommandSave1:      feature.Do((*State).saveUnscheduled),
	CommandDelete:     feature.Do((*State).delete),
	CommandUnschedule: feature.Do((*State).unschedule),

	CommandStart:   feature.Do((*State).start),
	CommandStart1:  feature.Do((*State).startUnrecorded),
	CommandBatch:   feature.Do((*State).batch),
	CommandResult:  feature.Do((*State).result),
	CommandResult1: feature.Do((*State).result),
	CommandFinish:  feature.Do((*State).finish),
	CommandResume:  feature.Do((*State).resume),
}

// Load takes back what a checkpoint has, see [feature.State]. Runs come behind campaigns,
// and what they were sent with behind them.
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityTemplate:
		return true, s.loadTemplate(value)
	case state.EntityCampaign:
		return true, s.loadCampaign(name, value)
	case state.EntityRun:
		r := new(Run)
		err := json.Unmarshal(value, r)
		s.textBytes += int64(r.ContentBytes) + int64(r.LinkBytes)
		s.runs[strings.Clone(name)] = r
		if x := s.campaigns[name]; x != nil && r.Status == RunWaiting {
			s.wakes.Add(dueset.Item{Due: r.WakeMs, Ordinal: x.Number})
		}
		return true, err
	case state.EntityContent:
		return true, s.moveContents(name, value)
	}
	return false, nil
}

// Open puts in order what was loaded.
func (s *State) Open() { slices.Sort(s.oneOffs) }

// Freeze hands to the store what has changed and is not there yet.
func (s *State) Freeze() {
	for _, r := range s.dirty {
		if s.runs[r.ID] == r {
			s.put(state.EntityRun, r.ID, must.JSON(r))
		}
		r.dirty = false
	}
	s.dirty = s.dirty[:0]
}

// HashTemplates gives put the templates, which come before the account's sender domains
// in the state's hash.
func (s *State) HashTemplates(put func([]byte)) { hashMap(put, s.templates) }

// Hash gives put the rest of the state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	hashMap(put, s.campaigns)
	hashMap(put, s.runs)
	if err := s.hashTexts(put); err != nil {
		return err
	}
	return s.checkDerived()
}

func hashMap[V any](put func([]byte), entities map[string]V) {
	for _, k := range slices.Sorted(maps.Keys(entities)) {
		put([]byte(k))
		put(must.JSON(entities[k]))
	}
}

// checkDerived says where what follows from the campaigns does not.
func (s *State) checkDerived() error {
	oneOffs, scheduled, due, waiting := 0, 0, 0, 0
	for id, x := range s.campaigns {
		if s.ids[x.Number] != id {
			return fmt.Errorf("the number %d does not lead to the campaign %s", x.Number, id)
		}
		if r := s.runs[id]; r != nil && r.Status == RunWaiting {
			waiting++
		}
		_, isDue := s.due[x.Number]
		if isDue != x.Due {
			return fmt.Errorf("whether the campaign %s is due is not known", id)
		}
		if x.OneOff {
			if _, found := slices.BinarySearch(s.oneOffs, x.Number); !found {
				return fmt.Errorf("the campaign %s is not among those that are one-off", id)
			}
			oneOffs++
		}
		if isDue {
			due++
		} else if x.ScheduledMs != 0 {
			scheduled++
		}
	}
	if s.wakes.Len() != waiting {
		return fmt.Errorf("%d runs of campaigns wait, %d are known to", waiting, s.wakes.Len())
	}
	if len(s.ids) != len(s.campaigns) || len(s.oneOffs) != oneOffs || len(s.due) != due || s.schedules.Len() != scheduled {
		return fmt.Errorf("%d campaigns, of which %d are one-off, %d scheduled and %d due, have %d numbers; %d are known to be one-off, %d scheduled, %d due",
			len(s.campaigns), oneOffs, scheduled, due, len(s.ids), len(s.oneOffs), s.schedules.Len(), len(s.due))
	}
	return nil
}

// put stores an entity, nil to remove it.
func (s *State) put(kind byte, id string, value []byte) {
	s.shared.Store.PutEntity(state.EntityKey(s.account, kind, id), value)
}

// noCampaign refuses an id that names nothing.
func noCampaign() *refuse.Refusal { return refuse.NotFound("id", "there is no campaign with this id") }
