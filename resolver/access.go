package resolver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Permissions that the state machine itself asks for.
const (
	permitUsers   = "users:write"
	permitAPIKeys = "api_keys:write"
)

// The bounds of people.
const (
	maxUsers           = 1000 // per account
	maxPermissions     = 100  // per user or key
	maxPermissionBytes = 64
	maxUserEmailBytes  = 512
)

// UserSave creates a user, or changes what is set of the one with the ID.
// ActorID is who does it: nobody gives what he has not got himself.
type UserSave struct {
	ActorID      string    `json:"actor_id"`
	ID           string    `json:"id,omitempty"`
	Email        *string   `json:"email,omitempty"`
	Name         *string   `json:"name,omitempty"`
	PasswordHash *string   `json:"password_hash,omitempty"` // argon2id, in its usual text form
	Permissions  *[]string `json:"permissions,omitempty"`
	Admin        *bool     `json:"admin,omitempty"`
}

// UserDelete removes a user, who is signed out and whose API keys hold no
// longer.
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
}

// Can tells whether a user has a permission.
func (u *User) Can(permission string) bool { return slices.Contains(u.Permissions, permission) }

// covers tells whether u has all that other has.
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

// addUser puts a user where no other has the id or the e-mail, or in the place
// of the one with the id.
func (a *account) addUser(u *User) {
	if old := a.users[u.ID]; old != nil {
		delete(a.emails, identity.NormalizeEmail(old.Email))
	}
	a.users[u.ID] = u
	a.emails[identity.NormalizeEmail(u.Email)] = u
}

func (m *Machine) saveUser(a *account, u *User) {
	a.addUser(u)
	m.store.PutEntity(state.EntityKey(a.number, state.EntityUser, u.ID), must.JSON(u))
}

// actor finds who acts and what he may.
func (a *account) actor(id, permission string) (*User, *Refusal) {
	u := a.users[id]
	if u == nil || !u.Can(permission) {
		return nil, forbidden("you need the permission %s for this; ask who manages your account", permission)
	}
	return u, nil
}

func (m *Machine) createUser(cmd *command, c UserSave) *Refusal {
	a := cmd.account
	actor, r := a.actor(c.ActorID, permitUsers)
	switch {
	case r != nil:
		return r
	case len(a.users) >= maxUsers:
		return atLimit("", "this account has %d users, the most it can have", maxUsers)
	case c.Email == nil:
		return invalid("email", "email is missing")
	case c.PasswordHash == nil:
		return invalid("password", "password is missing")
	}
	u := &User{ID: newID("usr_", cmd.env.ID), CreatedMs: m.logTime, Permissions: []string{}}
	if r := a.change(u, actor, &c); r != nil {
		return r
	}
	m.saveUser(a, u)
	cmd.reply(map[string]string{"id": u.ID})
	return nil
}

func (m *Machine) updateUser(cmd *command, c UserSave) *Refusal {
	a := cmd.account
	actor, r := a.actor(c.ActorID, permitUsers)
	if r != nil {
		return r
	}
	old := a.users[c.ID]
	switch {
	case old == nil:
		return notFound("id", "there is no user with this id")
	case !actor.covers(old):
		return forbidden("this user may do more than you; ask somebody who may do as much")
	case actor == old && c.PasswordHash != nil:
		return forbidden("your own password is changed with the one you have")
	}
	u := *old
	if r := a.change(&u, actor, &c); r != nil {
		return r
	}
	if r := a.leaves(old, &u); r != nil {
		return r
	}
	m.saveUser(a, &u)
	if c.PasswordHash != nil {
		m.endSessions(a, u.ID, "")
	}
	cmd.reply(map[string]string{"id": u.ID})
	return nil
}

// change sets in u what c sets.
func (a *account) change(u, actor *User, c *UserSave) *Refusal {
	if c.Email != nil {
		normal := identity.NormalizeEmail(*c.Email)
		switch other := a.emails[normal]; {
		case normal == "" || len(*c.Email) > maxUserEmailBytes:
			return invalid("email", "email must have 1 to %d bytes", maxUserEmailBytes)
		case other != nil && other.ID != u.ID:
			return conflicts("email", "a user with this email exists")
		}
		u.Email = *c.Email
	}
	if c.Name != nil {
		if len(*c.Name) > maxNameBytes {
			return invalid("name", "name must have at most %d bytes", maxNameBytes)
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
			return forbidden("admin: only a system administrator makes others one")
		}
		u.Admin = *c.Admin
	}
	return nil
}

