package messaging

import (
	"context"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/messaging/outcome"
)

// places bound how many messages of a run are under way at once. A message has a place from
// before its first attempt until its outcome is on record. Between two attempts it may give
// the place up, so that a few addresses that do not work for a while do not hold up everybody
// else. A frozen node still finishes no more than its places hold: a place passes on only
// after a record under the run's epoch, the outcome or a claim; and a message that comes back
// claims the epoch in its new place.
type places struct {
	free chan struct{}  // holds one for each message in a place
	all  sync.WaitGroup // messages without an outcome, in a place or not

	mu struct {
		sync.Mutex
		messages int   // in all
		waiting  int   // messages that gave up their place, up to maxWaiting
		permits  int   // how many more may do so before another message is handed over
		err      error // the first that ends the run
	}
}

// place is that of one message, which alone uses it.
type place struct {
	of   *places
	held bool
	left func() // to be called when it is given up; counts the first time alone
}

func newPlaces(n int) *places { return &places{free: make(chan struct{}, n)} }

// take waits for a place.
func (x *places) take(ctx context.Context) (*place, error) {
	p := &place{of: x}
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	x.mu.Lock()
	x.mu.messages++
	x.mu.Unlock()
	return p, nil
}

// busy reports whether some message has no outcome yet.
func (x *places) busy() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.messages > 0
}

// fail notes what ends the run. Messages that have no place yet are not sent then.
func (x *places) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.err == nil {
		x.mu.err = err
	}
}

// failure is what ends the run, nil for nothing.
func (x *places) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.err
}

// drain waits until no message is without an outcome, and returns what ends the run.
func (x *places) drain() error {
	x.all.Wait()
	return x.failure()
}

// handed notes that a message was handed over. For each that was, one may give up its place.
// They add up to as many as there are places: when the relay goes down, no more messages than
// those are tried in addition.
func (x *places) handed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.permits = min(x.mu.permits+1, cap(x.free))
}

// mayLeave reports whether one more message may give up its place, and counts it.
func (x *places) mayLeave() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.permits == 0 || x.mu.waiting == maxWaiting {
		return false
	}
	x.mu.permits--
	x.mu.waiting++
	return true
}

// back notes that a message waits for its next attempt no longer.
func (x *places) back() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.waiting--
}

// enter waits for the place.
func (p *place) enter(ctx context.Context) error {
	select {
	case p.of.free <- struct{}{}:
		p.held = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives the place up.
func (p *place) leave() {
	if p.held {
		<-p.of.free
		p.held = false
	}
	p.left()
}

// end gives the place up for good.
func (p *place) end() {
	p.leave()
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.mu.messages--
}

// try makes attempts while they fail for a while only. A message whose answer
// was lost is sent again, too: a repeat has the same id, and losing one is worse.
func (r *run) try(ctx context.Context, p *place, retried *metrics.Counter, attempt func(context.Context) outcome.Result) (o outcome.Result, err error) {
	pause := firstPause
	for n := 1; ; n++ {
		o = attempt(ctx)
		if o.Class != outcome.Temporary && o.Class != outcome.Ambiguous || n == attempts {
			return o, nil
		}
		retried.Inc()
		if err := r.awaitRetry(ctx, p, min(max(pause, o.RetryAfter), maxPause)); err != nil {
			return o, err
		}
		pause *= 4
		// The batch claimed one attempt.
		if err := r.claimEpoch(ctx); err != nil {
			return o, err
		}
	}
}

// awaitRetry waits until the next attempt of a message, outside its place if it may give that up.
func (r *run) awaitRetry(ctx context.Context, p *place, pause time.Duration) error {
	if !r.places.mayLeave() {
		return r.d.opts.Sleep(ctx, pause)
	}
	defer r.places.back()
	// Without a claim it stays: the claim behind the pause says what is wrong.
	if r.claimEpoch(ctx) == nil {
		p.leave()
	}
	if err := r.d.opts.Sleep(ctx, pause); err != nil || p.held {
		return err
	}
	return p.enter(ctx)
}

// claimEpoch asks the log whether the run's epoch still holds.
func (r *run) claimEpoch(ctx context.Context) error {
	if r.epoch == 0 {
		return nil
	}
	_, err := r.d.opts.Node.Claim(ctx, r.account, r.epoch, nil)
	return err
}
