package eventtypes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The bounds. They are part of the rules of the state machine.
const (
	maxTypes = 10_000
	// MaxPublic is how many types may be those that only browsers' keys have sent.
	MaxPublic = 1_000
)

// CodePublic is the code of the refusal of an event that would bring one more new event
// type than browsers' keys may.
const CodePublic = "too_many_event_types"

// Type is a line of the event catalog.
type Type struct {
	Key string `json:"key"`
	// Name is the name it was defined with; types only seen have none.
	Name string `json:"name"`
	// FirstSeenMs is the time of the earliest event; 0 before the first.
	FirstSeenMs int64 `json:"first_seen_ms"`
	// LastSeenMs is the time of the latest event, 0 where the account has had no
	// catalog of properties since.
	LastSeenMs int64  `json:"last_seen_ms,omitempty"`
	Count      uint64 `json:"count"`
	// Description is what people say of the type, Hidden that it is not to be offered to
	// them. Neither changes what is done with its events.
	Description string `json:"description,omitempty"`
	Hidden      bool   `json:"hidden,omitempty"`
	// Public says that only browsers' keys have sent the type so far.
	Public bool `json:"public,omitempty"`

	dirty       bool
	listener    feature.Listener // nil for none
	sketch      *catalog.Sketch  // nil where there is none, see sketches.go
	sketchDirty bool
}

// State is the event catalog of an account.
type State struct {
	account   uint64
	store     *state.Store
	listeners map[string]feature.Listener // by event type
	erased    func() bool                 // whether the account has erased profiles

	types map[string]*Type
	// public counts those with Type.Public.
	public   int
	dirty    []*Type
	sketches sketches
}

// New returns the state of an account without event types. The looker is scratch memory that
// accounts share, listeners take note of the events of some types, and erased reports
// whether the account has erased profiles.
func New(account uint64, store *state.Store, looker *catalog.Looker, listeners map[string]feature.Listener, erased func() bool) *State {
	return &State{
		account: account, store: store, listeners: listeners, erased: erased,
		types: map[string]*Type{}, sketches: sketches{looker: looker, budget: catalog.Budget{Limit: maxSketchBytes}},
	}
}

// Get finds a type by its key. It must not be changed.
func (s *State) Get(key string) *Type { return s.types[key] }

// List lists the types, by key.
func (s *State) List() []Type {
	out := make([]Type, 0, len(s.types))
	for _, t := range s.types {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Type) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Keys lists the keys of the types, sorted.
func (s *State) Keys() []string { return slices.Sorted(maps.Keys(s.types)) }

// Seen reports whether there was an event of the type, or of any type.
func (s *State) Seen(key string, any bool) bool {
	if !any {
		t := s.types[key]
		return t != nil && t.Count > 0
	}
	for _, t := range s.types {
		if t.Count > 0 {
			return true
		}
	}
	return false
}

// Refuse refuses an event whose type is new and for which there is no room, nil if there is.
func (s *State) Refuse(ev *eventlog.Event, rules identrules.Event) *refuse.Refusal {
	if len(s.types) >= maxTypes && s.types[string(ev.Type)] == nil {
		return refuse.AtLimit("event_type", "event_type: this account has %d event types, the most it can have; use one of them and put the difference into properties", maxTypes)
	}
	// Browsers' keys are public, and must not use up the types of the account.
	if rules.Version >= identrules.VersionCalls && ev.Public && s.public >= MaxPublic && s.types[string(ev.Type)] == nil {
		return &refuse.Refusal{Code: CodePublic, Field: "event_type", Message: fmt.Sprintf("event_type: browser keys have brought %d event types that no server sends, the most that they may; use one of them and put the difference into properties, or send the type from a server once", MaxPublic)}
	}
	return nil
}

// CountSent is Count of an event that was sent, by a browser's key or not.
func (s *State) CountSent(ev *eventlog.Event, atMs int64, rules identrules.Event) *Type {
	_, known := s.types[string(ev.Type)]
	t := s.Count(ev.Type, atMs)
	switch {
	case !known && ev.Public && rules.Version >= identrules.VersionCalls:
		t.Public = true
		s.public++
	case t.Public && !ev.Public:
		t.Public = false
		s.public--
	}
	return t
}

// Count notes an event in the catalog and returns its type.
func (s *State) Count(typ []byte, atMs int64) *Type {
	t := s.types[string(typ)]
	if t == nil {
		// Not bounded: what is new to the catalog was checked before, and the
		// service's own types are few.
		t = s.add(&Type{Key: string(typ)})
	}
	if t.Count == 0 || atMs < t.FirstSeenMs {
		t.FirstSeenMs = atMs
	}
	if s.sketches.on && (t.LastSeenMs == 0 || atMs > t.LastSeenMs) {
		t.LastSeenMs = atMs
	}
	t.Count++
	s.touch(t)
	return t
}

// Notify calls the listener of the type, if there is one, with an event that was
// sent.
func (t *Type) Notify(tx *feature.Tx, ordinal uint32, atMs int64) {
	if t.listener != nil {
		t.listener.OnEvent(tx, ordinal, atMs)
	}
}

// findOrAdd finds or makes the catalog line of a type; nil at the limit.
func (s *State) findOrAdd(key string) *Type {
	if t, ok := s.types[key]; ok {
		return t
	}
	if len(s.types) >= maxTypes {
		return nil
	}
	return s.add(&Type{Key: key})
}

func (s *State) add(t *Type) *Type {
	t.listener = s.listeners[t.Key]
	s.types[t.Key] = t
	return t
}

func (s *State) touch(t *Type) {
	if !t.dirty {
		t.dirty = true
		s.dirty = append(s.dirty, t)
	}
}

// Freeze puts what changed since the last checkpoint into the store.
func (s *State) Freeze() {
	for _, t := range s.dirty {
		s.store.PutEntity(state.EntityKey(s.account, state.EntityType, t.Key), must.JSON(t))
		t.dirty = false
	}
	s.dirty = s.dirty[:0]
	s.freezeSketches()
}

// Load implements [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityType:
		t := new(Type)
		if err := json.Unmarshal(value, t); err != nil {
			return true, err
		}
		s.add(t)
		if t.Public {
			s.public++
		}
	case state.EntitySketch:
		return true, s.loadSketch(name, value)
	default:
		return false, nil
	}
	return true, nil
}

// Open ends the loading.
func (s *State) Open(uint32) error {
	for key, x := range s.sketches.loaded {
		t := s.types[key]
		if t == nil {
			return fmt.Errorf("sketch of the unknown event type %q", key)
		}
		t.sketch = x
	}
	s.sketches.loaded = nil
	return nil
}

// Hash implements [feature.State].
func (s *State) Hash(put func([]byte)) error {
	keys := slices.Sorted(maps.Keys(s.types))
	for _, k := range keys {
		put([]byte(k))
		put(must.JSON(s.types[k]))
	}
	if s.erased() {
		return nil // replaying the redacted log gives lower counts
	}
	for _, k := range keys {
		if x := s.types[k].sketch; x != nil {
			put([]byte(k))
			put(x.Append(nil))
		}
	}
	if x := s.sketches.profiles; x != nil {
		put(x.Append(nil))
	}
	return nil
}
