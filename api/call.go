package api

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

// call is one request.
type call struct {
	*fasthttp.RequestCtx
	chain *chain
	// ctx ends with the call's time.
	ctx context.Context
	// here and leave are those of untilGone, nil before it is asked for.
	here  context.Context
	leave context.CancelCauseFunc
	// account, user and tokenHash are set unless the call is public.
	account   uint64
	user      access.User
	tokenHash string
	// csrf is the token that a call needs whose session is in a cookie; "" where
	// the session is in a header.
	csrf      string
	expiresMs int64 // end of the session
	op        *operation.Operation
	payload   []byte // the body, empty where there is none
	// shared is set for a caller with an API key instead of a session.
	shared *sharing
}

// serve runs the chain that all calls share.
func (h *chain) serve(r *route) fasthttp.RequestHandler {
	name := r.Method + " " + r.Path
	statuses := newStatusCounters(h.opts.Metrics, name)
	return func(rc *fasthttp.RequestCtx) {
		data, err := h.run(rc, r)
		if err == nil && data != streaming {
			err = writeData(rc, h.opts.Memory, data)
		}
		if err != nil {
			p, ours := classify(err)
			if ours {
				h.opts.Logger.Error("console call failed", "route", name, "error", err)
			}
			writeProblem(rc, p)
		}
		statuses.inc(rc.Response.StatusCode())
	}
}

// streaming is what a handler returns that writes its own answer.
var streaming any = &struct{ int }{}

func (h *chain) run(rc *fasthttp.RequestCtx, r *route) (data any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = panics.Count(h.opts.Metrics, fault)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(r.Timeout, h.opts.ReadTimeout))
	defer cancel()
	c := &call{RequestCtx: rc, chain: h, ctx: ctx}
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
		return nil, badField(field, "%s must be %s", field, target.Reason)
	}
	c.op = &r.Operation
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.answer(r.handle)
}

// may refuses a caller without the permission that a call needs.
func (c *call) may(need string) error {
	switch {
	case need == operation.SignedIn, need == operation.SystemAdmin && c.user.Admin, c.user.Can(need):
		return nil
	case need == operation.SystemAdmin:
		return &problem{status: http.StatusForbidden, message: "only administrators of the system may do this"}
	}
	return &problem{status: http.StatusForbidden, message: "you need the permission " + need + " for this; ask who manages your account"}
}

// The one answer to a token that does not hold, whatever is wrong with it.
var errNotSignedIn = &problem{status: http.StatusUnauthorized,
	message: `sign in first: POST ` + operation.SurfaceConsole.Prefix + `/session, and send its token as "Authorization: Bearer <token>"`}

// authenticate finds the session of a call's token. The token names its
// account; the state knows it by its hash only.
func (c *call) authenticate() error {
	token, inCookie, ok := sessionToken(c.RequestCtx)
	if !ok {
		return errNotSignedIn
	}
	account, ok := tokens.Account(token, tokens.Session)
	if !ok {
		return errNotSignedIn
	}
	c.account, c.tokenHash = account, tokens.Hash(token)
	found, err := c.findSession()
	switch {
	case errors.Is(err, resolver.ErrNoAccount), err == nil && !found:
		return errNotSignedIn
	case err != nil:
		return err
	case inCookie:
		c.csrf = csrfToken(token)
		return c.checkCSRF()
	}
	return nil
}

// findSession looks for the session of the call's token and sets its user.
func (c *call) findSession() (found bool, err error) {
	err = c.read(func(v *resolver.View) error {
		s, ok := v.Access().Session(c.tokenHash)
		if !ok || s.ExpiresMs <= c.chain.opts.Now().UnixMilli() || !v.Active() {
			return nil
		}
		c.expiresMs = s.ExpiresMs
		c.user, found = v.Access().User(s.UserID)
		return nil
	})
	return found, err
}

func bearer(header []byte) (token string, ok bool) {
	scheme, token, ok := strings.Cut(string(header), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "bearer") && token != ""
}

// read takes the barrier and runs fn on the account's state.
func (c *call) read(fn func(*resolver.View) error) error {
	return c.chain.opts.Node.Read(c.ctx, c.account, fn)
}

// command runs a command of the call's account and reads its reply into v, which
// may be nil.
func (c *call) command(name string, args, v any) error {
	reply, err := c.chain.opts.Node.CommandBy(c.ctx, c.account, name, args, c.by())
	if err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(reply, v); err != nil {
		return fmt.Errorf("reply to %s: %w", name, err)
	}
	return nil
}

// commandID runs a command that answers an id.
func (c *call) commandID(name string, args any) (string, error) {
	var saved struct{ ID string }
	err := c.command(name, args, &saved)
	return saved.ID, err
}

// stopping is closed when the service stops.
func (c *call) stopping() <-chan struct{} { return c.chain.stop }

// param is what the path has in place of a part in braces, "" if it has not got
// one.
func (c *call) param(name string) string {
	if c.shared != nil {
		return c.shared.params[name]
	}
	text, _ := c.UserValue(name).(string)
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// id is the path's parameter.
func (c *call) id() string {
	if c.shared != nil {
		return c.shared.params["id"]
	}
	s, _ := c.UserValue("id").(string)
	return s
}
