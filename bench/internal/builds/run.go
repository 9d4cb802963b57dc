package builds

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
)

// build is one of the two servers, under load.
type build struct {
	single *topology.Single
	fleet  *loader.Fleet
	meter  child.Meter
	failed uint64 // events in requests that failed
	Build
}

// Run compares the builds. The error says which server failed; or that events were lost or
// doubled, then the report holds what was measured.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Report{Options: o, Machine: report.ThisMachine()}
	var pair [2]build
	defer func() {
		for i := range pair {
			if s := pair[i].single; s != nil {
				pair[i].fleet.Close()
				err = errors.Join(err, s.Kill())
			}
		}
	}()
	for i, binary := range []string{o.Binary, o.Other} {
		if err := pair[i].begin(ctx, o, binary); err != nil {
			return nil, fmt.Errorf("%s: %w", binary, err)
		}
	}
	for i := range pair {
		if pair[i].meter, err = child.StartMeter([]int{pair[i].single.PID()}); err != nil {
			return nil, err
		}
	}
	for i := range o.Pairs {
		for j := range pair {
			b := &pair[(i+j)%2]
			if err := b.turn(ctx, o); err != nil {
				return nil, fmt.Errorf("pair %d, %s: %w", i+1, b.Path, err)
			}
		}
		a, b := pair[0].Turns[i], pair[1].Turns[i]
		o.Logf("  pair %d of %d: %.0f and %.0f events/s", i+1, o.Pairs, a.EventsPerSecond, b.EventsPerSecond)
	}
	// The work of history belongs to these events.
	for i := range pair {
		if err := pair[i].single.Console.AwaitHistory(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", pair[i].Path, err)
		}
	}
	for i := range pair {
		if r.Builds[i], err = pair[i].used(); err != nil {
			return nil, err
		}
	}
	r.compare()
	for i := range pair {
		b := &pair[i]
		b.fleet.Close()
		stopped, unequal := b.single.Once(ctx, b.fleet.Acked(), b.failed)
		r.Builds[i].Stopped = stopped
		if unequal != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", b.Path, unequal))
		}
	}
	return r, err
}

// begin starts a server in a directory of its own and sends it each known profile.
func (b *build) begin(ctx context.Context, o Options, binary string) error {
	b.Path = binary
	dir, err := os.MkdirTemp(o.Dir, "build-")
	if err != nil {
		return fmt.Errorf("making a data directory: %w", err)
	}
	at := o.Options
	at.Binary = binary
	s, err := topology.Begin(ctx, at, dir, o.Segments)
	if err != nil {
		return err
	}
	if b.fleet, err = s.Credentials.Fleet(o.Load, o.Connections); err != nil {
		return errors.Join(err, s.Kill())
	}
	b.single = s
	if _, err := b.fleet.Sweep(ctx); err != nil {
		return err
	}
	return s.Console.AwaitHistory(ctx)
}

// turn loads the build for one turn.
func (b *build) turn(ctx context.Context, o Options) error {
	phase, _, used, err := report.Measure(func() (*loader.Result, error) { return b.fleet.Saturate(ctx, o.Turn) }, []int{b.single.PID()})
	if err != nil {
		return err
	}
	b.failed += phase.Failed * uint64(o.Load.EventsPerRequest())
	b.Events += phase.Events
	b.Turns = append(b.Turns, Turn{EventsPerSecond: phase.EventsPerSecond, CPUMicrosPerEvent: phase.PerEvent(used.Groups[0]), P99Millis: phase.P99Millis, Failed: phase.Failed})
	return nil
}

// used is the build with what it used since its meter was started.
func (b *build) used() (Build, error) {
	u, err := b.meter.Stop()
	b.CPUMicrosPerEvent = report.Ratio(u.Groups[0].Seconds()*1e6, float64(b.Events))
	b.PeakRSSBytes = u.PeakRSSBytes
	return b.Build, err
}
