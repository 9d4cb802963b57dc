package accounts

import (
	"context"
	"errors"
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

// Users are the calls about an account's users.
func (a *API) Users() handler.Group {
	email := shape.Text("ann@example.com", "What the person signs in with.").Bytes(1, 512)
	rest := []shape.Field{shape.Opt("name", shape.Text("Ann Lee", "").Bytes(0, 200)), shape.Opt("admin", shape.Boolean(false, "Only administrators of the system make others so."))}
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: users", Title: "Users", About: "People of the account. A user can grant only permissions that they have."}, Routes: []handler.Route{
		{Handle: a.listUsers, Operation: operation.Operation{Method: "GET", Path: "/users", Permission: "users:read", ID: "listUsers", Summary: "List users", About: "The oldest first.", Data: shape.List(userShape, ""), Paged: true}},
		{Handle: a.createUser, Operation: operation.Operation{Method: "POST", Path: "/users", Permission: "users:write", ID: "createUser", Summary: "Add a user",
			Body: shape.Object(append([]shape.Field{shape.Req("email", email), shape.Req("password", passwordShape("correct horse battery", "")), shape.Req("permissions", shapes.Permissions("What the person may do."))}, rest...)...), Data: userShape}},
		{Handle: a.getUser, Operation: operation.Operation{Method: "GET", Path: "/users/{id}", Permission: "users:read", ID: "getUser", Summary: "Read a user", Data: userShape}},
		{Handle: a.updateUser, Operation: operation.Operation{Method: "PATCH", Path: "/users/{id}", Permission: "users:write", ID: "updateUser", Summary: "Change a user", About: "Omitted fields keep their values. API keys that the person made narrow with their permissions.",
			Body: shape.Object(append([]shape.Field{shape.Opt("email", email), shape.Opt("password", passwordShape("correct horse battery", "")), shape.Opt("permissions", shapes.Permissions(""))}, rest...)...), Data: userShape}},
		{Handle: a.deleteUser, Operation: operation.Operation{Method: "DELETE", Path: "/users/{id}", Permission: "users:write", ID: "deleteUser", Summary: "Remove a user", About: "The person's sessions end, and keys they made stop working."}},
	}}
}

// user is a person as they are answered.
type user struct {
	ID          string   `json:"_id"`
	Email       string   `json:"email"`
	Name        string   `json:"name"`
	Permissions []string `json:"permissions"`
	// Admin marks administrators of the whole system.
	Admin     bool   `json:"admin"`
	CreatedAt string `json:"created_at"`
}

func newUser(u *access.User) user {
	return user{ID: u.ID, Email: u.Email, Name: u.Name, Permissions: u.Permissions, Admin: u.Admin, CreatedAt: record.Time(u.CreatedMs)}
}

// userBody is the body of calls that set fields of a user.
type userBody struct {
	Email       *string   `json:"email"`
	Name        *string   `json:"name"`
	Password    *string   `json:"password"`
	Permissions *[]string `json:"permissions"`
	Admin       *bool     `json:"admin"`
}

// minPasswordBytes is the length of the shortest password that is taken.
const minPasswordBytes = 12

func checkPassword(field, text string) error {
	if len(text) < minPasswordBytes || len(text) > maxPasswordBytes {
		return handler.BadField(field, "%s must have %d to %d bytes", field, minPasswordBytes, maxPasswordBytes)
	}
	return nil
}

// checkPermissions refuses permissions that this kind of holder may not have.
func checkPermissions(list, known []string, fault string) error {
	for i, p := range list {
		if slices.Contains(known, p) {
			continue
		}
		says := fault
		if near := jsonform.Near(p, known); near != "" && !slices.Contains(operation.UserPermissions(), p) {
			says = "is no permission; did you mean " + near + "?"
		}
		return handler.BadField("permissions", "permissions[%d] %.60q %s", i, p, says)
	}
	return nil
}

// command turns the body into a command's arguments.
func (b *userBody) command(ctx context.Context, a *API, actor, id string) (access.UserSave, error) {
	out := access.UserSave{ActorID: actor, ID: id, Email: b.Email, Name: b.Name, Permissions: b.Permissions, Admin: b.Admin}
	if b.Permissions != nil {
		if err := checkPermissions(*b.Permissions, operation.UserPermissions(), "is no permission; those there are have the form contacts:read"); err != nil {
			return out, err
		}
	}
	if b.Password != nil {
		if err := checkPassword("password", *b.Password); err != nil {
			return out, err
		}
		hash, err := a.hashPassword(ctx, *b.Password)
		if err != nil {
			return out, err
		}
		out.PasswordHash = &hash
	}
	return out, nil
}

