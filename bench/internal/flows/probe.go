package flows

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/internal/pause"
)

const (
	probeSubject = "probe "
	probers      = 16
	callTimeout  = 30 * time.Second
	// effectsLimit is how long after a phase the effects of its probes are waited
	// for.
	effectsLimit = 60 * time.Second
)

// sender sends single events and reads the answers, on a connection of its own.
type sender struct {
	loader.Caller
	target loader.Target
}

func newSender(target loader.Target) *sender {
	return &sender{loader.Caller{DialTimeout: callTimeout, Timeout: callTimeout}, target}
}

// send sends an event of a person of the bench's own and returns the profile and
// when the answer was there.
func (s *sender) send(event, person string, n int) (profile string, answered time.Time, err error) {
	body := fmt.Appendf(nil, `{"event_type":%q,"user":{"external_id":"%s-%d","email":"%s-%d@p.example"},"properties":{"n":%d},"idempotency_key":"%s-%d"}`,
		event, person, n, person, n, n, person, n)
	a, err := s.Post(s.target, body)
	answered = time.Now()
	if err == nil {
		profile, err = s.Profile(a)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", event, err)
	}
	return profile, answered, err
}

// probe is one that was answered.
type probe struct {
	n                 int
	due, answer, seen time.Time
	stale             int // enrolments that were not there, or not as they should be
}

// prober sends probes beside a load. Numbers are never used twice.
type prober struct {
	target  loader.Target
	console *surface.Client
	sink    *sinks
	// flows are those that each probe enrols in; none before they are live.
	flows []string
	next  int
	// enrolling is how many were sent that the flows had to take.
	enrolling int
}

// run sends probes at a rate for the duration and waits for their effects.
func (p *prober) run(ctx context.Context, perSecond float64, duration time.Duration) (*Probes, error) {
	start := time.Now()
	between := time.Duration(float64(time.Second) / perSecond)
	count := max(int(duration/between), 1)
	first := p.next
	p.next += count
	if len(p.flows) > 0 {
		p.enrolling += count
	}
	done := make([]probe, count)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var turn atomic.Int64
	var group sync.WaitGroup
	for range min(probers, count) {
		group.Go(func() {
			s := newSender(p.target)
			defer s.Close()
			for i := int(turn.Add(1)) - 1; i < count; i = int(turn.Add(1)) - 1 {
				due := start.Add(time.Duration(i) * between)
				err := pause.For(ctx, time.Until(due))
				if err == nil {
					done[i], err = p.one(ctx, s, first+i, due)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out := &Probes{Sent: count}
	answered := &times{}
	for i := range done {
		answered.add(done[i].answer.Sub(done[i].due))
		out.Stale += done[i].stale
	}
	out.Answered = answered.summary()
	if len(p.flows) == 0 {
		return out, nil
	}
	seen := &times{}
	for i := range done {
		seen.add(done[i].seen.Sub(done[i].answer))
	}
	out.Seen = seen.summary()
	return out, p.effects(ctx, out, done)
}

// one sends a probe and looks at once whether it is enrolled.
func (p *prober) one(ctx context.Context, s *sender, n int, due time.Time) (probe, error) {
	x := probe{n: n, due: due}
	profile, at, err := s.send(probeEvent, "probe", n)
	if err != nil {
		return x, err
	}
	x.answer = at
	for _, f := range p.flows {
		enrolments, err := p.console.Enrolments(ctx, f, profile)
		if err != nil {
			return x, err
		}
		if len(enrolments) != 1 || enrolments[0].Number != 1 {
			x.stale++
		}
	}
	x.seen = time.Now()
	return x, nil
}

// effects waits for the calls and e-mails of probes.
func (p *prober) effects(ctx context.Context, out *Probes, done []probe) error {
	limited, cancel := context.WithTimeout(ctx, effectsLimit)
	defer cancel()
	numbers := make([]int, len(done))
	for i := range done {
		numbers[i] = done[i].n
	}
	for _, kind := range []struct {
		from *arrivals
		into *Latency
	}{{&p.sink.calls, &out.Called}, {&p.sink.mails, &out.Mailed}} {
		// What is missing when the time is over is counted.
		if err := kind.from.until(limited, numbers); err != nil && ctx.Err() != nil {
			return err
		}
		late := &times{}
		for i := range done {
			if at, ok := kind.from.at(done[i].n); ok {
				late.add(at.Sub(done[i].answer))
			} else {
				out.Missing++
			}
		}
		*kind.into = late.summary()
	}
	return nil
}

// errStale marks an enrolment that was not there when its event was answered, or
// an effect that did not come, or either of them more than once.
var errStale = errors.New("flows did not do what was acknowledged")
