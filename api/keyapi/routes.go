package keyapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/resolver"
)

// route is one endpoint of a surface.
type route struct {
	method string
	// path is behind the surface's prefix; a part in braces takes any text.
	path       string
	permission string
	handle     func(*call) (any, error)
	// timeout bounds the request; 0 is the default.
	timeout time.Duration
}

// routesA are the endpoints of Surface A, one list per noun.
func (a *API) routesA() []route {
	return slices.Concat(
		a.contactRoutes(),
		a.deviceRoutes(),
		a.listRoutes(),
		a.analyticsRoutes(),
		a.campaignRoutes(),
		a.pushRoutes(),
		a.flowRoutes(),
	)
}

// routesC are the endpoints of Surface C.
func (a *API) routesC() []route {
	return slices.Concat(
		a.eventRoutes(),
		a.emailRoutes(),
	)
}

// surface is one of the two ways in.
type surface struct {
	name      string // in metrics
	prefix    string
	routes    []route
	envelope  envelope
	limiter   *limiter
	perMinute func(*resolver.KeyAccess) int
	metrics   *surfaceMetrics
}

func (a *API) perMinuteA(*resolver.KeyAccess) int { return a.opts.PerMinute }

func perMinuteC(k *resolver.KeyAccess) int { return k.SurfaceCPerMinute }

// check refuses routes that no key may be let in to, or that nobody can reach.
func (s *surface) check(known []string) error {
	seen := map[string]bool{}
	for _, r := range s.routes {
		name := r.method + " " + s.prefix + r.path
		switch {
		case !slices.Contains(known, r.permission):
			return fmt.Errorf("keyapi: %s needs %q, which no API key can hold", name, r.permission)
		case seen[name]:
			return fmt.Errorf("keyapi: %s is listed twice", name)
		case r.handle == nil || !strings.HasPrefix(r.path, "/"):
			return fmt.Errorf("keyapi: %s has no handler, or its path no slash", name)
		}
		seen[name] = true
	}
	return nil
}

// Routes lists the endpoints of both surfaces, with their whole paths.
func (a *API) Routes() (out []api.Route) {
	for _, s := range []*surface{a.surfaceA, a.surfaceC} {
		for _, r := range s.routes {
			out = append(out, api.Route{Method: r.method, Path: s.prefix + r.path, Permission: r.permission})
		}
	}
	return out
}

// find finds the route of a request and the texts that its path has in place of
// those in braces. path is as it was sent: an escaped slash belongs to a text. Of several, the one listed first is taken. Where there is
// none, allowed are the methods that the path takes.
func (s *surface) find(method, path string) (at int, params map[string]string, allowed []string) {
	rest := strings.TrimPrefix(path, s.prefix)
	for i := range s.routes {
		r := &s.routes[i]
		p, ok := matchPath(r.path, rest)
		switch {
		case !ok:
		case r.method == method:
			return i, p, nil
		case !slices.Contains(allowed, r.method):
			allowed = append(allowed, r.method)
		}
	}
	return -1, nil, allowed
}

func matchPath(pattern, path string) (params map[string]string, ok bool) {
	for pattern != "" || path != "" {
		var want, have string
		if want, pattern, ok = nextPart(pattern); !ok {
			return nil, false
		}
		if have, path, ok = nextPart(path); !ok {
			return nil, false
		}
		if plain, err := url.PathUnescape(have); err == nil {
			have = plain
		}
		switch name, isParam := strings.CutPrefix(want, "{"); {
		case isParam && have != "":
			if params == nil {
				params = map[string]string{}
			}
			params[strings.TrimSuffix(name, "}")] = have
		case want != have:
			return nil, false
		}
	}
	return params, true
}

// nextPart cuts "/part" off a path.
func nextPart(path string) (part, rest string, ok bool) {
	if path == "" || path[0] != '/' {
		return "", "", false
	}
	part = path[1:]
	if i := strings.IndexByte(part, '/'); i >= 0 {
		return part[:i], part[i:], true
	}
	return part, "", true
}
