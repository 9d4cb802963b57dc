package flows

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/pause"
)

const (
	drainLimit = time.Minute
	eventBytes = payload.MinEventBytes
	batch      = 100
	// batchConnections send batches.
	batchConnections = 16
	credits          = 1_000_000_000
	// livePoll is the pause between two looks at what is being built or enrolled.
	livePoll = 20 * time.Millisecond
)

// run is a measurement under way.
type run struct {
	o      *Options
	report *Report
	sink   *sinks
	phase  string // for the report, when the budget ends
}

// Run measures. The report is valid also beside an error, as far as it got. An
// error says that something failed or was wrong, never that it was slow.
func Run(ctx context.Context, o Options) (out *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	begun := time.Now()
	out = &Report{Options: o, Machine: report.ThisMachine()}
	defer func() {
		out.Seconds = time.Since(begun).Seconds()
		out.conclude()
		err = errors.Join(err, out.err())
	}()
	r := &run{o: &o, report: out}
	if r.sink, err = newSinks(); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.sink.close()) }()
	limited, cancel := context.WithTimeout(ctx, o.Budget)
	defer cancel()
	for _, part := range []struct {
		wanted  bool
		measure func(context.Context) error
	}{{o.Flows > 0, r.load}, {o.Sleepers > 0, r.sleep}} {
		if !part.wanted {
			continue
		}
		if err := part.measure(limited); err != nil {
			if errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
				out.Stopped = fmt.Sprintf("the budget of %v ended in: %s", o.Budget, r.phase)
				return out, nil
			}
			return out, fmt.Errorf("%s: %w", r.phase, err)
		}
	}
	return out, nil
}

func (r *run) enter(format string, args ...any) {
	r.phase = fmt.Sprintf(format, args...)
	r.o.Logf("%s", r.phase)
}

// service is the server that is measured.
type service struct{ *topology.Single }

// begin starts a server in a directory of its own.
func (r *run) begin(ctx context.Context, name string) (service, error) {
	o := r.o.Options
	o.ServerArgs = append([]string{
		"--allow-private-webhooks", "--smtp", r.sink.relay.Addr, "--smtp-tls", "none", "--pprof", "--log-level", "warn",
		// How long a stop takes is measured; it should not be cut short.
		"--drain-timeout", drainLimit.String(),
	}, o.ServerArgs...)
	s, err := topology.Begin(ctx, o, filepath.Join(o.Dir, name), 0)
	return service{s}, err
}

// fleet sends events on so many profiles; a batch of 0 sends single ones.
func (r *run) fleet(s service, batch, connections, profiles int) (*loader.Fleet, error) {
	return s.Credentials.Fleet(payload.Spec{Seed: r.o.Seed, Batch: batch, Profiles: profiles, EventBytes: eventBytes}, connections)
}

// publish takes flows live and waits until no enrolment is pending.
func (s service) publish(ctx context.Context, definitions []string) (ids []string, p *Publish, err error) {
	p = &Publish{Flows: len(definitions)}
	for _, d := range definitions {
		id, err := s.Console.CreateFlow(ctx, d)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
	}
	m, err := child.StartMeter([]int{s.PID()})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if _, err := s.Console.PublishFlow(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	err = pause.Until(ctx, livePoll, func() (bool, error) {
		all, err := s.Console.Flows(ctx)
		pending := 0
		p.Enrolments = 0
		for _, f := range all {
			if !slices.Contains(ids, f.ID) {
				continue
			}
			p.Enrolments += f.Counts.Entered
			if f.Status != "live" || f.Counts.Pending > 0 {
				pending++
			}
		}
		return pending == 0, err
	})
	if err != nil {
		return nil, nil, err
	}
	used, err := m.Stop()
	if err != nil {
		return nil, nil, err
	}
	p.Seconds, p.Others = used.Elapsed.Seconds(), used.Others
	p.EnrolmentsPerSecond = report.Ratio(float64(p.Enrolments), p.Seconds)
	p.CPUMicros = report.Ratio(used.Groups[0].Seconds()*1e6, float64(p.Enrolments))
	return ids, p, nil
}

// entered is how many enrolments began so far in all flows.
func (s service) entered(ctx context.Context) (n uint64, err error) {
	all, err := s.Console.Flows(ctx)
	for _, f := range all {
		n += f.Counts.Entered
	}
	return n, err
}
