// Package outbox is what the state machine decided that the world outside should see:
// e-mails, text messages, pushes, calls and webhooks that wait to be sent, and the
// endpoints that webhooks go to.
//
// Records put items into the outbox and take them out. A dispatcher sends them in between
// and reports what became of each, see [Done]. An item is in memory without its payload,
// which is in the store.
//
// The items of one webhook endpoint are a lane with a heap of its own, so that finding
// the items that are due at one endpoint does not depend on how many items others have. Of an
// ordered lane only the first item can be due: its items go out one at a time. All
// other items are due on their own.
package outbox

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The kinds of items.
const (
	KindEmail   = "email"
	KindWebhook = "webhook"
	KindSMS     = "sms"
	KindPush    = "push"
	// KindInApp is an in-app message: it is put into an inbox of the service itself.
	KindInApp = "in_app"
	// KindWhatsApp is a WhatsApp message: a template, or a text in an open conversation.
	KindWhatsApp = "whatsapp"
	// KindIM is a text by the account's own instant messenger.
	KindIM = "im"
	// KindCall is a request to a URL that a flow's step names. It has no endpoint and no
	// order.
	KindCall = "call"
)

const dayMs = 24 * 60 * 60 * 1000

// The outbox's bounds. They are part of the rules: changing one changes what Apply does
// and needs a new version of the state machine's rules.
const (
	MaxItems       = 1_000_000 // of an account
	maxLane        = 100_000   // items of one endpoint
	maxPayload     = 256 << 10
	maxDeadLetters = 10_000 // of one endpoint; the oldest are dropped
	maxDelay       = 7 * dayMs
)

// Shared is what the outboxes of one machine's accounts have in common.
type Shared struct {
	Store *state.Store
	// Due is set when an item may have become due. The node clears it when it acts
	// on it.
	Due bool
	// Dropped counts events for which an endpoint had no room, since the process started.
	Dropped uint64
	// queued is what the record that is being applied has queued.
	queued *Work
}

// Work is what the record that is being applied has queued. The machine's transaction owns it.
type Work struct {
	items map[uint32]uint32 // how many, by profile
}

// Begin readies the work for a record.
func (w *Work) Begin() { clear(w.items) }

// add counts an item of a profile, and returns how many the record had queued before it.
func (w *Work) add(ordinal uint32) uint32 {
	if w.items == nil {
		w.items = map[uint32]uint32{}
	}
	n := w.items[ordinal]
	w.items[ordinal] = n + 1
	return n
}

// NewShared returns what the outboxes share whose payloads are in the store.
func NewShared(store *state.Store, queued *Work) *Shared {
	return &Shared{Store: store, queued: queued}
}

// State is the outbox and the webhook endpoints of one account.
type State struct {
	account uint64
	shared  *Shared
	// counts returns how many events of each type there are that endpoints can subscribe
	// to, without types that have none. The totals of a day are the difference of two
	// calls.
	counts func() map[string]uint64

	last  uint64 // number of the newest item
	items map[uint64]*Item
	due   map[string]*dueHeap // by kind
	lanes map[string]*lane    // by endpoint
	dead  map[string][]uint64 // by endpoint: numbers of dead letters, the oldest first
	logs  map[string]*deliveryLog

	endpoints map[string]*Endpoint
	dirty     []*Endpoint // whose figures changed since the last checkpoint
	active    []*Endpoint // the oldest first
	daily     daily
}

// New returns the empty outbox of an account. See [State] for counts.
func New(account uint64, shared *Shared, counts func() map[string]uint64) *State {
	return &State{
		account: account, shared: shared, counts: counts,
		items: map[uint64]*Item{}, due: map[string]*dueHeap{}, lanes: map[string]*lane{}, dead: map[string][]uint64{}, logs: map[string]*deliveryLog{},
		endpoints: map[string]*Endpoint{},
	}
}

// Load takes back what a checkpoint has; known is false for an entity of another feature.
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityOutbox:
		return true, s.loadItem(name, value)
	case state.EntityDead:
		return true, s.loadDead(name)
	case state.EntityDelivery:
		return true, s.loadDelivery(name, value)
	case state.EntityEndpoint:
		return true, s.loadEndpoint(name, value)
	}
	return false, nil
}

