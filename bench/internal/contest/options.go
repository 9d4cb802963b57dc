package contest

import (
	"cmp"
	"errors"
	"time"

	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/segment/segmenttest"
)

// Limits of [Options].
const (
	maxRounds   = 50
	maxDuration = 10 * time.Minute
	maxRate     = 1e9
)

// Mode is how events are sent.
type Mode struct {
	// Name is "single", "batch" or "tracking".
	Name string `json:"name"`
	// Batch is the number of events per request; 0 sends single events.
	Batch int `json:"batch"`
	// Connections is how many send at the same time.
	Connections int `json:"connections"`
	// Tracking sends to the tracking API what Segment's SDK for Node.js sends. There are
	// no baselines then: it is compared with the mode "batch".
	Tracking bool `json:"tracking,omitempty"`
	// Repeat and ChangeRatio are those of [payload.Spec].
	Repeat      bool    `json:"repeat,omitempty"`
	ChangeRatio float64 `json:"change_ratio,omitempty"`
}

// Options say what is measured.
type Options struct {
	Modes []Mode `json:"modes"`
	// Rounds is how often everything is measured.
	Rounds int `json:"rounds"`
	// Duration is the length of each of Muster's two phases.
	Duration time.Duration `json:"duration_ns"`
	// SaturatedDuration is that of the first, the closed loop; 0 is Duration.
	SaturatedDuration time.Duration `json:"saturated_duration_ns"`
	// BaselineDuration is the length of a baseline server's phase.
	BaselineDuration time.Duration `json:"baseline_duration_ns"`
	// RatePerSecond is the open loop's rate in events; 0 is half of what the
	// closed loop reached just before.
	RatePerSecond float64 `json:"rate_per_second"`
	// Profiles, NewRatio, EventBytes and Seed are those of [payload.Spec].
	Profiles   int     `json:"profiles"`
	NewRatio   float64 `json:"new_ratio"`
	EventBytes int     `json:"event_bytes"`
	Seed       uint64  `json:"seed"`

	// Stalls says what slow requests of the paced phase waited for, from a trace of the
	// server, which costs it some CPU.
	Stalls bool `json:"stalls,omitempty"`
	// Segments is how many segments are live meanwhile.
	Segments int `json:"segments"`

	// Options say where servers run. What a measurement leaves in Dir is removed unless
	// Keep is set or the measurement failed. Without Binary the baseline servers alone are
	// measured.
	server.Options
	Keep bool `json:"-"`
	// Baseline is the command that serves a baseline: the program and its
	// arguments up to the kind.
	Baseline []string `json:"-"`
}

// Validate reports the first fault of the options.
func (o Options) Validate() error {
	if len(o.Modes) == 0 {
		return errors.New("modes: name at least one of single and batch")
	}
	err := cmp.Or(
		server.Within("rounds", o.Rounds, 1, maxRounds),
		server.Within("duration", o.Duration, 1, maxDuration),
		server.ZeroOr("saturated-duration", "that of --duration", o.SaturatedDuration, 1, maxDuration),
		server.Within("baseline-duration", o.BaselineDuration, 1, maxDuration),
		server.Within("segments", o.Segments, 0, len(segmenttest.LiveSegments)),
		server.ZeroOr("rate", "half of the maximum", o.RatePerSecond, 0, maxRate),
	)
	for _, m := range o.Modes {
		err = cmp.Or(err, o.spec(m).Validate())
	}
	return err
}

func (o Options) spec(m Mode) payload.Spec {
	return payload.Spec{Seed: o.Seed, Batch: m.Batch, Profiles: o.Profiles, NewRatio: o.NewRatio, EventBytes: o.EventBytes, Tracked: m.Tracking, Repeat: m.Repeat, ChangeRatio: m.ChangeRatio}
}
