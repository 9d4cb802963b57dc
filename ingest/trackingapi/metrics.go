package trackingapi

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/internal/histogram"
	"github.com/musterhq/muster/resolver/sources"
)

// outcome is the outcome of an event.
type outcome int

const (
	accepted outcome = iota
	duplicate
	refused
	outcomes
)

func (o outcome) String() string { return [outcomes]string{"accepted", "duplicate", "refused"}[o] }

// statuses are all that the handler answers calls with.
var statuses = [...]int{200, 400, 401, 403, 405, 408, 429, 503}

// counters are the handler's metrics.
type counters struct {
	events     [2][calls][outcomes]*metrics.Counter // by kind of source: browser, server
	unknown    [2]*metrics.Counter                  // refused before its call was known
	requests   [len(statuses)]*metrics.Counter
	turnedAway *metrics.Counter
	// undated counts events whose timestamp could not be read.
	undated  *metrics.Counter
	duration *histogram.Histogram
}

var durationBounds = []time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

func newCounters(set *metrics.Set) *counters {
	c := &counters{
		turnedAway: set.GetOrCreateCounter(`muster_tracking_turned_away_total`),
		undated:    set.GetOrCreateCounter(`muster_tracking_undated_events_total`),
		duration:   histogram.New(set, "muster_tracking_request_duration_seconds", "", durationBounds...),
	}
	for k, kind := range [...]string{sources.Browser, sources.Server} {
		for call := range calls {
			for o := range outcomes {
				c.events[k][call][o] = set.GetOrCreateCounter(fmt.Sprintf(`muster_tracking_events_total{source_kind=%q,call=%q,result=%q}`, kind, call, o))
			}
		}
		c.unknown[k] = set.GetOrCreateCounter(fmt.Sprintf(`muster_tracking_events_total{source_kind=%q,call="unknown",result="refused"}`, kind))
	}
	for i, status := range statuses {
		c.requests[i] = set.GetOrCreateCounter(fmt.Sprintf(`muster_tracking_requests_total{status="%d"}`, status))
	}
	return c
}

func (c *counters) event(public bool, call Call, o outcome) {
	kind := 1
	if public {
		kind = 0
	}
	if call >= calls {
		c.unknown[kind].Inc()
		return
	}
	c.events[kind][call][o].Inc()
}

func (c *counters) request(status int, took time.Duration) {
	for i, s := range statuses {
		if s == status {
			c.requests[i].Inc()
		}
	}
	c.duration.Observe(took)
}
