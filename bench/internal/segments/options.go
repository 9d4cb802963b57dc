package segments

import (
	"cmp"
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
	maxMegabytes        = 1 << 30
)

// Validate reports the first fault of the options.
func (o *Options) Validate() error {
	return cmp.Or(
		server.Within("min-profiles", o.MinProfiles, 1000, maxProfiles),
		server.Within("max-profiles", o.MaxProfiles, o.MinProfiles, maxProfiles),
		server.Within("events-per-profile", o.EventsPerProfile, 1, maxEventsPerProfile),
		server.ZeroOr("active-profiles", "all", o.ActiveProfiles, 1, maxProfiles),
		server.Within("budget", o.Budget, 1, maxBudget),
		server.ZeroOr("max-memory-mb", "four fifths of what is free", o.MemoryBytes>>20, 1, maxMegabytes),
		server.Within("events", o.Events, batch, maxMeasuredEvents),
		server.Within("cost-events", o.CostEvents, batch, maxMeasuredEvents),
		server.Within("rounds", o.Rounds, 1, 20),
		server.Within("reads", o.Reads, 100, maxReads),
		server.ZeroOr("stale-reads", "none", o.StaleReads, 1, maxReads),
		server.Within("workers", o.Workers, 1, maxWorkers),
		server.ZeroOr("history-memory-mb", "the server's default", o.HistoryMemory>>20, 1, maxMegabytes),
	)
}

// active is how many profiles present events fall on in an account of so many.
func (o *Options) active(profiles int) int {
	if o.ActiveProfiles == 0 || o.ActiveProfiles >= profiles {
		return profiles
	}
	return o.ActiveProfiles
}

// pick chooses the profile of a present event in an account of so many.
func (o *Options) pick(rng *rand.Rand, profiles int) int {
	return o.nth(rng.IntN(o.active(profiles)), profiles)
}

// nth is the active profile with a number, from 0 on.
func (o *Options) nth(n, profiles int) int { return n * (profiles / o.active(profiles)) }

// sizes are the steps asked for.
func (o *Options) sizes() []int {
	var out []int
	for n := o.MinProfiles; n < o.MaxProfiles; n *= 10 {
		out = append(out, n)
	}
	return append(out, o.MaxProfiles)
}
