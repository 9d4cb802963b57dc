package segments

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
)

// Options say what is measured and how far the account grows.
type Options struct {
	// MinProfiles is the first size; each further one is ten times as large, up
	// to MaxProfiles.
	MinProfiles int `json:"min_profiles"`
	MaxProfiles int `json:"max_profiles"`
	// EventsPerProfile is how many past events a profile has on average.
	EventsPerProfile int `json:"events_per_profile"`
	// ActiveProfiles is how many profiles, spread evenly over all, present events
	// fall on; 0 is all. With all of them, documents of large accounts are mostly
	// not in the cache.
	ActiveProfiles int `json:"active_profiles"`
	// Budget is the time for growing and measuring. The stale-read check comes
	// after it.
	Budget time.Duration `json:"budget_ns"`
	// MemoryBytes is the most memory the process may take; 0 is four fifths of
	// what the machine has left at the start.
	MemoryBytes int64 `json:"memory_bytes"`
	// Events is the fixed number of events of an ingest measurement.
	Events int `json:"events"`
	// CostEvents is the number of events of each measurement with 1 to 1,000
	// segments, Rounds how often each is repeated.
	CostEvents int `json:"cost_events"`
	Rounds     int `json:"rounds"`
	// Reads is how many counts are timed.
	Reads int `json:"reads"`
	// StaleReads is how many acknowledged events are followed by a read; 0
	// leaves that out.
	StaleReads int `json:"stale_reads"`
	// Workers is how many submit at the same time.
	Workers int `json:"workers"`
	// HistoryMemory bounds DuckDB's memory; 0 is the default of the server.
	HistoryMemory int64  `json:"history_memory_bytes"`
	Seed          uint64 `json:"seed"`

	// Options say where the account is kept. There is no server.
	server.Options
	// ProfileDir is where CPU profiles of ingest with 20 segments are written;
	// empty writes none.
	ProfileDir string `json:"-"`
}

// Limits of [Options].
const (
	maxProfiles         = 20_000_000
	maxEventsPerProfile = 1000
	maxMeasuredEvents   = 10_000_000
	maxReads            = 10_000_000
	maxBudget           = 6 * time.Hour
	maxWorkers          = 256
)

// Validate reports the first fault of the options.
func (o *Options) Validate() error {
	switch {
	case o.MinProfiles < 1000 || o.MinProfiles > maxProfiles:
		return fmt.Errorf("min-profiles must be 1000 to %d, not %d", maxProfiles, o.MinProfiles)
	case o.MaxProfiles < o.MinProfiles || o.MaxProfiles > maxProfiles:
		return fmt.Errorf("max-profiles must be %d (min-profiles) to %d, not %d", o.MinProfiles, maxProfiles, o.MaxProfiles)
	case o.EventsPerProfile < 1 || o.EventsPerProfile > maxEventsPerProfile:
		return fmt.Errorf("events-per-profile must be 1 to %d, not %d", maxEventsPerProfile, o.EventsPerProfile)
	case o.ActiveProfiles < 0:
		return fmt.Errorf("active-profiles must be 0 (all) or more, not %d", o.ActiveProfiles)
	case o.Budget <= 0 || o.Budget > maxBudget:
		return fmt.Errorf("budget must be over 0 and at most %v, not %v", maxBudget, o.Budget)
	case o.MemoryBytes < 0:
		return fmt.Errorf("max-memory-mb must be 0 (four fifths of what is free) or more")
	case o.Events < batch || o.Events > maxMeasuredEvents:
		return fmt.Errorf("events must be %d to %d, not %d", batch, maxMeasuredEvents, o.Events)
	case o.CostEvents < batch || o.CostEvents > maxMeasuredEvents:
		return fmt.Errorf("cost-events must be %d to %d, not %d", batch, maxMeasuredEvents, o.CostEvents)
	case o.Rounds < 1 || o.Rounds > 20:
		return fmt.Errorf("rounds must be 1 to 20, not %d", o.Rounds)
	case o.Reads < 100 || o.Reads > maxReads:
		return fmt.Errorf("reads must be 100 to %d, not %d", maxReads, o.Reads)
	case o.StaleReads < 0 || o.StaleReads > maxReads:
		return fmt.Errorf("stale-reads must be 0 (none) to %d, not %d", maxReads, o.StaleReads)
	case o.Workers < 1 || o.Workers > maxWorkers:
		return fmt.Errorf("workers must be 1 to %d, not %d", maxWorkers, o.Workers)
	case o.HistoryMemory < 0:
		return errors.New("history-memory-mb must be 0 (the server's default) or more")
	}
	return nil
}

// pick chooses the profile of a present event in an account of so many.
func (o *Options) pick(rng *rand.Rand, profiles int) int {
	if o.ActiveProfiles == 0 || o.ActiveProfiles >= profiles {
		return rng.IntN(profiles)
	}
	return rng.IntN(o.ActiveProfiles) * (profiles / o.ActiveProfiles)
}

// sizes are the steps asked for.
func (o *Options) sizes() []int {
	var out []int
	for n := o.MinProfiles; n < o.MaxProfiles; n *= 10 {
		out = append(out, n)
	}
	return append(out, o.MaxProfiles)
}
