package inapp

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of in-app messages. The machine carries out marks, which concern a profile.
const (
	CommandConfigure = "in_app.configure"
	CommandRotate    = "in_app.secret.rotate"
	CommandMark      = "in_app.mark"
)

// Channel is the name of the channel in consents.
const Channel = "in_app"

const (
	setInboxes   = "in_app/inboxes" // profiles that have one
	setHours     = "in_app/until/"  // and an hour: profiles of which a message ends in it
	textInbox    = 'i'              // kind of the texts; the id is the ordinal
	settingsName = "settings"
)

// MarkDeed are the arguments of [CommandMark]: a person did something with a message.
type MarkDeed struct {
	Profile string `json:"profile"` // id
	Message string `json:"message"` // id
	Deed    string `json:"deed"`    // one of [Deeds]
}

// Host is what in-app messages need of the rest of their account.
type Host interface {
	// Expired counts a message of a campaign that ended and was never looked at.
	Expired(campaign string, ordinal uint32)
	// DropSet removes a set of profiles.
	DropSet(name string)
}

// State is the in-app messages of one account.
type State struct {
	account  uint64
	shared   *Shared
	sets     *profile.OrdinalSets
	host     Host
	settings feature.Table[Settings]
	hours    []int64 // in which messages end, ascending, in hours since 1970
}

// Shared is what the in-app messages of one machine's accounts have in common.
type Shared struct {
	Store *state.Store
	// Changed is set when an inbox has changed. The node clears it when it acts on
	// it.
	Changed bool
}

// New returns the state of an account without messages, whose sets are given.
func New(account uint64, shared *Shared, sets *profile.OrdinalSets, host Host) *State {
	return &State{account: account, shared: shared, sets: sets, host: host, settings: feature.NewTable[Settings](state.EntityInApp)}
}

// Commands are the commands that change the state and concern no profile.
var Commands = map[string]feature.Command[*State]{
	CommandConfigure: feature.Do((*State).configure),
	CommandRotate:    feature.Do((*State).rotate),
}

// Load takes back what a checkpoint has, see [feature.State]. Inboxes stay in the store.
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	return s.settings.LoadKind(kind, name, value)
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	s.settings.Hash(put)
	for it := s.sets.Members(setInboxes).Iterator(); it.HasNext(); {
		o := it.Next()
		b, err := s.shared.Store.Entity(s.key(o))
		if err != nil {
			return err
		}
		var list []Message
		if err := json.Unmarshal(b, &list); err != nil {
			return fmt.Errorf("inbox of profile %d: %w", o, err)
		}
		if len(list) == 0 || len(list) > MaxMessages || !slices.IsSortedFunc(list, compare) {
			return fmt.Errorf("inbox of profile %d: %d messages, or in no order", o, len(list))
		}
		for i := range list {
			if !s.sets.Members(hourSet(hourOf(list[i].ExpiresMs))).Contains(o) {
				return fmt.Errorf("inbox of profile %d: the message %s ends, and its hour does not have the profile", o, list[i].ID)
			}
		}
		put(binary.BigEndian.AppendUint32(nil, o))
		put(b)
	}
	return nil
}
