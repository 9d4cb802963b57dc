// Package campaigns has what an account sends to many: templates and their texts.
//
// Texts are the bodies of campaigns and templates, and what campaigns are sent with. They
// may be long and are seldom read, so they are in the store alone: the account has their
// sizes. They stand in a table apart from entities, so that a start does not read them.
package campaigns

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Shared is what the campaigns of one machine's accounts have in common.
type Shared struct {
	Store *state.Store
	// MaxTextBytes bounds the texts of an account, in bytes. Only tests change it.
	MaxTextBytes int64
}

// NewShared returns what campaigns share whose texts are in the store.
func NewShared(store *state.Store) *Shared {
	return &Shared{Store: store, MaxTextBytes: maxTextBytes}
}

// Host is what campaigns need of the rest of their account.
type Host interface {
	// TemplateUsers names what refers to a template, as refusals do; "" for nothing. The
	// account's settings do not count.
	TemplateUsers(id string) string
	// ConfirmTemplate is the id of the template that asks for confirmations of
	// subscriptions, "" for none.
	ConfirmTemplate() string
}

// State is the templates of one account.
type State struct {
	account uint64
	shared  *Shared
	host    Host

	templates map[string]*Template
	textBytes int64 // of the texts in the store, see PutText
}

// New returns the state of an account without campaigns.
func New(account uint64, shared *Shared, host Host) *State {
	return &State{account: account, shared: shared, host: host, templates: map[string]*Template{}}
}

// Commands are what changes the state.
var Commands = map[string]feature.Command[*State]{
	CommandTemplateSave:   feature.Do((*State).saveTemplate),
	CommandTemplateDelete: feature.Do((*State).deleteTemplate),
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, _ string, value []byte) (known bool, err error) {
	if kind != state.EntityTemplate {
		return false, nil
	}
	return true, s.loadTemplate(value)
}

// Hash gives put the templates, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	hashMap(put, s.templates)
	return nil
}

func hashMap[V any](put func([]byte), entities map[string]V) {
	for _, k := range slices.Sorted(maps.Keys(entities)) {
		put([]byte(k))
		put(must.JSON(entities[k]))
	}
}
