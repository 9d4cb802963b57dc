package keyapi

import (
	"fmt"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
)

// surfaceMetrics count the answers of a surface, by route and by code.
type surfaceMetrics struct {
	// routes are in the order of the surface's; the last is for requests that did
	// not come to a route.
	routes []routeMetrics
	codes  map[keycall.Code]*metrics.Counter
}

type routeMetrics struct{ success, failure *metrics.Counter }

func newSurfaceMetrics(set *metrics.Set, s *surface) *surfaceMetrics {
	m := &surfaceMetrics{codes: map[keycall.Code]*metrics.Counter{}}
	add := func(route string) {
		counter := func(result string) *metrics.Counter {
			return set.GetOrCreateCounter(fmt.Sprintf(`muster_api_requests_total{surface=%q,route=%q,result=%q}`, s.name, route, result))
		}
		m.routes = append(m.routes, routeMetrics{counter("success"), counter("failure")})
	}
	for _, r := range s.routes {
		add(r.Method + " " + r.Path)
	}
	add("none")
	for _, c := range keycall.Codes {
		m.codes[c] = set.GetOrCreateCounter(fmt.Sprintf(`muster_api_failures_total{surface=%q,code=%q}`, s.name, c.Name))
	}
	return m
}

// answered counts an answer; f is nil for success.
func (m *surfaceMetrics) answered(at int, f *keycall.Failure) {
	if at < 0 {
		at = len(m.routes) - 1
	}
	if f == nil {
		m.routes[at].success.Inc()
		return
	}
	m.routes[at].failure.Inc()
	m.codes[f.Code].Inc()
}

func (a *API) registerMetrics(set *metrics.Set) {
	set.GetOrCreateGauge("muster_api_key_uses_pending", func() float64 { return float64(a.uses.size()) })
	for _, s := range []*surface{a.surfaceA, a.surfaceC} {
		set.GetOrCreateGauge(fmt.Sprintf(`muster_api_limited_keys{surface=%q}`, s.name), func() float64 { return float64(s.limiter.size()) })
	}
}
