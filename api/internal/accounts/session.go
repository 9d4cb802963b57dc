package accounts

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

// Session are the calls that sign people in and out.
func (a *API) Session() handler.Group {
	session := func(more ...shape.Field) *shape.Schema {
		return shape.Object(append(more,
			shape.Req("expires_at", shape.Instant("When it ends.")), shape.Req("account_id", shape.AccountID("")), shape.Req("app_id", shape.AppID("")), shape.Req("user_id", shape.UserID("")),
			shape.Req("email", shape.Text("owner@example.com", "")), shape.Req("name", shape.Text("Ann Lee", "")), shape.Req("permissions", shapes.Permissions("What the person may do.")),
			shape.Req("admin", shape.Boolean(false, "Whether the person administers the whole system.")),
		)...)
	}
	csrf := shape.Opt("csrf_token", shape.Text("Yk3…", "For a session in a cookie: to be sent as `X-CSRF-Token` with every call that changes something."))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: session", Title: "Session", About: "Signing in and out."}, Routes: []handler.Route{
		{Handle: a.signIn, Operation: operation.Operation{Method: "POST", Path: "/session", Permission: operation.Anybody, ID: "signIn", Summary: "Sign in", About: "After failed attempts the wait grows: for all attempts from the same address, and for attempts with the same e-mail from there. Failures elsewhere hold nobody up. A browser or program that shows that the person signed in with it before (`device_token`, or the cookie `muster_device`) waits for its own failures only.",
			Body: shape.Object(
				shape.Req("email", shape.Text("owner@example.com", "").Bytes(1, 512)), shape.Req("password", shape.Text("correct horse battery", "").Bytes(1, 1024)),
				shape.Opt("account_id", shape.AccountID("Which account, where the e-mail is known in several.")),
				shape.Opt("cookie", shape.Boolean(false, "Keep the tokens in cookies that scripts cannot read, instead of answering them.").Default(false)),
				shape.Opt("device_token", shape.Text("dev_Zm9v…", "What an earlier sign-in answered. One that is not valid is ignored.")),
			),
			Data: session(shape.Opt("token", shape.Text("ses_3f9a7c2e5d1b8046_Zm9v…", "The session's token; absent where it is in a cookie.")),
				shape.Opt("device_token", shape.Text("dev_Zm9v…", "To be sent with the next sign-in of this person: failures of others do not hold it up then. It is valid for a year, or until the password changes. Absent where it is in a cookie.")), csrf), Also: []int{429}}},
		a.signInLinkRoute(session(shape.Opt("token", shape.Text("ses_3f9a7c2e5d1b8046_Zm9v…", "As of a sign-in.")), shape.Opt("device_token", shape.Text("dev_Zm9v…", "As of a sign-in.")), csrf)),
		{Handle: a.getSession, Operation: operation.Operation{Method: "GET", Path: "/session", Permission: operation.SignedIn, ID: "getSession", Summary: "Read the session",
			Data: session(csrf, shape.Req("company", shape.Text("Example Ltd", "Name of the company.")),
				shape.Req("captured_channels", shape.List(shape.Word("", "email", "sms", "whatsapp", "im", "push"), "Channels whose messages the server keeps instead of sending them, see `/outbox`: e-mail where the server has no relay, the others where the account has no provider.")))}},
		{Handle: a.signOut, Operation: operation.Operation{Method: "DELETE", Path: "/session", Permission: operation.SignedIn, ID: "signOut", Summary: "Sign out"}},
		{Handle: a.changePassword, Operation: operation.Operation{Method: "PUT", Path: "/password", Permission: operation.SignedIn, ID: "changePassword", Summary: "Change your password", About: "All other sessions of the person end.",
			Body: shape.Object(shape.Req("current_password", shape.Text("correct horse battery", "").Bytes(0, 1024)), shape.Req("password", passwordShape("a longer battery staple", "The new one."))), Also: []int{429}}},
	}}
}

