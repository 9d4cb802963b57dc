package ingest

import (
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// connCounters are the metrics of a server's connections.
type connCounters struct {
	open, unauthenticated      atomic.Int64 // connections; those of them that count by address and did not authenticate
	refusedAll, refusedAddress *metrics.Counter
	acceptFailures, malformed  *metrics.Counter
}

func newConnCounters(set *metrics.Set) *connCounters {
	c := &connCounters{
		refusedAll:     set.GetOrCreateCounter(`muster_http_connections_refused_total{reason="all"}`),
		refusedAddress: set.GetOrCreateCounter(`muster_http_connections_refused_total{reason="address"}`),
		acceptFailures: set.GetOrCreateCounter(`muster_http_accept_failures_total`),
		malformed:      set.GetOrCreateCounter(`muster_http_malformed_requests_total`),
	}
	set.GetOrCreateGauge(`muster_http_connections`, func() float64 { return float64(c.open.Load()) })
	set.GetOrCreateGauge(`muster_http_unauthenticated_connections`, func() float64 { return float64(c.unauthenticated.Load()) })
	return c
}
