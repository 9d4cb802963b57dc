package soak

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
)

const (
	// greatestFor is how long the greatest rate is measured.
	greatestFor = 15 * time.Second
)

// Report is what was measured.
type Report struct {
	Options Options `json:"options"`
	report.Machine
	Rate    float64  `json:"events_per_second"`
	Samples []Sample `json:"samples"`
	// Merges is how many pairs of profiles were merged.
	Merges uint64 `json:"merges"`
	topology.Stopped
}

// Run loads the server. After a fault the report holds what was measured before.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := topology.Begin(ctx, o.Options, filepath.Join(o.Dir, "server"), o.Segments)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Kill()) }()
	fleet, err := s.Credentials.Fleet(o.spec(), o.Connections)
	if err != nil {
		return nil, err
	}
	defer fleet.Close()
	r = &Report{Options: o, Machine: report.ThisMachine()}
	if r.Rate, err = o.rate(ctx, fleet); err != nil {
		return r, err
	}
	single, err := s.Credentials.Target(false)
	if err != nil {
		return r, err
	}
	m := &merger{target: single, caller: loader.Caller{DialTimeout: callLimit, Timeout: callLimit}}
	defer m.caller.Close()
	failed, err := r.load(ctx, s, fleet, m)
	if err != nil {
		return r, err
	}
	r.Stopped, err = s.Once(ctx, append(fleet.Acked(), m.acked()), failed*uint64(max(o.Batch, 1)))
	return r, err
}

// rate makes the known profiles known and returns the rate of the load.
func (o Options) rate(ctx context.Context, fleet *loader.Fleet) (float64, error) {
	if _, err := fleet.Sweep(ctx); err != nil {
		return 0, err
	}
	if o.RatePerSecond > 0 {
		return o.RatePerSecond, nil
	}
	greatest, err := fleet.Saturate(ctx, greatestFor)
	if err != nil {
		return 0, err
	}
	o.Logf("greatest rate: %.0f events/s", greatest.EventsPerSecond())
	return greatest.EventsPerSecond() / 2, nil
}

// load sends at the rate, interval by interval, while pairs of profiles are merged.
func (r *Report) load(ctx context.Context, s *topology.Single, fleet *loader.Fleet, m *merger) (failed uint64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	merged := make(chan struct{})
	if r.Options.MergesPerSecond > 0 {
		between := time.Duration(float64(time.Second) / r.Options.MergesPerSecond)
		go func() {
			defer close(merged)
			if err := m.run(ctx, between); err != nil {
				cancel(err)
			}
		}()
	} else {
		close(merged)
	}
	defer func() {
		if fault := context.Cause(ctx); fault != nil {
			err = fault
		}
		cancel(nil)
		<-merged
		r.Merges = m.merged
	}()
	for began := time.Now(); time.Since(began) < r.Options.Duration; {
		phase, sent, used, err := report.Measure(func() (*loader.Result, error) { return fleet.Pace(ctx, r.Rate, r.Options.Interval) }, []int{s.PID()})
		if err != nil {
			return failed, fmt.Errorf("after %v: %w", time.Since(began).Round(time.Second), err)
		}
		failed += sent.Failed
		sample := Sample{Phase: phase, CPUMicrosPerEvent: phase.PerEvent(used.Groups[0])}
		sample.Seconds = time.Since(began).Seconds()
		sample.StoredEvents = loader.Events(fleet.Acked())
		if err := sample.hold(s); err != nil {
			return failed, err
		}
		r.Samples = append(r.Samples, sample)
		r.Options.Logf("%s", sample)
	}
	return failed, nil
}
