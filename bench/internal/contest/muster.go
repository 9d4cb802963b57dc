package contest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Definitions that are counted after the load.
const (
	// unknown is a condition no segment has, so that history must answer it.
	unknown = `{"kind":"activity","event":"purchased","count":{"op":">=","value":1000000007}}`
	anybody = `{"kind":"attribute","field":"external_id","op":"exists"}`
)

// muster measures the real binary on a new directory.
func (o Options) muster(ctx context.Context, m Mode, dir string) (_ *Muster, err error) {
	at := o.Options
	if o.Stalls {
		at.ServerArgs = append(slices.Clone(at.ServerArgs), "--pprof")
	}
	installation, s, err := topology.Begin(ctx, at, dir, o.Segments)
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
	if err := o.phases(ctx, m, s, fleet, result); err != nil {
		return nil, err
	}
	if err := result.counts(ctx, s, o, fleet); err != nil {
		return nil, err
	}
	fleet.Close()
	var unequal error
	if result.Stopped, unequal = topology.Once(ctx, installation, s.Process, fleet.Acked(), result.failedEvents(m)); unequal != nil {
		return result, unequal
	}
	if result.DiskBytes, err = installation.DiskBytes(); err != nil {
		return nil, err
	}
	o.Log("  history: %d events acknowledged, %d rows, %d missing, %d doubled; stopped in %.1f s",
		result.Once.Acked, result.Once.Rows, result.Once.Missing, result.Once.Doubled, result.StopSeconds)
	return result, nil
}

// fleet prepares the connections of a mode.
func (o Options) fleet(ctx context.Context, m Mode, s *server.Server) (*loader.Fleet, error) {
	if !m.Tracking {
		return s.Credentials.Fleet(o.spec(m), m.Connections)
	}
	c, err := surface.SignIn(ctx, s.Credentials)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	key, err := c.CreateServerSource(ctx, "bench")
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
func (o Options) phases(ctx context.Context, m Mode, s *server.Server, fleet *loader.Fleet, result *Muster) error {
	whole, err := child.StartMeter([]int{s.PID()})
	if err != nil {
		return err
	}
	if result.Sweep, err = measure(s.PID(), func() (*loader.Result, error) { return fleet.Sweep(ctx) }); err != nil {
		return err
	}
	if result.Saturated, err = timed(s.PID(), fleet, o.Duration, func() (*loader.Result, error) { return fleet.Saturate(ctx, o.Duration) }); err != nil {
		return err
	}
	o.Log("  muster, saturated: %.0f events/s, %.2f µs of CPU per event, %d requests failed",
		result.Saturated.EventsPerSecond, result.Saturated.CPUMicrosPerEvent, result.Saturated.Failed)
	rate := o.RatePerSecond
	if rate == 0 {
		rate = result.Saturated.EventsPerSecond / 2
	}
	pace := func() (*loader.Result, error) { return fleet.Pace(ctx, rate, o.Duration) }
	if o.Stalls {
		pace = o.traced(ctx, s, fleet, result, pace)
	}
	if result.Paced, err = timed(s.PID(), fleet, o.Duration, pace); err != nil {
		return err
	}
	result.Paced.OfferedPerSecond = rate
	o.Log("  muster at %.0f events/s: p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, %d requests failed",
		rate, result.Paced.P50Millis, result.Paced.P99Millis, result.Paced.P999Millis, result.Paced.Failed)
	// Counting waits for history, whose work belongs to these events.
	if err := result.awaitHistory(ctx, s); err != nil {
		return err
	}
	used, err := whole.Stop()
	if err != nil {
		return err
	}
	events := result.Sweep.Events + result.Saturated.Events + result.Paced.Events
	result.CPUMicrosPerEvent = used.Groups[0].Seconds() * 1e6 / float64(events)
	result.PeakRSSBytes = used.PeakRSSBytes
	return nil
}

func (r *Muster) awaitHistory(ctx context.Context, s *server.Server) error {
	c, err := surface.SignIn(ctx, s.Credentials)
	if err != nil {
		return err
	}
	defer c.Close()
	began := time.Now()
	if _, err := c.Preview(ctx, unknown); err != nil {
		return err
	}
	r.HistorySeconds = time.Since(began).Seconds()
	return nil
}

// counts compares the number of profiles with what was sent.
func (r *Muster) counts(ctx context.Context, s *server.Server, o Options, fleet *loader.Fleet) error {
	c, err := surface.SignIn(ctx, s.Credentials)
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := c.Preview(ctx, anybody)
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
