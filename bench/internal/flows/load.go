package flows

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/segment/segmenttest"
)

// load measures flows beside events.
func (r *run) load(ctx context.Context) (err error) {
	l := &Load{Segments: len(segmenttest.LiveSegments)}
	r.report.Load = l
	r.enter("load: %d profiles, %d segments", r.o.Profiles, l.Segments)
	s, err := r.begin(ctx, "load")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Kill()) }()
	segments, err := s.Console.CreateUsualSegments(ctx, l.Segments)
	if err != nil {
		return err
	}
	fleet, err := r.fleet(s, 0, r.o.Connections, r.o.Profiles)
	if err != nil {
		return err
	}
	defer fleet.Close()
	if _, err := fleet.Sweep(ctx); err != nil {
		return err
	}
	target, err := s.Credentials.Target(false)
	if err != nil {
		return err
	}
	b := &bench{run: r, s: s, fleet: fleet, prober: &prober{target: target, console: s.Console, sink: r.sink}}
	if l.Without, err = b.measure(ctx, "without flows", 0); err != nil {
		return err
	}
	half := targetShare * l.Without.EventsPerSecond
	if r.o.RatePerSecond > 0 {
		half = r.o.RatePerSecond
	}
	if l.WithoutPaced, err = b.measure(ctx, "without flows", half); err != nil {
		return err
	}
	r.enter("load: taking %d flows live", r.o.Flows)
	if err := s.Console.SetUpEmail(ctx, "bench.example", credits); err != nil {
		return err
	}
	var ids []string
	definitions := append(probeFlows(r.sink.url), mix(r.o.Seed, r.o.Flows-minFlows, segments, r.sink.url)...)
	if ids, l.Publish, err = s.publish(ctx, definitions); err != nil {
		return err
	}
	r.o.Logf("  %d enrolments in %.1f s", l.Publish.Enrolments, l.Publish.Seconds)
	// What so many people do first is no part of a steady load.
	if err := pause.For(ctx, r.o.Duration); err != nil {
		return err
	}
	if err := b.s.Console.AwaitHistory(ctx); err != nil {
		return err
	}
	b.prober.flows = ids[:minFlows]
	if l.With, err = b.measure(ctx, fmt.Sprintf("%d flows", r.o.Flows), 0); err != nil {
		return err
	}
	for _, rate := range r.o.rates(l.Without.EventsPerSecond, l.With.EventsPerSecond) {
		p, err := b.measure(ctx, fmt.Sprintf("%d flows", r.o.Flows), rate)
		if err != nil {
			return err
		}
		l.Paced = append(l.Paced, p)
	}
	r.enter("load: counting what the probes did")
	if l.Check, err = b.check(ctx); err != nil {
		return err
	}
	r.enter("load: pausing the flows")
	for _, id := range ids {
		if _, err := s.Console.PauseFlow(ctx, id); err != nil {
			return err
		}
	}
	b.prober.flows = nil
	l.WithoutAgain, err = b.measure(ctx, "flows paused", 0)
	return err
}

// bench is a load and its probes on one server.
type bench struct {
	*run
	s      service
	fleet  *loader.Fleet
	prober *prober
}

// measure runs one phase, at a rate or, for 0, as fast as it goes, with probes
// beside it.
func (b *bench) measure(ctx context.Context, name string, rate float64) (*Phase, error) {
	what := "saturated"
	if rate > 0 {
		what = fmt.Sprintf("at %.0f/s", rate)
	}
	b.enter("load: %s, %s", name, what)
	entered, err := b.s.entered(ctx)
	if err != nil {
		return nil, err
	}
	calls, _, _ := b.sink.calls.counts()
	mails, _, _ := b.sink.mails.counts()
	p := &Phase{Name: name + ", " + what}
	var group sync.WaitGroup
	var probed error
	group.Go(func() { p.Probes, probed = b.prober.run(ctx, b.o.ProbesPerSecond, b.o.Duration) })
	var used child.Used
	p.Phase, _, used, err = report.Measure(func() (*loader.Result, error) {
		if rate > 0 {
			return b.fleet.Pace(ctx, rate, b.o.Duration)
		}
		return b.fleet.Saturate(ctx, b.o.Duration)
	}, []int{b.s.PID()})
	var after uint64
	if err == nil {
		after, err = b.s.entered(ctx)
	}
	group.Wait() // the effects of the last probes come after the load
	if err := errors.Join(err, probed); err != nil {
		return nil, err
	}
	p.CPUMicros = p.PerEvent(used.Groups[0])
	p.OfferedPerSecond = rate
	p.Enrolments = after - entered
	p.EnrolmentsPerSecond = report.Ratio(float64(p.Enrolments), used.Elapsed.Seconds())
	callsNow, _, _ := b.sink.calls.counts()
	mailsNow, _, _ := b.sink.mails.counts()
	p.Calls, p.Mails, p.Others = callsNow-calls, mailsNow-mails, used.Others
	b.o.Logf("  %.0f events/s, %.1f µs of CPU, p99 %.2f ms, %.0f enrolments/s, probes: sent to answered p99 %.2f ms, %d stale, call p99 %.1f ms, mail p99 %.1f ms",
		p.EventsPerSecond, p.CPUMicros, p.P99Millis, p.EnrolmentsPerSecond, p.Probes.Answered.P99Millis, p.Probes.Stale, p.Probes.Called.P99Millis, p.Probes.Mailed.P99Millis)
	// What history has not stored yet would be done in the next phase.
	return p, b.s.Console.AwaitHistory(ctx)
}

// checkLimit is how long after the last effect the counts may take to tell it.
const checkLimit = 10 * time.Second

// check counts, at the end, what became of all probes that flows took.
func (b *bench) check(ctx context.Context) (*Check, error) {
	c := &Check{Probes: b.prober.enrolling}
	_, c.Calls, c.CallsAgain = b.sink.calls.counts()
	_, c.Mails, c.MailsAgain = b.sink.mails.counts()
	end := time.Now().Add(checkLimit)
	err := pause.Until(ctx, 10*livePoll, func() (bool, error) {
		c.Entered, c.Completed = nil, nil
		done := true
		for _, id := range b.prober.flows {
			f, err := b.s.Console.Flow(ctx, id)
			if err != nil {
				return false, err
			}
			c.Entered, c.Completed = append(c.Entered, f.Counts.Entered), append(c.Completed, f.Counts.Completed)
			done = done && f.Counts.Completed >= uint64(c.Probes)
		}
		return done || time.Now().After(end), nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