// loadItem reads an item, or the number of the newest one.
func (s *State) loadItem(name string, value []byte) error {
	switch len(name) {
	case 0:
		if len(value) != 8 {
			return fmt.Errorf("counter of the outbox of the wrong length")
		}
		s.last = binary.LittleEndian.Uint64(value)
		return nil
	case 8:
		it := new(Item)
		if err := json.Unmarshal(value, it); err != nil {
			return err
		}
		s.items[it.Seq] = it
		return nil
	}
	return fmt.Errorf("outbox item with a name of %d bytes", len(name))
}

// loadEndpoint reads an endpoint, or what the day began with.
func (s *State) loadEndpoint(name string, value []byte) error {
	if name == endpointDailyName {
		return json.Unmarshal(value, &s.daily)
	}
	e := new(Endpoint)
	if err := json.Unmarshal(value, e); err != nil {
		return err
	}
	s.endpoints[e.ID] = e
	return nil
}

// Open puts in order what was loaded, see [feature.Opener].
func (s *State) Open(profiles uint32) error {
	list := make([]*Item, 0, len(s.items))
	for _, it := range s.items {
		if it.Ordinal != NoProfile && it.Ordinal >= profiles {
			return fmt.Errorf("state: outbox item %d of account %016x is of profile %d, there are %d", it.Seq, s.account, it.Ordinal, profiles)
		}
		list = append(list, it)
	}
	slices.SortFunc(list, bySeq)
	for _, e := range s.endpoints {
		s.setLane(e)
	}
	s.openLogs()
	for _, it := range list {
		s.enter(it)
	}
	s.findActive()
	return nil
}

// Freeze hands to the store what has changed and is not there yet.
func (s *State) Freeze() {
	for _, e := range s.dirty {
		if s.endpoints[e.ID] == e {
			s.putEndpoint(e)
		}
		e.dirty = false
	}
	s.dirty = s.dirty[:0]
}

// Hash gives put the whole state, in an order that depends on it alone.
func (s *State) Hash(put func([]byte)) error {
	put(binary.LittleEndian.AppendUint64(nil, s.last))
	for _, id := range slices.Sorted(maps.Keys(s.endpoints)) {
		put([]byte(id))
		put(must.JSON(s.endpoints[id]))
	}
	put(must.JSON(s.daily))
	for _, seq := range slices.Sorted(maps.Keys(s.items)) {
		put(must.JSON(s.items[seq]))
		if err := s.hashPayload(put, s.items[seq].Origin); err != nil {
			return err
		}
	}
	for _, endpoint := range slices.Sorted(maps.Keys(s.dead)) {
		for _, seq := range s.dead[endpoint] {
			d, err := s.deadLetter(endpoint, seq)
			if err != nil {
				return err
			}
			put(must.JSON(d))
			if err := s.hashPayload(put, d.Origin); err != nil {
				return err
			}
		}
	}
	return s.hashDeliveries(put)
}

func (s *State) hashPayload(put func([]byte), origin uint64) error {
	b, err := s.Payload(origin)
	put(b)
	return err
}

// Erase removes the items, dead letters and deliveries of erased profiles. It
// looks at all items, which are bounded.
func (s *State) Erase(_ *feature.Tx, ordinals ...uint32) error {
	var erased []*Item
	for _, it := range s.items {
		if slices.Contains(ordinals, it.Ordinal) {
			erased = append(erased, it)
		}
	}
	slices.SortFunc(erased, bySeq)
	for _, it := range erased {
		s.Remove(it)
	}
	s.eraseDeliveries(ordinals)
	for endpoint, list := range s.dead {
		kept := make([]uint64, 0, len(list))
		for _, seq := range list {
			d, err := s.deadLetter(endpoint, seq)
			if err != nil {
				return err
			}
			if slices.Contains(ordinals, d.Ordinal) {
				s.dropDead(endpoint, &d)
				continue
			}
			kept = append(kept, seq)
		}
		s.dead[endpoint] = kept
	}
	return nil
}

// ForgetErrors clears the last errors of endpoints that match.
func (s *State) ForgetErrors(match func(text string) bool) {
	for _, id := range slices.Sorted(maps.Keys(s.endpoints)) {
		if e := s.endpoints[id]; match(e.LastError) {
			e.LastError = ""
			s.touchEndpoint(e)
		}
	}
}
