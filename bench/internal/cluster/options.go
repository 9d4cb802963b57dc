package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/segment/segmenttest"
)

// Limits of [Options].
const (
	maxRounds     = 50
	maxCycles     = 50
	maxNodes      = 9
	maxPartitions = 64
	maxDuration   = 10 * time.Minute
	minSession    = 6 * time.Second // Apache Kafka's own
	moveNodes     = 3               // that partitions move between
)

// Where Kafka and ClickHouse are, [Options].Services.
const (
	// Own starts both for the run and removes them with their data.
	Own = "own"
	// Shared uses those of the environment or of `make services-up`.
	Shared = "shared"
)

// Options say what is measured.
type Options struct {
	Modes []contest.Mode `json:"modes"`
	// Nodes are the sizes of the groups that are compared.
	Nodes []int `json:"nodes"`
	// Partitions of each topic.
	Partitions int `json:"partitions"`
	// Rounds is how often everything is measured; 0 leaves ingest out.
	Rounds int `json:"rounds"`
	// Duration is the length of each phase.
	Duration time.Duration `json:"duration_ns"`
	// Profiles is the number of known profiles of all companies together.
	Profiles int `json:"profiles"`
	// NewRatio, EventBytes and Seed are those of [payload.Spec].
	NewRatio   float64 `json:"new_ratio"`
	EventBytes int     `json:"event_bytes"`
	Seed       uint64  `json:"seed"`
	// Segments is how many are live in each company.
	Segments int `json:"segments"`

	// MoveProfiles is the number of profiles of the partition that moves; 0
	// leaves moves out.
	MoveProfiles int `json:"move_profiles"`
	// Cycles is how often the nodes that joined are stopped and killed.
	Cycles int `json:"cycles"`
	// ProbesPerSecond is the rate of the probe, half events and half counts.
	ProbesPerSecond float64 `json:"probes_per_second"`
	// Session is after how much silence another node takes over.
	Session time.Duration `json:"session_timeout_ns"`

	// Services is [Own] or [Shared].
	Services string `json:"services"`
	server.Options
}

// Validate reports the first fault of the options.
func (o Options) Validate() error {
	switch {
	case o.Rounds == 0 && o.MoveProfiles == 0:
		return errors.New("rounds and move-profiles are both 0: there is nothing to do")
	case o.Services != Own && o.Services != Shared:
		return fmt.Errorf("services must be %s or %s, not %q", Own, Shared, o.Services)
	}
	err := cmp.Or(
		server.ZeroOr("rounds", "no ingest", o.Rounds, 1, maxRounds),
		server.Within("duration", o.Duration, 1, maxDuration),
		server.Within("partitions", o.Partitions, 1, maxPartitions),
		server.Within("segments", o.Segments, 0, len(segmenttest.LiveSegments)),
		server.Within("session-timeout", o.Session, minSession, maxDuration),
		server.ZeroOr("move-profiles", "no moves", o.MoveProfiles, 1, payload.MaxProfiles),
	)
	if err == nil && o.Rounds > 0 {
		err = o.validateIngest()
	}
	if err == nil && o.MoveProfiles > 0 {
		err = cmp.Or(
			server.Within("cycles", o.Cycles, 1, maxCycles),
			server.Within("partitions, for moves,", o.Partitions, moveNodes, maxPartitions),
			server.Within("probes", o.ProbesPerSecond, 2, 1000),
		)
	}
	return err
}

func (o Options) validateIngest() error {
	switch {
	case len(o.Modes) == 0:
		return errors.New("modes: name at least one of single and batch")
	case len(o.Nodes) == 0 || slices.Min(o.Nodes) < 1 || slices.Max(o.Nodes) > maxNodes:
		return fmt.Errorf("nodes must be numbers from 1 to %d, not %v", maxNodes, o.Nodes)
	case slices.Max(o.Nodes) > o.Partitions:
		return fmt.Errorf("partitions must be as many as nodes or more, have %d for %d", o.Partitions, slices.Max(o.Nodes))
	case o.Profiles < o.Partitions:
		return fmt.Errorf("profiles must be %d or more, one for each partition, not %d", o.Partitions, o.Profiles)
	}
	for _, m := range o.Modes {
		if m.Connections < o.Partitions {
			return fmt.Errorf("connections must be %d or more, one for each partition, not %d", o.Partitions, m.Connections)
		}
		if err := o.spec(m).Validate(); err != nil {
			return err
		}
	}
	return nil
}

// spec is what is sent for each company.
func (o Options) spec(m contest.Mode) payload.Spec {
	return payload.Spec{Seed: o.Seed, Batch: m.Batch, Profiles: o.Profiles / o.Partitions, NewRatio: o.NewRatio, EventBytes: o.EventBytes}
}
