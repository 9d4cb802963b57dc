package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
)

type run struct {
	o       Options
	backing *backing
	report  *Report
}

// Run measures what the options say. The error says what failed, or that events
// were lost or counted twice; the report then holds what was measured before. It
// is nil when nothing was.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Logf("starting Kafka and ClickHouse (%s)", o.Services)
	b, err := openBacking(ctx, o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r := &run{o: o, backing: b, report: &Report{Options: o, Machine: report.ThisMachine(), Once: map[string]Once{}}}
	if o.Rounds > 0 {
		if err = r.ingest(ctx); err != nil {
			err = fmt.Errorf("ingest: %w", err)
		}
	}
	if err == nil && o.MoveProfiles > 0 {
		if err = r.moves(ctx); err != nil {
			err = fmt.Errorf("moves: %w", err)
		}
	}
	r.report.Seconds = time.Since(began).Seconds()
	r.report.conclude()
	return r.report, errors.Join(err, b.close())
}