// hashPassword waits for its turn: each hash takes its memory.
func (a *API) hashPassword(ctx context.Context, text string) (string, error) {
	release, err := a.passwords.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return password.Hash(a.opts.Rand, text, a.opts.Password)
}

// listUsers answers GET /users, the oldest first.
func (a *API) listUsers(c *handler.Call) (any, error) {
	return handler.OldestFirst(c, func(v *resolver.View) []access.User { return v.Access().Users() }, func(u *access.User) paging.Age { return paging.Age{CreatedMs: u.CreatedMs, ID: u.ID} },
		func(_ *resolver.View, u *access.User) user { return newUser(u) })
}

// getUser answers GET /users/{id}.
func (a *API) getUser(c *handler.Call) (any, error) { return a.answerUser(c, c.PathID()) }

func (a *API) answerUser(c *handler.Call, id string) (any, error) {
	var u access.User
	found := false
	err := c.Read(func(v *resolver.View) error {
		u, found = v.Access().User(id)
		return nil
	})
	if err == nil && !found {
		err = handler.NotFound("there is no user with this id")
	}
	if err != nil {
		return nil, err
	}
	return newUser(&u), nil
}

// createUser answers POST /users.
func (a *API) createUser(c *handler.Call) (any, error) {
	var in userBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Email == nil:
		return nil, handler.BadField("email", "email is missing; send the e-mail the person signs in with")
	case in.Password == nil:
		return nil, handler.BadField("password", "password is missing")
	case in.Permissions == nil:
		return nil, handler.BadField("permissions", "permissions is missing; list what the person may do")
	}
	return a.saveUser(c, access.CommandUserCreate, "", &in)
}

// updateUser answers PATCH /users/{id}: what is left out stays.
func (a *API) updateUser(c *handler.Call) (any, error) {
	var in userBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	return a.saveUser(c, access.CommandUserUpdate, c.PathID(), &in)
}

func (a *API) saveUser(c *handler.Call, command, id string, in *userBody) (any, error) {
	args, err := in.command(c.Ctx, a, c.User.ID, id)
	if err != nil {
		return nil, err
	}
	id, err = c.CommandID(command, args)
	if err != nil {
		return nil, err
	}
	return a.answerUser(c, id)
}

// deleteUser answers DELETE /users/{id}.
func (a *API) deleteUser(c *handler.Call) (any, error) {
	return nil, c.Command(access.CommandUserDelete, access.UserDelete{ActorID: c.User.ID, ID: c.PathID()}, nil)
}

var errWrongCurrentPassword = handler.BadField("current_password", "current_password is wrong")

// changePassword answers PUT /password: a person's own. All other sessions of
// theirs end.
func (a *API) changePassword(c *handler.Call) (any, error) {
	var in struct {
		Current  *string `json:"current_password"`
		Password *string `json:"password"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Current == nil || len(*in.Current) > maxPasswordBytes:
		return nil, handler.BadField("current_password", "current_password is missing or too long; send the password you have")
	case in.Password == nil:
		return nil, handler.BadField("password", "password is missing")
	}
	if err := checkPassword("password", *in.Password); err != nil {
		return nil, err
	}
	// A stolen session must not serve to find out the password.
	attempt, err := allowed(a.logins.beginKnown(newThrottleKey("s", []byte(c.TokenHash))))
	if err != nil {
		return nil, err
	}
	release, err := a.passwords.Acquire(c.Ctx)
	if err != nil {
		attempt.undo()
		return nil, err
	}
	found, err := a.whose([]candidate{{c.Account, c.User}}, *in.Current)
	release()
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, errWrongCurrentPassword
	}
	attempt.succeeded()
	hash, err := a.hashPassword(c.Ctx, *in.Password)
	if err != nil {
		return nil, err
	}
	err = c.Command(access.CommandPasswordSet, access.PasswordSet{ID: c.User.ID, PasswordHash: hash, KeepSession: c.TokenHash, IfPassword: c.User.PasswordVersion()}, nil)
	var refusal *resolver.Refusal
	if errors.As(err, &refusal) && refusal.Code == "conflict" { // another password was set since it was verified
		return nil, errWrongCurrentPassword
	}
	if err != nil {
		return nil, err
	}
	return nil, a.keepDevice(c, hash)
}

// keepDevice keeps the browser known whose person has a new password.
func (a *API) keepDevice(c *handler.Call, passwordHash string) error {
	if c.CSRF == "" { // no browser
		return nil
	}
	u := c.User
	u.PasswordHash = passwordHash
	device, err := newDeviceToken(a.opts.Rand, &u, a.opts.Now())
	if err == nil {
		setDeviceCookie(c.RequestCtx, device)
	}
	return err
}
