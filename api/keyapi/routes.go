package keyapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/resolver"
)

// groupsA are the nouns of Surface A, in the order in which they are documented: its
// own, and what it shares with the console.
func (a *API) groupsA() []keycall.Group {
	campaigns := campaignCalls{a.opts.Campaigns}.operations()
	tests := testCalls{a.opts.Campaigns, a.opts.Rand, a.tests}
	campaigns.Routes = append(append(campaigns.Routes, tests.operation()), audienceCalls{a.opts.Campaigns}.operations()...)
	return append([]keycall.Group{
		contactOperations(), deviceCalls{a.opts.AllowPrivate}.operations(), listOperations(), campaigns,
		pushCalls{a.opts.Campaigns}.operations(), flowOperations(), analytics.Operations(), keyCalls{a.uses}.operations(),
	}, a.sharedOperations()...)
}

// groupsC are those of Surface C.
func (a *API) groupsC() []keycall.Group {
	return []keycall.Group{eventCalls{a.opts.Events}.operations(), emailOperations()}
}

// Operations lists the operations of both surfaces. It needs no options: those of a
// zero API are the same.
func (a *API) Operations() (out []operation.Group) {
	for _, g := range slices.Concat(a.groupsA(), a.groupsC()) {
		for i := range g.Routes {
			g.Operations = append(g.Operations, g.Routes[i].Operation)
		}
		out = append(out, g.Group)
	}
	return out
}

// surface is one of the two ways in.
type surface struct {
	*operation.Surface
	name      string // in metrics
	routes    []keycall.Route
	envelope  envelope
	limiter   *limiter
	perMinute func(*resolver.KeyAccess) int
	metrics   *surfaceMetrics
}

func (a *API) perMinuteA(*resolver.KeyAccess) int { return a.opts.PerMinute }

func perMinuteC(k *resolver.KeyAccess) int { return k.SurfaceCPerMinute }

func newSurface(name string, groups []keycall.Group, now func() time.Time) *surface {
	s := &surface{name: name, Surface: groups[0].Surface, limiter: newLimiter(now)}
	for _, g := range groups {
		s.routes = append(s.routes, g.Routes...)
	}
	return s
}

// check refuses routes that no key can be allowed to call, or that cannot be
// reached.
func (s *surface) check(known []string) error {
	seen := map[string]bool{}
	for _, r := range s.routes {
		name := r.Method + " " + s.Prefix + r.Path
		switch {
		case r.Permission != operation.AnyKey && !slices.Contains(known, r.Permission):
			return fmt.Errorf("keyapi: %s needs %q, which no API key can hold", name, r.Permission)
		case seen[name]:
			return fmt.Errorf("keyapi: %s is listed twice", name)
		case r.Handle == nil || !strings.HasPrefix(r.Path, "/"):
			return fmt.Errorf("keyapi: %s has no handler, or its path no slash", name)
		}
		seen[name] = true
	}
	return nil
}

// find finds the route of a request and the texts that its path has in place of
// those in braces. path is as it was sent: an escaped slash belongs to a text. Of several, the one listed first is taken. Where there is
// none, allowed are the methods that the path takes.
func (s *surface) find(method, path string) (at int, params map[string]string, allowed []string) {
	rest := strings.TrimPrefix(path, s.Prefix)
	for i := range s.routes {
		r := &s.routes[i]
		p, ok := matchPath(r.Path, rest)
		switch {
		case !ok:
		case r.Method == method:
			return i, p, nil
		case !slices.Contains(allowed, r.Method):
			allowed = append(allowed, r.Method)
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
