package ingest

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/internal/histogram"
)

// endpoint is one of the handler's endpoints.
type endpoint int

const (
	endpointEvent endpoint = iota
	endpointBatch
	endpointImport
	endpoints
)

func (e endpoint) String() string { return [endpoints]string{"event", "batch", "import"}[e] }

// statuses are all that the handler answers with.
var statuses = [...]int{202, 400, 405, 408, 413, 415, 503}

// counters are the handler's metrics.
type counters struct {
	accepted, duplicate, refused          *metrics.Counter
	authFailures                          *metrics.Counter
	bytesReceived, bytesDecoded           *metrics.Counter
	noMemory, queueFull, noSpace, timeout *metrics.Counter
	unavailable                           *metrics.Counter
	requests                              [endpoints][len(statuses)]*metrics.Counter
	duration                              [endpoints]*histogram.Histogram
}

// durationBounds are the buckets' bounds, up to the longest that a request waits
// for the log. They are fixed, so that Prometheus can add up nodes.
var durationBounds = []time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

func newCounters(set *metrics.Set, m *Memory) *counters {
	c := &counters{
		accepted:      set.GetOrCreateCounter(`muster_ingest_events_total{result="accepted"}`),
		duplicate:     set.GetOrCreateCounter(`muster_ingest_events_total{result="duplicate"}`),
		refused:       set.GetOrCreateCounter(`muster_ingest_events_total{result="refused"}`),
		authFailures:  set.GetOrCreateCounter(`muster_ingest_auth_failures_total`),
		bytesReceived: set.GetOrCreateCounter(`muster_ingest_received_bytes_total`),
		bytesDecoded:  set.GetOrCreateCounter(`muster_ingest_decoded_bytes_total`),
		noMemory:      set.GetOrCreateCounter(`muster_ingest_turned_away_total{reason="in_flight_bytes"}`),
		noSpace:       set.GetOrCreateCounter(`muster_ingest_turned_away_total{reason="no_space"}`),
		queueFull:     set.GetOrCreateCounter(`muster_ingest_turned_away_total{reason="queue_full"}`),
		timeout:       set.GetOrCreateCounter(`muster_ingest_turned_away_total{reason="timeout"}`),
		unavailable:   set.GetOrCreateCounter(`muster_ingest_turned_away_total{reason="unavailable"}`),
	}
	set.GetOrCreateGauge(`muster_ingest_in_flight_bytes`, func() float64 { return float64(m.used.Load()) })
	set.GetOrCreateGauge(`muster_ingest_in_flight_limit_bytes`, func() float64 { return float64(m.limit) })
	for e := range endpoints {
		for i, status := range statuses {
			c.requests[e][i] = set.GetOrCreateCounter(fmt.Sprintf(`muster_ingest_requests_total{endpoint=%q,status="%d"}`, e, status))
		}
		c.duration[e] = histogram.New(set, "muster_ingest_request_duration_seconds", fmt.Sprintf(`endpoint=%q`, e), durationBounds...)
	}
	return c
}

func (c *counters) request(e endpoint, status int, took time.Duration) {
	for i, s := range statuses {
		if s == status {
			c.requests[e][i].Inc()
		}
	}
	c.duration[e].Observe(took)
}
