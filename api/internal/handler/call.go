package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/target"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

// Call is one request.
type Call struct {
	*fasthttp.RequestCtx
	chain *Chain
	// Ctx ends with the call's time.
	Ctx context.Context
	// here and leave are those of UntilGone, nil before it is asked for.
	here  context.Context
	leave context.CancelCauseFunc
	// Account, User and TokenHash are set unless the call is public.
	Account   uint64
	User      access.User
	TokenHash string
	// CSRF is the token that a call needs whose session is in a cookie; "" where
	// the session is in a header.
	CSRF      string
	ExpiresMs int64 // end of the session
	op        *operation.Operation
	Payload   []byte // the body, empty where there is none
	// shared is set for a caller with an API key instead of a session.
	shared *sharing
}

// Serve runs the chain that all calls share.
func (h *Chain) Serve(r *Route) fasthttp.RequestHandler {
	name := r.Method + " " + r.Path
	statuses := newStatusCounters(h.opts.Metrics, name)
	return func(rc *fasthttp.RequestCtx) {
		data, err := h.run(rc, r)
		if err == nil && data != Streaming {
			err = writeData(rc, h.opts.Memory, data)
		}
		if err != nil {
			p, ours := Classify(err)
			if ours {
				h.opts.Logger.Error("console call failed", "route", name, "error", err)
			}
			WriteProblem(rc, p)
		}
		statuses.inc(rc.Response.StatusCode())
	}
}

// Streaming is what a handler returns that writes its own answer.
var Streaming any = &struct{ int }{}

func (h *Chain) run(rc *fasthttp.RequestCtx, r *Route) (data any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = panics.Count(h.opts.Metrics, fault)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(r.Timeout, h.opts.ReadTimeout))
	defer cancel()
	c := &Call{RequestCtx: rc, chain: h, Ctx: ctx}
	if r.Permission != operation.Anybody {
		if err := c.authenticate(); err != nil {
			return nil, err
		}
		ingest.Authenticated(rc)
		if err := c.may(r.Permission); err != nil {
			return nil, err
		}
	}
	if field := target.Check(rc); field != "" {
		return nil, BadField(field, "%s must be %s", field, target.Reason)
	}
	c.op = &r.Operation
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.answer(r.Handle)
}

// may refuses a caller without the permission that a call needs.
func (c *Call) may(need string) error {
	switch {
	case need == operation.SignedIn, need == operation.SystemAdmin && c.User.Admin, c.User.Can(need):
		return nil
	case need == operation.SystemAdmin:
		return &Problem{Status: http.StatusForbidden, Message: "only administrators of the system may do this"}
	}
	return &Problem{Status: http.StatusForbidden, Message: "you need the permission " + need + " for this; ask who manages your account"}
}

// The one answer to a token that does not hold, whatever is wrong with it.
var ErrNotSignedIn = &Problem{Status: http.StatusUnauthorized,
	Message: `sign in first: POST ` + operation.SurfaceConsole.Prefix + `/session, and send its token as "Authorization: Bearer <token>"`}

// authenticate finds the session of a call's token. The token names its
// account; the state knows it by its hash only.
func (c *Call) authenticate() error {
	token, inCookie, ok := SessionToken(c.RequestCtx)
	if !ok {
		return ErrNotSignedIn
	}
	account, ok := tokens.Account(token, tokens.Session)
	if !ok {
		return ErrNotSignedIn
	}
	c.Account, c.TokenHash = account, tokens.Hash(token)
	found, err := c.findSession()
	switch {
	case errors.Is(err, resolver.ErrNoAccount), err == nil && !found:
		return ErrNotSignedIn
	case err != nil:
		return err
	case inCookie:
		c.CSRF = CSRFToken(token)
		return c.checkCSRF()
	}
	return nil
}

// findSession looks for the session of the call's token and sets its user.
func (c *Call) findSession() (found bool, err error) {
	err = c.Read(func(v *resolver.View) error {
		s, ok := v.Access().Session(c.TokenHash)
		if !ok || s.ExpiresMs <= c.chain.opts.Now().UnixMilli() || !v.Active() {
			return nil
		}
		c.ExpiresMs = s.ExpiresMs
		c.User, found = v.Access().User(s.UserID)
		return nil
	})
	return found, err
}

// Bearer is the token in a header Authorization of the scheme Bearer.
func Bearer(header []byte) (token string, ok bool) {
	scheme, token, ok := strings.Cut(string(header), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "bearer") && token != ""
}

// Read takes the barrier and runs fn on the account's state.
func (c *Call) Read(fn func(*resolver.View) error) error {
	return c.chain.opts.Node.Read(c.Ctx, c.Account, fn)
}

// Command runs a command of the call's account and reads its reply into v, which
// may be nil.
func (c *Call) Command(name string, args, v any) error {
	reply, err := c.chain.opts.Node.CommandBy(c.Ctx, c.Account, name, args, c.ChangedBy())
	if err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(reply, v); err != nil {
		return fmt.Errorf("reply to %s: %w", name, err)
	}
	return nil
}

// CommandID runs a command that answers an id.
func (c *Call) CommandID(name string, args any) (string, error) {
	var saved struct{ ID string }
	err := c.Command(name, args, &saved)
	return saved.ID, err
}

// Stopping is closed when the service stops.
func (c *Call) Stopping() <-chan struct{} { return c.chain.stop }

// Param is what the path has in place of a part in braces, "" if it has not got
// one.
func (c *Call) Param(name string) string {
	if c.shared != nil {
		return c.shared.params[name]
	}
	text, _ := c.UserValue(name).(string)
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// PathID is the path's parameter.
func (c *Call) PathID() string {
	if c.shared != nil {
		return c.shared.params["id"]
	}
	s, _ := c.UserValue("id").(string)
	return s
}