// granted is the list of permissions in order, each once, all of which the
// actor has.
func granted(actor *User, permissions []string) ([]string, *Refusal) {
	list := slices.Compact(slices.Sorted(slices.Values(permissions)))
	if len(list) > maxPermissions {
		return nil, invalid("permissions", "permissions must have at most %d values", maxPermissions)
	}
	for _, p := range list {
		if len(p) > maxPermissionBytes {
			return nil, invalid("permissions", "permissions: there is no permission of %d bytes", len(p))
		}
	}
	if lacking, short := actor.lacks(list); short {
		r := forbidden("permissions: you do not have %q yourself", lacking)
		r.Field = "permissions"
		return nil, r
	}
	if list == nil {
		list = []string{}
	}
	return list, nil
}

// leaves refuses a change after which nobody could manage the account's users,
// or the system. after is nil when the user goes.
func (a *account) leaves(before, after *User) *Refusal {
	others := func(is func(*User) bool) bool {
		for _, u := range a.users {
			if u.ID != before.ID && is(u) {
				return true
			}
		}
		return false
	}
	manages := func(u *User) bool { return u.Can(permitUsers) }
	if manages(before) && (after == nil || !manages(after)) && !others(manages) {
		return conflicts("", "nobody else has %s; give it to somebody first", permitUsers)
	}
	admin := func(u *User) bool { return u.Admin }
	if admin(before) && (after == nil || !admin(after)) && !others(admin) {
		return conflicts("", "there is no other system administrator; make somebody one first")
	}
	return nil
}

func (m *Machine) deleteUser(cmd *command, c UserDelete) *Refusal {
	a := cmd.account
	actor, r := a.actor(c.ActorID, permitUsers)
	if r != nil {
		return r
	}
	u := a.users[c.ID]
	switch {
	case u == nil:
		return notFound("id", "there is no user with this id")
	case !actor.covers(u):
		return forbidden("this user may do more than you; ask somebody who may do as much")
	}
	if r := a.leaves(u, nil); r != nil {
		return r
	}
	m.endSessions(a, u.ID, "")
	delete(a.users, u.ID)
	delete(a.emails, identity.NormalizeEmail(u.Email))
	m.store.PutEntity(state.EntityKey(a.number, state.EntityUser, u.ID), nil)
	return nil
}

func (m *Machine) setPassword(cmd *command, c PasswordSet) *Refusal {
	a := cmd.account
	old := a.users[c.ID]
	if old == nil {
		return notFound("id", "there is no user with this id")
	}
	u := *old
	u.PasswordHash = c.PasswordHash
	m.saveUser(a, &u)
	m.endSessions(a, u.ID, c.KeepSession)
	return nil
}

// endSessions signs a user out everywhere but in one session.
func (m *Machine) endSessions(a *account, userID, keep string) {
	for token, s := range a.sessions {
		if s.UserID == userID && token != keep {
			m.dropSession(a, token)
		}
	}
}

func forbidden(format string, args ...any) *Refusal {
	r := invalid("", format, args...)
	r.Code = "forbidden"
	return r
}

func conflicts(field, format string, args ...any) *Refusal {
	r := invalid(field, format, args...)
	r.Code = "conflict"
	return r
}

// UserByEmail finds a user by e-mail, compared trimmed and lower-cased.
func (v *View) UserByEmail(email string) (User, bool) {
	if u := v.a.emails[identity.NormalizeEmail(email)]; u != nil {
		return *u, true
	}
	return User{}, false
}

// Users lists the account's users, the oldest first.
func (v *View) Users() []User {
	return sortedValues(v.a.users, func(x, y User) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}

func sortedValues[T any](m map[string]*T, compare func(x, y T) int) []T {
	out := make([]T, 0, len(m))
	for v := range maps.Values(m) {
		out = append(out, *v)
	}
	slices.SortFunc(out, compare)
	return out
}
