package flows

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/internal/pause"
)

const (
	naps       = 20
	napSeconds = 1
	// naps begin this far apart, at least, and at most twice as far.
	napPause = 150 * time.Millisecond
	// maxWakers wake at one instant, at most, and one in wakersShare of the
	// sleepers.
	maxWakers   = 100_000
	wakersShare = 10
	wakePoll    = 2 * time.Millisecond
	// wakeLimit is how long after the instant it is waited for all.
	wakeLimit = 5 * time.Minute
)

// wakeAlone measures how late waits end when nothing else is due: from the
// instant a wait is due until the call of the next step arrives.
func (r *run) wakeAlone(ctx context.Context, s service) (*Latency, error) {
	r.enter("sleepers: waking one at a time")
	ids, _, err := s.publish(ctx, []string{definition("nap", "once", object{"type": "event", "event": napEvent},
		wait("wait", napSeconds, "call"), call("call", r.sink.url+probePath+"{{event.n}}", ""))})
	if err != nil {
		return nil, err
	}
	target, err := s.Credentials.Target(false)
	if err != nil {
		return nil, err
	}
	from := newSender(target)
	defer from.Close()
	rng := rand.New(rand.NewPCG(r.o.Seed, 1))
	profiles := map[int]string{}
	var numbers []int
	for i := range naps {
		// Numbers of the sink are one sequence; probes have those from 0 up.
		n := -1 - i
		if profiles[n], _, err = from.send(napEvent, "nap", n); err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
		if err := pause.For(ctx, napPause+time.Duration(rng.Int64N(int64(napPause)))); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, wakeLimit)
	defer cancel()
	if err := r.sink.calls.until(limited, numbers); err != nil {
		return nil, fmt.Errorf("%w: not all who napped woke: %w", errStale, err)
	}
	late := &times{}
	for _, n := range numbers {
		enrolments, err := s.Console.Enrolments(ctx, ids[0], profiles[n])
		if err != nil {
			return nil, err
		}
		if len(enrolments) != 1 || len(enrolments[0].Path) != 2 {
			return nil, fmt.Errorf("%w: the path of nap %d: %+v", errStale, n, enrolments)
		}
		at, _ := r.sink.calls.at(n)
		late.add(at.Sub(time.UnixMilli(int64(enrolments[0].StartedAt)).Add(napSeconds * time.Second)))
	}
	l := late.summary()
	r.o.Logf("  late by %.1f ms, at most %.1f ms", l.P50Millis, l.MaxMillis)
	return &l, nil
}

// wakers is how many wake at one instant, a power of ten.
func wakers(sleepers int) (n, digits int) {
	n = 1
	for n*10 <= min(sleepers/wakersShare, maxWakers) {
		n *= 10
		digits++
	}
	return n, digits
}

// wakeMany measures how late waits end that all end at one instant: by the flow's
// counts, asked again and again. perSecond is how fast people are enrolled.
func (r *run) wakeMany(ctx context.Context, s service, perSecond float64) (*WakeMany, error) {
	n, digits := wakers(r.o.Sleepers)
	r.enter("sleepers: waking %d at one instant", n)
	segment, err := s.Console.CreateLiveSegment(ctx, "wakers", startsWith(firstProfiles(digits)))
	if err != nil {
		return nil, err
	}
	// Later than all are enrolled by far.
	ahead := 5*time.Second + time.Duration(3*float64(n)/max(perSecond, 1000)*float64(time.Second))
	at := time.Now().Add(ahead).Truncate(time.Second)
	ids, _, err := s.publish(ctx, []string{definition("alarm", "once", onSegment(segment),
		object{"id": "alarm", "type": "wait", "until": at.UTC().Format(time.RFC3339), "next": "tag"}, tag("tag", "up", nil))})
	if err != nil {
		return nil, err
	}
	f, err := s.Console.Flow(ctx, ids[0])
	if err != nil {
		return nil, err
	}
	if f.Counts.Entered != uint64(n) {
		return nil, fmt.Errorf("%w: %d of %d are enrolled", errStale, f.Counts.Entered, n)
	}
	if time.Until(at) < 0 {
		return nil, errors.New("enrolling took so long that the alarm came before its end; the machine is too busy")
	}
	if err := pause.For(ctx, time.Until(at)-100*time.Millisecond); err != nil {
		return nil, err
	}
	late := &times{}
	out := &WakeMany{Sleepers: n}
	for done := uint64(0); done < uint64(n); {
		if f, err = s.Console.Flow(ctx, ids[0]); err != nil {
			return nil, err
		}
		now := time.Now()
		if now.Sub(at) > wakeLimit {
			return nil, fmt.Errorf("%w: %d of %d woke within %v", errStale, done, n, wakeLimit)
		}
		if early := f.Counts.Completed; now.Before(at) && early > 0 {
			return nil, fmt.Errorf("%w: %d woke too early", errStale, early)
		}
		for ; done < f.Counts.Completed; done++ {
			late.add(now.Sub(at))
		}
		if err := pause.For(ctx, wakePoll); err != nil {
			return nil, err
		}
	}
	out.Late = late.summary()
	out.PerSecond = report.Ratio(float64(n), out.Late.MaxMillis/1000)
	r.o.Logf("  late by %.0f ms (p50), %.0f ms (p99), %.0f ms at most", out.Late.P50Millis, out.Late.P99Millis, out.Late.MaxMillis)
	return out, nil
}
