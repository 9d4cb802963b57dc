package handler

import (
	"fmt"

	"github.com/VictoriaMetrics/metrics"
)

// statusCounters count a route's answers by class of status.
type statusCounters [6]*metrics.Counter

func newStatusCounters(set *metrics.Set, route string) *statusCounters {
	var s statusCounters
	for class := range s {
		s[class] = set.GetOrCreateCounter(fmt.Sprintf(`muster_console_requests_total{route=%q,status="%dxx"}`, route, class))
	}
	return &s
}

func (s *statusCounters) inc(status int) { s[min(max(status/100, 0), 5)].Inc() }