const (
	maxEmailBytes    = 512
	maxPasswordBytes = 1024
)

// The results of signing in, for metrics.
const (
	signInOK = iota
	signInRefused
	signInPaused
	signInResults
)

var errWrongPassword = &handler.Problem{Status: http.StatusUnauthorized, Message: "email or password is wrong"}

// signIn answers POST /session.
func (a *API) signIn(c *handler.Call) (any, error) {
	var in struct {
		Email       *string `json:"email"`
		Password    *string `json:"password"`
		AccountID   *string `json:"account_id"`
		Cookie      bool    `json:"cookie"`
		DeviceToken string  `json:"device_token"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Email == nil || *in.Email == "":
		return nil, handler.BadField("email", "email is missing; send the e-mail you sign in with")
	case in.Password == nil || *in.Password == "":
		return nil, handler.BadField("password", "password is missing")
	case len(*in.Email) > maxEmailBytes:
		return nil, handler.BadField("email", "email is longer than %d bytes", maxEmailBytes)
	case len(*in.Password) > maxPasswordBytes:
		return nil, handler.BadField("password", "password is longer than %d bytes", maxPasswordBytes)
	}
	who := usersQuery{*in.Email, in.AccountID}
	known, candidates, err := a.knownDevice(c, who, shownDevice(c.RequestCtx, in.DeviceToken))
	if err != nil {
		return nil, err
	}
	var attempt attempt
	checks := a.UnauthenticatedPasswords
	if known != nil {
		attempt, err = allowed(a.logins.beginKnown(*known))
		checks = a.passwords
	} else {
		attempt, err = allowed(a.logins.begin(*in.Email, c.RemoteIP()))
	}
	if err != nil {
		a.signIns[signInPaused].Inc()
		return nil, err
	}
	if candidates == nil {
		if candidates, err = a.usersByEmail(c.Ctx, who); err != nil {
			attempt.undo()
			return nil, err
		}
	}
	release, err := checks.Acquire(c.Ctx)
	if err != nil {
		attempt.undo()
		return nil, err
	}
	found, err := a.whose(candidates, *in.Password)
	release()
	if err != nil {
		return nil, err
	}
	if found == nil {
		a.signIns[signInRefused].Inc()
		return nil, errWrongPassword
	}
	answer, err := a.createSession(c, found, access.SessionCreate{IfPassword: found.User.PasswordVersion()}, in.Cookie)
	var refusal *resolver.Refusal
	if errors.As(err, &refusal) { // the password or the user went since it was looked up
		a.signIns[signInRefused].Inc()
		return nil, errWrongPassword
	}
	attempt.succeeded()
	if err == nil {
		a.signIns[signInOK].Inc()
	}
	return answer, err
}

// knownDevice returns the key of the device that a sign-in shows, nil when it shows
// none or one that is not known. candidates are nil when nothing was looked up.
func (a *API) knownDevice(c *handler.Call, who usersQuery, token string) (known *throttleKey, candidates []candidate, err error) {
	d, ok := parseDevice(token, a.opts.Now())
	if !ok {
		return nil, nil, nil
	}
	look, recognised := a.logins.lookAtDevice(c.RemoteIP())
	if !look {
		return nil, nil, nil
	}
	if candidates, err = a.usersByEmail(c.Ctx, who); err != nil {
		recognised() // no attempt was caught
		return nil, nil, err
	}
	if !d.knownTo(candidates, a.decoy) {
		return nil, candidates, nil
	}
	recognised()
	key := d.key()
	return &key, candidates, nil
}

// allowed turns the wait before an attempt into an error.
func allowed(x attempt, wait time.Duration) (attempt, error) {
	if wait <= 0 {
		return x, nil
	}
	wait = handler.WholeSeconds(wait)
	return x, &handler.Problem{Status: http.StatusTooManyRequests, RetryAfter: wait,
		Message: fmt.Sprintf("too many failed attempts to sign in; try again in %d seconds", int(wait.Seconds()))}
}

// whose finds the first person whose password it is, nil if there is none. Without
// candidates it takes as long as with one.
func (a *API) whose(candidates []candidate, text string) (*candidate, error) {
	if len(candidates) == 0 {
		_, err := password.Verify(a.decoy, text)
		return nil, err
	}
	for i := range candidates {
		right, err := password.Verify(candidates[i].User.PasswordHash, text)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", candidates[i].User.ID, err)
		}
		if right {
			return &candidates[i], nil
		}
	}
	return nil, nil
}

// sessionAnswer is a session as it is answered. The tokens are left out where they
// are in cookies: no script is to see them.
type sessionAnswer struct {
	Token       string   `json:"token,omitempty"`
	DeviceToken string   `json:"device_token,omitempty"`
	CSRFToken   string   `json:"csrf_token,omitempty"`
	ExpiresAt   string   `json:"expires_at"`
	AccountID   string   `json:"account_id"`
	AppID       string   `json:"app_id"`
	UserID      string   `json:"user_id"`
	Email       string   `json:"email"`
	Name        string   `json:"name"`
	Permissions []string `json:"permissions"`
	Admin       bool     `json:"admin"`
	// Company is the company's name, of an existing session alone: the node that
	// signs a user in may have no state of the account.
	Company string `json:"company,omitempty"`
}

func newSessionAnswer(account uint64, user *access.User, expiresMs int64) sessionAnswer {
	return sessionAnswer{
		ExpiresAt: record.Time(expiresMs), AccountID: resolver.AccountID(account), AppID: resolver.AppID(account),
		UserID: user.ID, Email: user.Email, Name: user.Name, Permissions: user.Permissions, Admin: user.Admin,
	}
}

// createSession signs a person in. command has what must still hold then.
func (a *API) createSession(c *handler.Call, p *candidate, command access.SessionCreate, cookie bool) (any, error) {
	token, err := tokens.New(a.opts.Rand, tokens.Session, p.Account)
	if err != nil {
		return nil, err
	}
	expires := a.opts.Now().Add(a.opts.SessionTTL).UnixMilli()
	command.UserID, command.TokenHash, command.ExpiresMs = p.User.ID, tokens.Hash(token), expires
	if _, err = a.opts.Node.Command(c.Ctx, p.Account, access.CommandSessionCreate, command); err != nil {
		return nil, err
	}
	device, err := newDeviceToken(a.opts.Rand, &p.User, a.opts.Now())
	if err != nil {
		return nil, err
	}
	out := newSessionAnswer(p.Account, &p.User, expires)
	if cookie {
		handler.SetSessionCookie(c.RequestCtx, token, a.opts.SessionTTL)
		setDeviceCookie(c.RequestCtx, device)
		out.CSRFToken = handler.CSRFToken(token)
	} else {
		out.Token, out.DeviceToken = token, device
	}
	return out, nil
}

// getSession answers GET /session.
func (a *API) getSession(c *handler.Call) (any, error) {
	out := struct {
		sessionAnswer
		CapturedChannels []string `json:"captured_channels"`
	}{sessionAnswer: newSessionAnswer(c.Account, &c.User, c.ExpiresMs)}
	out.CSRFToken = c.CSRF
	err := c.Read(func(v *resolver.View) error {
		out.Company = v.Company().Name
		out.CapturedChannels = a.opts.CapturedChannels(v)
		return nil
	})
	return out, err
}

// signOut answers DELETE /session.
func (a *API) signOut(c *handler.Call) (any, error) {
	err := c.Command(access.CommandSessionDelete, access.SessionDelete{TokenHash: c.TokenHash}, nil)
	if err == nil && c.CSRF != "" {
		handler.DropSessionCookie(c.RequestCtx)
	}
	return nil, err
}
