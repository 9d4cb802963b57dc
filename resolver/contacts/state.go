package contacts

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment/engine"
)

// Host is what contacts need of the rest of their account. Its methods belong to the
// record that is being applied, but for ListUsers, NextNumber and DoubleOptIn.
type Host interface {
	// NextNumber is the number of the list that is made next. TakeNumber notes that a list
	// has a number: the next one has a higher one, for documents hold them. SaveNumbers
	// stores the number of the list that is made next.
	NextNumber() uint32
	TakeNumber(number uint32)
	SaveNumbers()
	// ListUsers names what refers to a list, as refusals do; "" for nothing.
	ListUsers(id string) string

	// DropSet removes one of the account's sets, and what is stored of it.
	DropSet(name string)

	// Profile finds the profile that an id stands for, and reads its document. The document
	// is valid until the next call. Other reads that of another profile beside it.
	Profile(id string) (ordinal uint32, d *profile.Document, r *refuse.Refusal)
	Other(ordinal uint32) *profile.Document
	// ProfileID is the id of a profile.
	ProfileID(ordinal uint32) string
	// Update stores a document that was changed, says which fields have changed, and
	// records events on the profile. Save stores one of which no condition looks at what
	// has changed.
	Update(ordinal uint32, d *profile.Document, changed engine.Fields, events ...feature.Event)
	Save(ordinal uint32, d *profile.Document)

	// DoubleOptIn reports whether a subscription to e-mail must be confirmed. AskToConfirm
	// queues the message that asks for it, and returns the events of a failure.
	DoubleOptIn() bool
	AskToConfirm(ordinal uint32, d *profile.Document) []feature.Event
	// BeginConsentLog begins the account's log of consents, if it has none.
	BeginConsentLog()
	// Redacted reports whether what concerns an erased person was taken out of the record:
	// identifiers may be masked.
	Redacted() bool
}

// State is the contacts of an account: its lists, and what of the documents of
// profiles is about contacts.
type State struct {
	account uint64
	host    Host
	sets    *profile.OrdinalSets
	ids     *profile.IdentifierMap   // of the account: devices are in it, too
	hasher  func() identifier.Hasher // the account's, which may change
	store   *state.Store

	lists   map[string]*List
	listIDs map[uint32]string // by number
	topics  map[uint32]*List  // those with a [Topic], by number

	buf []byte // scratch
}

// New returns the state of an account without lists. The sets and the map of
// identifiers are the account's, the hasher is asked for whenever it is needed.
func New(account uint64, store *state.Store, sets *profile.OrdinalSets, ids *profile.IdentifierMap, hasher func() identifier.Hasher, host Host) *State {
	return &State{account: account, host: host, sets: sets, ids: ids, hasher: hasher, store: store, lists: map[string]*List{}, listIDs: map[uint32]string{}, topics: map[uint32]*List{}}
}

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandListCreate: feature.Do((*State).createList),
	CommandListUpdate: feature.Do((*State).updateList),
	CommandListDelete: feature.Do((*State).deleteList),
	CommandListRemove: feature.Do((*State).removeFromList),

	CommandConsentSet:     feature.Do((*State).setConsent),
	CommandSuppressionSet: feature.Do((*State).setSuppression),

	CommandDeviceAdd:    feature.Do((*State).addDevice),
	CommandDeviceRemove: feature.Do((*State).removeDevice),
}

// Load takes back a list that a checkpoint has, see [feature.State]; in whatever order they
// come.
func (s *State) Load(kind byte, _ string, value []byte) (known bool, err error) {
	if kind != state.EntityList {
		return false, nil
	}
	l := new(List)
	if err := json.Unmarshal(value, l); err != nil {
		return true, err
	}
	s.install(l)
	return true, nil
}

// Hash gives put the lists, see [feature.State]. The rest is in documents and sets.
func (s *State) Hash(put func([]byte)) error {
	for _, id := range slices.Sorted(maps.Keys(s.lists)) {
		put([]byte(id))
		put(must.JSON(s.lists[id]))
	}
	return nil
}

// Merge makes what is in lists, sets and the index of devices of a merged profile the
// winner's. lists and devices are those of the merged profile's document, which is why it is
// not a feature.Merger. What the document says of topics that were left moves by LeaveMerged.
func (s *State) Merge(winner, merged uint32, lists []uint32, devices []profile.Device) {
	for _, n := range lists {
		if members := s.sets.Set(ListSet(n)); members.Remove(merged) {
			members.Add(winner)
		}
	}
	for _, name := range [...]string{SetContacts, SetDevices} {
		if x := s.sets.Find(name); x != nil && x.Remove(merged) {
			x.Add(winner)
		}
	}
	s.mergeLeft(winner, merged)
	for _, v := range devices {
		s.ids.Set(s.deviceHash(v.Kind, v.Address), winner)
	}
}

// TakeOn makes a profile a contact; it returns which fields that changed.
func (s *State) TakeOn(o uint32, d *profile.Document) (changed engine.Fields) {
	if !d.IsContact {
		changed = engine.FieldContact
	}
	d.IsContact = true
	s.sets.Set(SetContacts).Add(o)
	return changed
}
