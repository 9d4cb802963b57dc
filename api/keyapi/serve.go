package keyapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/target"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/resolver"
)

// call is one request of a key that is let in.
type call struct {
	*fasthttp.RequestCtx
	api *API
	// ctx ends with the request's time.
	ctx context.Context
	key resolver.KeyAccess
	// userID is the signed-in person, "" where a key makes the call.
	userID string
	// self is the e-mail of the signed-in user, "" for an API key.
	self string
	// params are the texts in place of the parts of the path in braces.
	params map[string]string
	now    time.Time // when the request came
	op     *operation.Operation
	// payload is the body without white space around it, empty where there is none.
	payload []byte
}

// serve runs the chain that all requests of a surface share.
func (a *API) serve(s *surface) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		at, data, err := a.run(s, rc)
		if err == nil && data != streamed {
			err = s.envelope.success(rc, toReply(data))
		}
		if err == nil {
			s.metrics.answered(at, nil)
			return
		}
		f, ours := classify(err)
		if ours {
			// The pattern: the path itself may hold an e-mail or a phone number.
			pattern := ""
			if at >= 0 {
				pattern = s.routes[at].Path
			}
			a.opts.Logger.Error("request failed", "surface", s.name, "method", string(rc.Method()), "route", pattern, "error", err)
		}
		s.envelope.failure(rc, f)
		s.metrics.answered(at, f)
	}
}

// run returns the route's place, -1 where it did not come to one, and what its
// handler returned.
func (a *API) run(s *surface, rc *fasthttp.RequestCtx) (at int, data any, err error) {
	at = -1
	defer func() {
		if r := recover(); r != nil {
			err = panics.Count(a.opts.Metrics, r)
		}
	}()
	c := &call{RequestCtx: rc, api: a, now: a.opts.Now()}
	if err := a.authenticate(c); err != nil {
		return at, nil, err
	}
	ingest.Authenticated(rc)
	if wait := s.limiter.take(keyRef{c.key.Account, c.key.KeyID}, s.perMinute(&c.key)); wait > 0 {
		return at, nil, tooMany(wait)
	}
	if field := target.Check(rc); field != "" {
		return at, nil, Fail("%s Input should be %s", field, target.Reason)
	}
	found, params, allowed := s.find(string(rc.Method()), string(rc.URI().PathOriginal()))
	if found < 0 {
		return at, nil, unknownRoute(rc, allowed)
	}
	at, c.params = found, params
	r := &s.routes[at]
	if r.Permission != operation.AnyKey && !slices.Contains(c.key.Permissions, r.Permission) {
		return at, nil, errForbidden
	}
	c.op = &r.Operation
	if err := c.check(); err != nil {
		return at, nil, err
	}
	timeout := r.Timeout
	if timeout == 0 {
		timeout = a.opts.Timeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c.ctx = ctx
	data, err = r.handle(c)
	return at, data, err
}

func unknownRoute(rc *fasthttp.RequestCtx, allowed []string) error {
	if len(allowed) == 0 {
		return errNoRoute
	}
	list := strings.Join(allowed, ", ")
	rc.Response.Header.Set(fasthttp.HeaderAllow, list)
	return &failure{code: codeMethod, message: "This path does not take " + string(rc.Method()) + ". It takes " + list + "."}
}

// read takes the barrier and runs fn on the state of the key's account.
func (c *call) read(fn func(*resolver.View) error) error {
	return c.api.opts.Node.Read(c.ctx, c.key.Account, fn)
}

// param is the text in place of the part of the path in braces.
func (c *call) param(name string) string { return c.params[name] }
