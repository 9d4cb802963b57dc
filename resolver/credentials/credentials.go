// Package credentials has an account's keys to other services, and theirs to the account.
package credentials

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of credentials.
const (
	CommandSet    = "credential.set"
	CommandDelete = "credential.delete"
)

// The groups of credentials.
const (
	Push    = "push"    // to push services
	Message = "message" // to providers of SMS and the like
	Inbound = "inbound" // by which providers prove themselves to us
)

// names are what each group has credentials for.
var names = map[string][]string{
	Push:    profile.DeviceKinds,
	Message: {"sms", "whatsapp", "im"},
	Inbound: {"generic", "mail", "mailgun", "postmark", "sendgrid", "ses", "twilio", "whatsapp"},
}

const maxBytes = 64 << 10

// Credential is an account's key to another service, or another service's to
// the account. It has to be used, so it is in the state as it is; it is never
// logged nor answered.
type Credential struct {
	Group     string          `json:"group"`
	Name      string          `json:"name"`
	Config    json.RawMessage `json:"config,omitempty"`
	UpdatedMs int64           `json:"updated_ms,omitempty"`
}

// Names lists what a group has credentials for, nil for no group.
func Names(group string) []string { return slices.Clone(names[group]) }

// String hides what is secret.
func (c Credential) String() string { return "credential " + c.Group + "/" + c.Name }

// GoString hides what is secret from %#v.
func (c Credential) GoString() string { return c.String() }

// State is the credentials of one account.
type State struct {
	table feature.Table[Credential] // by group/name
}

// New is the state of an account without credentials.
func New() *State {
	return &State{feature.NewTableOfJSON[Credential](state.EntityCredential)}
}

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandSet:    feature.Do((*State).set),
	CommandDelete: feature.Do((*State).remove),
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	return s.table.LoadKind(kind, name, value)
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	s.table.Hash(put)
	return nil
}

func (c *Credential) key() string { return c.Group + "/" + c.Name }

func check(c *Credential) *refuse.Refusal {
	of := names[c.Group]
	switch {
	case of == nil:
		return refuse.Invalid("group", "group Input should be push, message or inbound")
	case !slices.Contains(of, c.Name):
		return refuse.NotFound("name", "there is no %s provider %q; it is one of %s", c.Group, c.Name, strings.Join(of, ", "))
	}
	return nil
}

func (s *State) set(tx *feature.Tx, c Credential) *refuse.Refusal {
	if r := check(&c); r != nil {
		return r
	}
	if len(c.Config) > maxBytes || !json.Valid(c.Config) {
		return refuse.Invalid("config", "the credentials must be JSON of at most %d bytes", maxBytes)
	}
	c.UpdatedMs = tx.AtMs
	s.table.Put(tx, c.key(), &c)
	return nil
}

func (s *State) remove(tx *feature.Tx, c Credential) *refuse.Refusal {
	if r := check(&c); r != nil {
		return r
	}
	if s.table.Get(c.key()) == nil {
		return refuse.NotFound("name", "no credentials are set for %s", c.Name)
	}
	s.table.Delete(tx, c.key())
	return nil
}

// Get finds the credentials for one service. The config must not be changed.
func (s *State) Get(group, name string) (Credential, bool) {
	if c := s.table.Get(group + "/" + name); c != nil {
		return *c, true
	}
	return Credential{}, false
}

// Of lists those of a group by name.
func (s *State) Of(group string) []Credential {
	var out []Credential
	for _, name := range names[group] {
		if c, ok := s.Get(group, name); ok {
			out = append(out, c)
		}
	}
	return out
}
