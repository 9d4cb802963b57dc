// Package access keeps an account's users, their sessions, and API keys, with their
// permissions.
//
// A user can grant only permissions that they hold. An account always keeps a user who
// can manage the users, and one who can manage the system. A key can do what its
// creator still can.
package access

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The names of commands. They are in the log: never change the meaning of one.
const (
	CommandUserCreate    = "user.create"
	CommandUserUpdate    = "user.update"
	CommandUserDelete    = "user.delete"
	CommandPasswordSet   = "user.password"
	CommandSessionCreate = "session.create"
	CommandSessionDelete = "session.delete"
	CommandAPIKeyCreate  = "api_key.create"
	CommandAPIKeyRevoke  = "api_key.revoke"
	// CommandAPIKeysUsed is of all accounts of a partition: the machine hands each its
	// own, see [State.KeyUsed].
	CommandAPIKeysUsed = "api_keys.used"
)

// Permissions that are asked for here.
const (
	permitUsers   = "users:write"
	permitAPIKeys = "api_keys:write"
)

// The bounds of users, sessions and keys. They are part of the rules: changing one changes
// what Apply does and needs a new version of the state machine's rules.
const (
	MaxUsers           = 1000 // per account
	maxPermissions     = 100  // per user or key
	maxPermissionBytes = 64
	MaxUserEmailBytes  = 512
	MaxSessions        = 100  // per user; the oldest are dropped
	MaxAPIKeys         = 1000 // that hold, per account
	// MaxAPIKeyRecords counts revoked keys too; then the one that was revoked
	// first makes room.
	MaxAPIKeyRecords = 10_000
)

// State is who may do what in one account.
type State struct {
	users        feature.Table[User]
	usersByEmail map[string]*User // by normal form
	sessions     feature.Table[Session]
	apiKeys      feature.Table[APIKey]
	keysByHash   map[[32]byte]*APIKey // keys by the hash of their text
}

// New is the state of an account without users and keys.
func New() *State {
	return &State{
		users: feature.NewTable[User](state.EntityUser), usersByEmail: map[string]*User{},
		sessions: feature.NewTable[Session](state.EntitySession),
		apiKeys:  feature.NewTable[APIKey](state.EntityAPIKey), keysByHash: map[[32]byte]*APIKey{},
	}
}

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandUserCreate:    feature.Do((*State).createUser),
	CommandUserUpdate:    feature.Do((*State).updateUser),
	CommandUserDelete:    feature.Do((*State).deleteUser),
	CommandPasswordSet:   feature.Do((*State).setPassword),
	CommandSessionCreate: feature.Do((*State).createSession),
	CommandSessionDelete: feature.Do((*State).deleteSession),
	CommandAPIKeyCreate:  feature.Do((*State).createAPIKey),
	CommandAPIKeyRevoke:  feature.Do((*State).revokeAPIKey),
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityUser:
		u, err := s.users.Load(name, value)
		if err == nil {
			s.usersByEmail[identity.NormalizeEmail(u.Email)] = u
		}
		return true, err
	case state.EntitySession:
		_, err = s.sessions.Load(name, value)
		return true, err
	case state.EntityAPIKey:
		k, err := s.apiKeys.Load(name, value)
		if err == nil {
			s.noteHash(k)
		}
		return true, err
	}
	return false, nil
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	s.users.Hash(put)
	s.sessions.Hash(put)
	s.apiKeys.Hash(put)
	for _, u := range s.users.All() {
		if s.usersByEmail[identity.NormalizeEmail(u.Email)] != u {
			return fmt.Errorf("user %s is not found by e-mail", u.ID)
		}
	}
	readable := 0
	for _, k := range s.apiKeys.All() {
		if hash, ok := feature.ParseHash(k.Hash); ok {
			readable++
			if s.keysByHash[hash] != k {
				return fmt.Errorf("API key %s is not found by its hash", k.ID)
			}
		}
	}
	if len(s.usersByEmail) != s.users.Len() || len(s.keysByHash) != readable {
		return fmt.Errorf("%d users are found by %d e-mails, %d API keys by %d hashes", s.users.Len(), len(s.usersByEmail), readable, len(s.keysByHash))
	}
	return nil
}

// actor finds who acts and may do so.
func (s *State) actor(id, permission string) (*User, *refuse.Refusal) {
	u := s.users.Get(id)
	if u == nil || !u.Can(permission) {
		return nil, refuse.Forbidden("you need the permission %s for this; ask who manages your account", permission)
	}
	return u, nil
}

// User finds a user by id.
func (s *State) User(id string) (User, bool) {
	if u := s.users.Get(id); u != nil {
		return *u, true
	}
	return User{}, false
}

// UserByEmail finds a user by e-mail, compared trimmed and lower-cased.
func (s *State) UserByEmail(email string) (User, bool) {
	if u := s.usersByEmail[identity.NormalizeEmail(email)]; u != nil {
		return *u, true
	}
	return User{}, false
}

// Users lists the account's users, the oldest first.
func (s *State) Users() []User {
	return s.users.Sorted(func(x, y User) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}

// CountUsers is how many users the account has.
func (s *State) CountUsers() int { return s.users.Len() }

// HasAdmin reports whether one of the users is a system administrator.
func (s *State) HasAdmin() bool {
	for _, u := range s.users.All() {
		if u.Admin {
			return true
		}
	}
	return false
}

// Session finds a session by the hash of its token. Whether it has expired is
// the caller's to judge.
func (s *State) Session(tokenHash string) (Session, bool) {
	if x := s.sessions.Get(tokenHash); x != nil {
		return *x, true
	}
	return Session{}, false
}

// APIKeys lists the account's keys, the oldest first, also those revoked.
func (s *State) APIKeys() []APIKey {
	return s.apiKeys.Sorted(func(x, y APIKey) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}

// APIKey finds a key by its id.
func (s *State) APIKey(id string) (APIKey, bool) {
	if k := s.apiKeys.Get(id); k != nil {
		return *k, true
	}
	return APIKey{}, false
}

// EffectivePermissions are what a key may do now: its permissions that its creator
// has, and nothing once it is revoked.
func (s *State) EffectivePermissions(k *APIKey) []string {
	if k.RevokedMs != 0 {
		return nil
	}
	return s.permissionsOf(k)
}

// permissionsOf are those of a key that its creator has now, nil where the creator was
// removed.
func (s *State) permissionsOf(k *APIKey) (out []string) {
	creator := s.users.Get(k.CreatorID)
	if creator == nil {
		return nil
	}
	for _, x := range k.Permissions {
		if creator.Can(x) {
			out = append(out, x)
		}
	}
	return out
}
