package flows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/loader"
)

// Events just before a kill -9: at this rate, for so long.
const (
	killedRate = 20_000
	killedFor  = 2 * time.Second
)

// sleepSeconds is the wait of those who sleep.
const sleepSeconds = 30 * day

// sleep measures what enrolments cost that sleep.
func (r *run) sleep(ctx context.Context) (err error) {
	x := &Sleep{Sleepers: r.o.Sleepers}
	r.report.Sleep = x
	r.enter("sleepers: %d profiles", r.o.Sleepers)
	s, err := r.begin(ctx, "sleep")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Kill()) }()
	fleet, err := r.fleet(s, batch, batchConnections, r.o.Sleepers)
	if err != nil {
		return err
	}
	defer fleet.Close()
	grown, err := fleet.Sweep(ctx)
	if err != nil {
		return err
	}
	x.GrownPerSecond = grown.EventsPerSecond()
	if err := s.Console.AwaitHistory(ctx); err != nil {
		return err
	}
	r.enter("sleepers: restart without flows")
	if x.Bare, err = r.restart(ctx, s, fleet); err != nil {
		return err
	}
	if x.BareKilled, err = r.killed(ctx, s, fleet); err != nil {
		return err
	}
	r.enter("sleepers: enrolling %d", r.o.Sleepers)
	all, err := s.Console.CreateLiveSegment(ctx, "all", startsWith("c-"))
	if err != nil {
		return err
	}
	ids, enrol, err := s.publish(ctx, []string{definition("sleep", "once", onSegment(all), wait("sleep", sleepSeconds, "tag"), tag("tag", "awake", nil))})
	if err != nil {
		return err
	}
	x.Enrol = enrol
	r.o.Logf("  %d in %.1f s", enrol.Enrolments, enrol.Seconds)
	if err := errors.Join(r.asleep(ctx, s, ids[0]), s.Console.AwaitHistory(ctx)); err != nil {
		return err
	}
	if x.Served, err = s.stand(ctx); err != nil {
		return err
	}
	r.enter("sleepers: restart")
	if x.Started, err = r.restart(ctx, s, fleet); err != nil {
		return err
	}
	if err := r.asleep(ctx, s, ids[0]); err != nil {
		return err
	}
	if x.Killed, err = r.killed(ctx, s, fleet); err != nil {
		return err
	}
	if err := r.asleep(ctx, s, ids[0]); err != nil {
		return err
	}
	r.o.Logf("  clean start %.2f s, after kill -9 %.2f s", x.Started.StartSeconds, x.Killed.StartSeconds)
	if x.Alone, err = r.wakeAlone(ctx, s); err != nil {
		return err
	}
	x.Many, err = r.wakeMany(ctx, s, enrol.EnrolmentsPerSecond)
	return err
}

// startsWith is those whose external id begins so. The load's are c- and a
// number of ten digits.
func startsWith(prefix string) string {
	return fmt.Sprintf(`{"kind":"attribute","field":"external_id","op":"starts_with","value":%q}`, prefix)
}

// firstProfiles is the prefix of the external ids of 10^digits profiles.
func firstProfiles(digits int) string { return "c-" + strings.Repeat("0", 10-digits) }

// asleep checks that all are in the flow, once each.
func (r *run) asleep(ctx context.Context, s service, flow string) error {
	f, err := s.Console.Flow(ctx, flow)
	if err != nil {
		return err
	}
	if n := uint64(r.o.Sleepers); f.Counts.InProgress != n || f.Counts.Entered != n {
		return fmt.Errorf("%w: %d enrolments sleep and %d began, of %d", errStale, f.Counts.InProgress, f.Counts.Entered, n)
	}
	return nil
}

// restart stops the server cleanly and starts it.
func (r *run) restart(ctx context.Context, s service, fleet *loader.Fleet) (*Stand, error) {
	fleet.Close()
	stopped, err := s.Stop()
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	x, err := s.stand(ctx)
	if err != nil {
		return nil, err
	}
	x.StopSeconds, x.StartSeconds = stopped, s.StartedIn.Seconds()
	return x, nil
}

// killed kills the server behind some events and starts it.
func (r *run) killed(ctx context.Context, s service, fleet *loader.Fleet) (*Killed, error) {
	sent, err := fleet.Pace(ctx, killedRate, killedFor)
	if err != nil {
		return nil, err
	}
	fleet.Close()
	if err := s.Kill(); err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return &Killed{sent.Events, s.StartedIn.Seconds()}, nil
}
