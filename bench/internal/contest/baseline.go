package contest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/baseline"
	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
)

// BaselineReady begins the line by which a baseline server gives its address.
const BaselineReady = "ready "

const (
	baselineStart = 20 * time.Second
	baselineStop  = 10 * time.Second
)

// baseline measures one baseline server.
func (o Options) baseline(ctx context.Context, m Mode, kind baseline.Kind) (phase Phase, err error) {
	p, line, err := child.Start(ctx, child.Spec{
		Path: o.Baseline[0], Args: append(o.Baseline[1:len(o.Baseline):len(o.Baseline)], string(kind)),
		LogFile:      filepath.Join(o.Dir, "baseline.log"),
		Ready:        func(line string) bool { return strings.HasPrefix(line, BaselineReady) },
		ReadyTimeout: baselineStart,
	})
	if err != nil {
		return phase, fmt.Errorf("%s-only server: %w", kind, err)
	}
	defer func() {
		if stopErr := p.Stop(baselineStop); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
	}()
	target := loader.Target{
		Address: strings.TrimSpace(strings.TrimPrefix(line, BaselineReady)), Path: "/api/v1/events",
		// What Muster is sent as well.
		Header: [][2]string{{"X-App-Id", "app_0000000000000000"}, {"X-App-Secret", "sk_live_" + strings.Repeat("0", 43)}},
		Expect: loader.ExpectSuccess,
	}
	if m.Batch > 0 {
		target.Path += "/batch"
	}
	if kind == baseline.Parse {
		target.Expect = loader.ExpectCount
	}
	fleet, err := loader.NewFleet(target, o.spec(m), m.Connections)
	if err != nil {
		return phase, err
	}
	defer fleet.Close()
	if phase, err = measure(p.PID(), func() (*loader.Result, error) { return fleet.Saturate(ctx, o.BaselineDuration) }); err != nil {
		return phase, fmt.Errorf("%s-only server: %w", kind, err)
	}
	o.Logf("  %s-only: %.0f events/s, %.2f µs of CPU per event", kind, phase.EventsPerSecond, phase.CPUMicrosPerEvent)
	return phase, nil
}
