package access

import (
	"slices"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// User is a person who signs in.
type User struct {
	ID           string   `json:"id"`
	Email        string   `json:"email"` // as given; one user of an account has it
	Name         string   `json:"name,omitempty"`
	PasswordHash string   `json:"password_hash"` // argon2id, in its usual text form
	Permissions  []string `json:"permissions"`
	// Admin marks who manages the companies of the whole system.
	Admin     bool  `json:"admin,omitempty"`
	CreatedMs int64 `json:"created_ms,omitempty"`
}

// UserSave creates a user, or changes what is set of the one with the ID.
// ActorID is the user who does it, who can grant only permissions that they hold.
type UserSave struct {
	ActorID      string    `json:"actor_id"`
	ID           string    `json:"id,omitempty"`
	Email        *string   `json:"email,omitempty"`
	Name         *string   `json:"name,omitempty"`
	PasswordHash *string   `json:"password_hash,omitempty"` // argon2id, in its usual text form
	Permissions  *[]string `json:"permissions,omitempty"`
	Admin        *bool     `json:"admin,omitempty"`
}

// UserDelete removes a user, ends their sessions and revokes their API keys.
type UserDelete struct {
	ActorID string `json:"actor_id"`
	ID      string `json:"id"`
}

// PasswordSet changes a user's own password and ends all sessions of his but
// one.
type PasswordSet struct {
	ID           string `json:"id"`
	PasswordHash string `json:"password_hash"`
	// KeepSession is the hash of the token of the session that stays.
	KeepSession string `json:"keep_session"`
	// IfPassword is the version of the current password that was verified, see
	// [User.PasswordVersion]. Apply judges it: another user may have set a password since.
	// "" in old logs.
	IfPassword string `json:"if_password,omitempty"`
}

// Can reports whether a user has a permission.
func (u *User) Can(permission string) bool { return slices.Contains(u.Permissions, permission) }

// PasswordVersion names the user's password: a new one has another version. It tells no
// more than the stored hash, which is in the log as well.
func (u *User) PasswordVersion() string { return feature.Version(u.PasswordHash) }

// covers reports whether u has all that other has.
func (u *User) covers(other *User) bool {
	_, short := u.lacks(other.Permissions)
	return (u.Admin || !other.Admin) && !short
}

// lacks finds the first of the permissions that u does not have.
func (u *User) lacks(permissions []string) (lacking string, short bool) {
	for _, p := range permissions {
		if !u.Can(p) {
			return p, true
		}
	}
	return "", false
}

func (s *State) createUser(tx *feature.Tx, c UserSave) *refuse.Refusal {
	actor, r := s.actor(c.ActorID, permitUsers)
	switch {
	case r != nil:
		return r
	case s.users.Len() >= MaxUsers:
		return refuse.AtLimit("", "this account has %d users, the most it can have", MaxUsers)
	case c.Email == nil:
		return refuse.Invalid("email", "email is missing")
	case c.PasswordHash == nil:
		return refuse.Invalid("password", "password is missing")
	}
	u := &User{ID: feature.NewID("usr_", tx.Record), CreatedMs: tx.AtMs, Permissions: []string{}}
	if r := s.change(u, actor, &c); r != nil {
		return r
	}
	s.putUser(tx, u)
	tx.Reply = map[string]string{"id": u.ID}
	return nil
}

func (s *State) updateUser(tx *feature.Tx, c UserSave) *refuse.Refusal {
	actor, r := s.actor(c.ActorID, permitUsers)
	if r != nil {
		return r
	}
	old := s.users.Get(c.ID)
	switch {
	case old == nil:
		return refuse.NotFound("id", "there is no user with this id")
	case !actor.covers(old):
		return refuse.Forbidden("this user may do more than you; ask somebody who may do as much")
	case actor == old && c.PasswordHash != nil:
		return refuse.Forbidden("your own password is changed with the one you have")
	}
	u := *old
	if r := s.change(&u, actor, &c); r != nil {
		return r
	}
	if r := s.leaves(old, &u); r != nil {
		return r
	}
	s.putUser(tx, &u)
	if c.PasswordHash != nil {
		s.endSessions(tx, u.ID, "")
	}
	tx.Reply = map[string]string{"id": u.ID}
	return nil
}

// change sets in u what c sets.
func (s *State) change(u, actor *User, c *UserSave) *refuse.Refusal {
	if c.Email != nil {
		normal := identity.NormalizeEmail(*c.Email)
		switch other := s.usersByEmail[normal]; {
		case normal == "" || len(*c.Email) > MaxUserEmailBytes:
			return refuse.Invalid("email", "email must have 1 to %d bytes", MaxUserEmailBytes)
		case other != nil && other.ID != u.ID:
			return refuse.Conflicts("email", "a user with this email exists")
		}
		u.Email = *c.Email
	}
	if c.Name != nil {
		if len(*c.Name) > refuse.MaxNameBytes {
			return refuse.Invalid("name", "name must have at most %d bytes", refuse.MaxNameBytes)
		}
		u.Name = *c.Name
	}
	if c.PasswordHash != nil {
		u.PasswordHash = *c.PasswordHash
	}
	if c.Permissions != nil {
		list, r := granted(actor, *c.Permissions)
		if r != nil {
			return r
		}
		u.Permissions = list
	}
	if c.Admin != nil {
		if *c.Admin && !actor.Admin {
			return refuse.Forbidden("admin: only a system administrator makes others one")
		}
		u.Admin = *c.Admin
	}
	return nil
}

// granted is the list of permissions in order, each once, all of which the
// actor has.
func granted(actor *User, permissions []string) ([]string, *refuse.Refusal) {
	list := slices.Compact(slices.Sorted(slices.Values(permissions)))
	if len(list) > maxPermissions {
		return nil, refuse.Invalid("permissions", "permissions must have at most %d values", maxPermissions)
	}
	for _, p := range list {
		if len(p) > maxPermissionBytes {
			return nil, refuse.Invalid("permissions", "permissions: there is no permission of %d bytes", len(p))
		}
	}
	if lacking, short := actor.lacks(list); short {
		r := refuse.Forbidden("permissions: you do not have %q yourself", lacking)
		r.Field = "permissions"
		return nil, r
	}
	if list == nil {
		list = []string{}
	}
	return list, nil
}

// leaves refuses a change after which no user could manage the account's users,
// or the system. after is nil when the user goes.
func (s *State) leaves(before, after *User) *refuse.Refusal {
	others := func(is func(*User) bool) bool {
		for _, u := range s.users.All() {
			if u.ID != before.ID && is(u) {
				return true
			}
		}
		return false
	}
	manages := func(u *User) bool { return u.Can(permitUsers) }
	if manages(before) && (after == nil || !manages(after)) && !others(manages) {
		return refuse.Conflicts("", "nobody else has %s; give it to somebody first", permitUsers)
	}
	admin := func(u *User) bool { return u.Admin }
	if admin(before) && (after == nil || !admin(after)) && !others(admin) {
		return refuse.Conflicts("", "there is no other system administrator; make somebody one first")
	}
	return nil
}

func (s *State) deleteUser(tx *feature.Tx, c UserDelete) *refuse.Refusal {
	actor, r := s.actor(c.ActorID, permitUsers)
	if r != nil {
		return r
	}
	u := s.users.Get(c.ID)
	switch {
	case u == nil:
		return refuse.NotFound("id", "there is no user with this id")
	case !actor.covers(u):
		return refuse.Forbidden("this user may do more than you; ask somebody who may do as much")
	}
	if r := s.leaves(u, nil); r != nil {
		return r
	}
	s.endSessions(tx, u.ID, "")
	s.users.Delete(tx, u.ID)
	delete(s.usersByEmail, identity.NormalizeEmail(u.Email))
	return nil
}

func (s *State) setPassword(tx *feature.Tx, c PasswordSet) *refuse.Refusal {
	old := s.users.Get(c.ID)
	if old == nil {
		return refuse.NotFound("id", "there is no user with this id")
	}
	if c.IfPassword != "" && c.IfPassword != old.PasswordVersion() {
		return refuse.Conflicts("if_password", "the password was changed meanwhile; send the present one")
	}
	u := *old
	u.PasswordHash = c.PasswordHash
	s.putUser(tx, &u)
	s.endSessions(tx, u.ID, c.KeepSession)
	return nil
}

// putUser puts a user where no other has the id or the e-mail, or in the place
// of the one with the id.
func (s *State) putUser(tx *feature.Tx, u *User) {
	if old := s.users.Get(u.ID); old != nil {
		delete(s.usersByEmail, identity.NormalizeEmail(old.Email))
	}
	s.users.Put(tx, u.ID, u)
	s.usersByEmail[identity.NormalizeEmail(u.Email)] = u
}

// Found gives a new account its first user, and a key of that user's.
func (s *State) Found(tx *feature.Tx, u User, k APIKey) {
	u.CreatedMs = tx.AtMs
	s.putUser(tx, &u)
	k.CreatedMs, k.CreatorID = tx.AtMs, u.ID
	s.putKey(tx, &k)
}
