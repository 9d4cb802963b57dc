package soak

import (
	"cmp"
	"time"

	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/segment/segmenttest"
)

// Limits of [Options].
const (
	maxDuration = 24 * time.Hour
	maxMerges   = 1000
	maxRate     = 1e9
)

// Options say what is loaded and for how long.
type Options struct {
	// Duration is the length of the open loop, Interval that of one sample.
	Duration time.Duration `json:"duration_ns"`
	Interval time.Duration `json:"interval_ns"`
	// RatePerSecond is in events; 0 is half of what a closed loop reaches.
	RatePerSecond float64 `json:"rate_per_second"`
	// MergesPerSecond is how many pairs of profiles are merged beside the load.
	MergesPerSecond float64 `json:"merges_per_second"`
	// Connections is how many send; Batch the events of a request, 0 for single ones.
	Connections int `json:"connections"`
	Batch       int `json:"batch"`
	// Profiles, NewRatio, EventBytes and Seed are those of [payload.Spec].
	Profiles   int     `json:"profiles"`
	NewRatio   float64 `json:"new_ratio"`
	EventBytes int     `json:"event_bytes"`
	Seed       uint64  `json:"seed"`
	// Segments is how many segments are live.
	Segments int `json:"segments"`

	server.Options
}

// Validate reports the first fault of the options. Binary may be missing: it can be
// built once the others are right.
func (o Options) Validate() error {
	return cmp.Or(
		server.Within("duration", o.Duration, 1, maxDuration),
		server.Within("interval", o.Interval, time.Second, o.Duration),
		server.ZeroOr("rate", "half of the greatest", o.RatePerSecond, 0, maxRate),
		server.Within("merges", o.MergesPerSecond, 0, maxMerges),
		server.Within("segments", o.Segments, 0, len(segmenttest.LiveSegments)),
		o.spec().Validate(),
	)
}

func (o Options) spec() payload.Spec {
	return payload.Spec{Seed: o.Seed, Batch: o.Batch, Profiles: o.Profiles, NewRatio: o.NewRatio, EventBytes: o.EventBytes}
}
