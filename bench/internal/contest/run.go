package contest

import (
	"context"
	"fmt"
	"os"

	"github.com/musterhq/muster/bench/internal/baseline"
	"github.com/musterhq/muster/bench/internal/cpuspeed"
	"github.com/musterhq/muster/bench/internal/report"
)

// Run measures everything. The error says which server failed, or that events
// were lost or doubled; the report then holds what was measured before.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Report{Options: o, Machine: report.ThisMachine()}
	for _, m := range o.Modes {
		r.Modes = append(r.Modes, ModeReport{Mode: m})
	}
	for i := range o.Rounds {
		for j, m := range o.Modes {
			traits := ""
			if m.Repeat {
				traits = fmt.Sprintf(", traits of %g of the events change", m.ChangeRatio)
			}
			o.Logf("round %d of %d, %s, %d connections%s", i+1, o.Rounds, m.Name, m.Connections, traits)
			round, err := o.round(ctx, m)
			if err != nil {
				return r, fmt.Errorf("round %d, %s: %w", i+1, m.Name, err)
			}
			mode := &r.Modes[j]
			mode.Rounds = append(mode.Rounds, round)
			mode.Median = summarise(mode.Rounds)
		}
	}
	return r, nil
}

func (o Options) round(ctx context.Context, m Mode) (Round, error) {
	var r Round
	var err error
	if !m.Tracking {
		if r.Parse, err = o.baseline(ctx, m, baseline.Parse); err != nil {
			return r, err
		}
		if r.Read, err = o.baseline(ctx, m, baseline.Read); err != nil {
			return r, err
		}
	}
	if o.Binary == "" {
		return r, nil
	}
	dir, err := os.MkdirTemp(o.Dir, m.Name+"-")
	if err != nil {
		return r, fmt.Errorf("making a data directory: %w", err)
	}
	watch := cpuspeed.Start()
	r.Disk, err = measureDisk(ctx, dir, o.BaselineDuration)
	r.Idle = watch.Stop()
	if err != nil {
		return r, err
	}
	o.Logf("  disk alone: a synced write p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms; meanwhile %s", r.Disk.P50Millis, r.Disk.P99Millis, r.Disk.P999Millis, speedLine(r.Idle))
	if r.Muster, err = o.muster(ctx, m, dir); err != nil {
		return r, fmt.Errorf("%w (its files are in %s)", err, dir)
	}
	if o.Keep {
		return r, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return r, fmt.Errorf("removing the data directory: %w", err)
	}
	return r, nil
}
