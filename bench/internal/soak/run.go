package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
)

const (
	startLimit = time.Minute
	// stopLimit bounds the graceful stop, which may write what history lacks.
	stopLimit = 10 * time.Minute
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
	// Once compares history with what was acknowledged.
	Once        history.Once `json:"once"`
	StopSeconds float64      `json:"stop_seconds"`
}

// Run loads the server. After a fault the report holds what was measured before.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Binary == "" {
		return nil, errors.New("binary is missing; name the muster binary")
	}
	installation, err := server.NewInstallation(o.Dir, o.Binary, o.ServerArgs)
	if err != nil {
		return nil, err
	}
	s, err := installation.Start(ctx, startLimit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Kill()) }()
	if err := surface.CreateUsualSegments(ctx, s.Credentials, o.Segments); err != nil {
		return nil, err
	}
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
	m := &merger{target: single}
	defer m.close()
	failed, err := r.load(ctx, installation, s, fleet, m)
	if err != nil {
		return r, err
	}
	stopping := time.Now()
	if err := s.Stop(stopLimit); err != nil {
		return r, err
	}
	r.StopSeconds = time.Since(stopping).Seconds()
	file, err := history.Open(ctx, installation.HistoryFile())
	if err != nil {
		return r, err
	}
	defer file.Close()
	if r.Once, err = file.CheckOnce(ctx, append(fleet.Acked(), m.acked())); err != nil {
		return r, err
	}
	return r, r.Once.Err(failed * uint64(max(o.Batch, 1)))
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
	o.Log("greatest rate: %.0f events/s", greatest.EventsPerSecond())
	return greatest.EventsPerSecond() / 2, nil
}

// load sends at the rate, interval by interval, while pairs of profiles are merged.
func (r *Report) load(ctx context.Context, i *server.Installation, s *server.Server, fleet *loader.Fleet, m *merger) (failed uint64, err error) {
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
		m, err := child.StartMeter([]int{s.PID()})
		if err != nil {
			return failed, err
		}
		sent, err := fleet.Pace(ctx, r.Rate, r.Options.Interval)
		if err != nil {
			return failed, fmt.Errorf("after %v: %w", time.Since(began).Round(time.Second), err)
		}
		used, err := m.Stop()
		if err != nil {
			return failed, err
		}
		failed += sent.Failed
		sample := Sample{Phase: report.NewPhase(sent), CPUMicrosPerEvent: report.Ratio(used.Groups[0].Seconds()*1e6, float64(sent.Events))}
		sample.Seconds = time.Since(began).Seconds()
		for _, acked := range fleet.Acked() {
			sample.StoredEvents += acked.Len()
		}
		if err := sample.hold(i, s.PID()); err != nil {
			return failed, err
		}
		r.Samples = append(r.Samples, sample)
		r.Options.Log("%s", sample)
	}
	return failed, nil
}
