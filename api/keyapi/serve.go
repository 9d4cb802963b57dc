package keyapi

import (
	"context"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/target"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/panics"
)

// serve runs the chain that all requests of a surface share.
func (a *API) serve(s *surface) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		at, data, err := a.run(s, rc)
		if err == nil && data != keycall.Streamed {
			err = s.envelope.success(rc, keycall.ToReply(data))
		}
		if err == nil {
			s.metrics.answered(at, nil)
			return
		}
		f, ours := keycall.Classify(err)
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
	c := &keycall.Call{RequestCtx: rc, Backend: &a.backend, Now: a.opts.Now()}
	if err := a.authenticate(c); err != nil {
		return at, nil, err
	}
	ingest.Authenticated(rc)
	if wait := s.limiter.take(keyRef{c.Key.Account, c.Key.KeyID}, s.perMinute(&c.Key)); wait > 0 {
		return at, nil, keycall.TooMany(wait)
	}
	if field := target.Check(rc); field != "" {
		return at, nil, keycall.Fail("%s Input should be %s", field, target.Reason)
	}
	found, params, allowed := s.find(string(rc.Method()), string(rc.URI().PathOriginal()))
	if found < 0 {
		return at, nil, unknownRoute(rc, allowed)
	}
	at, c.Params = found, params
	r := &s.routes[at]
	if r.Permission != operation.AnyKey && !slices.Contains(c.Key.Permissions, r.Permission) {
		return at, nil, keycall.ErrForbidden
	}
	c.Op = &r.Operation
	if err := c.Check(); err != nil {
		return at, nil, err
	}
	timeout := r.Timeout
	if timeout == 0 {
		timeout = a.opts.Timeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c.Ctx = ctx
	data, err = r.Handle(c)
	return at, data, err
}

func unknownRoute(rc *fasthttp.RequestCtx, allowed []string) error {
	if len(allowed) == 0 {
		return keycall.ErrNoRoute
	}
	list := strings.Join(allowed, ", ")
	rc.Response.Header.Set(fasthttp.HeaderAllow, list)
	return &keycall.Failure{Code: keycall.CodeMethod, Message: "This path does not take " + string(rc.Method()) + ". It takes " + list + "."}
}
