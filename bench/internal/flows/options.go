package flows

import (
	"cmp"
	"time"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
)

// Options of a run. Durations are in nanoseconds in JSON.
type Options struct {
	// Flows is how many flows are live under load; 0 leaves the load out.
	Flows int `json:"flows"`
	// RatePerSecond is the rate of events; 0 measures at several shares of the
	// greatest rate, half of it among them.
	RatePerSecond float64 `json:"rate"`
	// Duration is the length of each phase of the load.
	Duration time.Duration `json:"duration_ns"`
	// Profiles is how many the load falls on.
	Profiles int `json:"profiles"`
	// Connections is how many send single events.
	Connections int `json:"connections"`
	// ProbesPerSecond is the rate of the probes beside it.
	ProbesPerSecond float64 `json:"probes_per_second"`
	// Sleepers is how many enrolments sleep; 0 leaves them out.
	Sleepers int `json:"sleepers"`
	// Budget bounds the whole run.
	Budget time.Duration `json:"budget_ns"`
	Seed   uint64        `json:"seed"`

	server.Options
}

// Limits of [Options].
const (
	minFlows       = 2 // the probes' own
	maxFlows       = 900
	maxRate        = 10_000_000
	maxDuration    = 10 * time.Minute
	minProfiles    = 100
	maxProfiles    = 10_000_000
	maxConnections = 1024
	maxProbes      = 1000
	minSleepers    = 1000
	maxSleepers    = 10_000_000
	maxBudget      = 2 * time.Hour
)

// Validate reports the first fault of the options.
func (o *Options) Validate() error {
	return cmp.Or(
		server.ZeroOr("flows", "none", o.Flows, minFlows, maxFlows),
		server.ZeroOr("rate", "shares of the greatest", o.RatePerSecond, 0, maxRate),
		server.Within("duration", o.Duration, 100*time.Millisecond, maxDuration),
		server.Within("profiles", o.Profiles, minProfiles, maxProfiles),
		server.Within("connections", o.Connections, 1, min(maxConnections, loader.MaxConnections)),
		server.Within("probes", o.ProbesPerSecond, 1, maxProbes),
		server.ZeroOr("sleepers", "none", o.Sleepers, minSleepers, maxSleepers),
		server.Within("budget", o.Budget, 1, maxBudget),
	)
}

// rates are what the load is measured at: shares of the greatest rate with flows,
// and last half of the greatest without, which may be more than there can be with
// flows.
func (o *Options) rates(without, with float64) []float64 {
	if o.RatePerSecond > 0 {
		return []float64{o.RatePerSecond}
	}
	var out []float64
	for _, share := range []float64{0.1, 0.25, targetShare, 0.75} {
		out = append(out, share*with)
	}
	return append(out, targetShare*without)
}

// targetShare is the share of the greatest rate that the targets of latencies
// belong to.
const targetShare = 0.5
