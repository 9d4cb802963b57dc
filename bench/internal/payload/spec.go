package payload

import (
	"errors"
	"fmt"
)

// Limits of a [Spec].
const (
	// MaxWorkers is the most workers a load can have.
	MaxWorkers = 10_000
	// MaxEventsPerRequest is the most events in a body.
	MaxEventsPerRequest = 10_000
	// MaxProfiles is the most known profiles.
	MaxProfiles = 100_000_000
	// MinEventBytes and MaxEventBytes bound the size of one event's JSON.
	MinEventBytes = 320
	MaxEventBytes = 64 << 10
	// TrackedBytes is how much longer an event is as Segment's SDK for Node.js sends it.
	TrackedBytes = 180
	// newPerWorker is how many numbers each worker has for new profiles.
	newPerWorker = 500_000
)

// Spec says what the requests look like.
type Spec struct {
	// Seed makes the load repeatable: the same spec and worker give the same
	// requests.
	Seed uint64
	// Batch is the number of events per request; 0 sends single events.
	Batch int
	// Profiles is the number of known profiles.
	Profiles int
	// NewRatio is the share of events on profiles not met before, 0 to 1.
	NewRatio float64
	// EventBytes is the exact length of one event's JSON in bytes.
	EventBytes int
	// Repeat makes each profile's traits the same whenever it is met, but for ChangeRatio
	// of the events, which give an attribute a new value. Without it traits are drawn for
	// each event, so that nearly each changes its profile.
	Repeat      bool
	ChangeRatio float64
	// Tracked makes batches as Segment's SDK for Node.js sends them, for the tracking API.
	// The events say the same, and each is longer by [TrackedBytes].
	Tracked bool
}

// Validate reports the first fault of the spec.
func (s Spec) Validate() error {
	switch {
	case s.Batch < 0 || s.Batch > MaxEventsPerRequest:
		return fmt.Errorf("batch must be 0 (single events) to %d, not %d", MaxEventsPerRequest, s.Batch)
	case s.Profiles < 1 || s.Profiles > MaxProfiles:
		return fmt.Errorf("profiles must be 1 to %d, not %d", MaxProfiles, s.Profiles)
	case !(s.ChangeRatio >= 0 && s.ChangeRatio <= 1):
		return errors.New("change-ratio must be a share from 0 to 1")
	case s.Tracked && s.Repeat:
		return errors.New("the traits of the tracking API's load do not repeat")
	case s.Tracked && s.Batch == 0:
		return errors.New("the tracking API is sent batches only; batch must be 1 or more")
	case !(s.NewRatio >= 0 && s.NewRatio <= 1):
		return errors.New("new-ratio must be a share from 0 to 1")
	case s.EventBytes < MinEventBytes || s.EventBytes > MaxEventBytes:
		return fmt.Errorf("event bytes must be %d to %d, not %d", MinEventBytes, MaxEventBytes, s.EventBytes)
	}
	return nil
}

// EventsPerRequest is 1 for single events.
func (s Spec) EventsPerRequest() int { return max(s.Batch, 1) }
