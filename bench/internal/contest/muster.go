package contest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/topology"
)

// anybody is a definition that is counted after the load.
const anybody = `{"kind":"attribute","field":"external_id","op":"exists"}`

// muster measures the real binary on a new directory.
func (o Options) muster(ctx context.Context, m Mode, dir string) (_ *Muster, err error) {
	at := o.Options
	if o.Stalls {
		at.ServerArgs = append(slices.Clone(at.ServerArgs), "--pprof")
	}
	s, err := topology.Begin(ctx, at, dir, o.Segments)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Kill()) }()
	fleet, err := o.fleet(ctx, m, s)
	if err != nil {
		return nil, err
	}
	defer fleet.Close()
	result := &Muster{}
	if err := o.phases(ctx, s, fleet, result); err != nil {
		return nil, err
	}
	if err := result.counts(ctx, s, o, fleet); err != nil {
		return nil, err
	}
	fleet.Close()
	var unequal error
	if result.Stopped, unequal = s.Once(ctx, fleet.Acked(), result.failedEvents(m)); unequal != nil {
		return result, unequal
	}
	if result.DiskBytes, err = s.DiskBytes(); err != nil {
		return nil, err
	}
	o.Logf("  history: %d events acknowledged, %d rows, %d missing, %d doubled; stopped in %.1f s",
		result.Once.Acked, result.Once.Rows, result.Once.Missing, result.Once.Doubled, result.StopSeconds)
	return result, nil
}

// fleet prepares the connections of a mode.
func (o Options) fleet(ctx context.Context, m Mode, s *topology.Single) (*loader.Fleet, error) {
	if !m.Tracking {
		return s.Credentials.Fleet(o.spec(m), m.Connections)
	}
	key, err := s.Console.CreateServerSource(ctx, "bench")
	if err != nil {
		return nil, err
	}
	target, err := s.Credentials.TrackingTarget(key)
	if err != nil {
		return nil, err
	}
	return loader.NewFleet(target, o.spec(m), m.Connections)
}

// phases runs the sweep, the closed and the open loop.
func (o Options) phases(ctx context.Context, s *topology.Single, fleet *loader.Fleet, result *Muster) error {
	whole, err := child.StartMeter([]int{s.PID()})
	if err != nil {
		return err
	}
	if result.Sweep, err = measure(s.PID(), func() (*loader.Result, error) { return fleet.Sweep(ctx) }); err != nil {
		return err
	}
	saturated := cmp.Or(o.SaturatedDuration, o.Duration)
	if result.Saturated, err = timed(s.PID(), fleet, saturated, func() (*loader.Result, error) { return fleet.Saturate(ctx, saturated) }); err != nil {
		return err
	}
	o.Logf("  muster, saturated: %.0f events/s, %.2f µs of CPU per event, %d requests failed",
		result.Saturated.EventsPerSecond, result.Saturated.CPUMicrosPerEvent, result.Saturated.Failed)
	rate := o.RatePerSecond
	if rate == 0 {
		rate = result.Saturated.EventsPerSecond / 2
	}
	var paced *loader.Result
	pace := watched(fleet, result, func() (r *loader.Result, err error) {
		paced, err = fleet.Pace(ctx, rate, o.Duration)
		return paced, err
	})
	if o.Stalls {
		pace = o.traced(ctx, s, result, pace)
	}
	if result.Paced, err = timed(s.PID(), fleet, o.Duration, pace); err != nil {
		return err
	}
	result.Paced.OfferedPerSecond = rate
	result.Settled = settled(paced, result.Processors) // behind the phase: it would count to its time
	o.Logf("  muster at %.0f events/s: p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, %d requests failed",
		rate, result.Paced.P50Millis, result.Paced.P99Millis, result.Paced.P999Millis, result.Paced.Failed)
	o.Logf("  %s", result.settledLine())
	// Counting waits for history, whose work belongs to these events.
	began := time.Now()
	if err := s.Console.AwaitHistory(ctx); err != nil {
		return err
	}
	result.HistorySeconds = time.Since(began).Seconds()
	used, err := whole.Stop()
	if err != nil {
		return err
	}
	events := result.Sweep.Events + result.Saturated.Events + result.Paced.Events
	result.CPUMicrosPerEvent = used.Groups[0].Seconds() * 1e6 / float64(events)
	result.PeakRSSBytes = used.PeakRSSBytes
	return nil
}

// counts compares the number of profiles with what was sent.
func (r *Muster) counts(ctx context.Context, s *topology.Single, o Options, fleet *loader.Fleet) error {
	got, err := s.Console.Preview(ctx, anybody)
	if err != nil {
		return err
	}
	// Requests that failed may or may not have made their profiles.
	if want := uint64(o.Profiles) + fleet.NewProfiles(); got != want && r.Saturated.Failed+r.Paced.Failed == 0 {
		return fmt.Errorf("%d profiles were sent, the server counts %d", want, got)
	}
	return nil
}

// failedEvents is how many events were in requests that failed.
func (r *Muster) failedEvents(m Mode) uint64 {
	return (r.Sweep.Failed + r.Saturated.Failed + r.Paced.Failed) * uint64(max(m.Batch, 1))
}
