package flows

import (
	"fmt"
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
	switch {
	case o.Flows != 0 && (o.Flows < minFlows || o.Flows > maxFlows):
		return fmt.Errorf("flows must be 0 (none) or %d to %d, not %d", minFlows, maxFlows, o.Flows)
	case !(o.RatePerSecond >= 0 && o.RatePerSecond <= maxRate):
		return fmt.Errorf("rate must be 0 (shares of the greatest) to %d, not %v", maxRate, o.RatePerSecond)
	case o.Duration < 100*time.Millisecond || o.Duration > maxDuration:
		return fmt.Errorf("duration must be 100ms to %v, not %v", maxDuration, o.Duration)
	case o.Profiles < minProfiles || o.Profiles > maxProfiles:
		return fmt.Errorf("profiles must be %d to %d, not %d", minProfiles, maxProfiles, o.Profiles)
	case o.Connections < 1 || o.Connections > min(maxConnections, loader.MaxConnections):
		return fmt.Errorf("connections must be 1 to %d, not %d", maxConnections, o.Connections)
	case !(o.ProbesPerSecond >= 1 && o.ProbesPerSecond <= maxProbes):
		return fmt.Errorf("probes must be 1 to %d a second, not %v", maxProbes, o.ProbesPerSecond)
	case o.Sleepers != 0 && (o.Sleepers < minSleepers || o.Sleepers > maxSleepers):
		return fmt.Errorf("sleepers must be 0 (none) or %d to %d, not %d", minSleepers, maxSleepers, o.Sleepers)
	case o.Budget <= 0 || o.Budget > maxBudget:
		return fmt.Errorf("budget must be over 0 and at most %v, not %v", maxBudget, o.Budget)
	}
	return nil
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
