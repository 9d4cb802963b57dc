package node

import (
	"context"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
)

// The pace of ticks. It decides how soon after its instant an expiry is applied
// when nothing else happens; the instant itself is exact.
const (
	tickPause = 100 * time.Millisecond // between two ticks at least
	tickLook  = 250 * time.Millisecond // between two looks at the clock at most
)

// tickLoop appends tick records when something falls due. While nothing is due
// in the future it sleeps until something is applied.
func (p *partition) tickLoop(ctx context.Context) {
	for {
		changed := p.position.progress.Wait()
		p.mu.RLock()
		due, ok := p.mu.m.NextDue()
		p.mu.RUnlock()
		if _, holdsLease := p.lease.held(); !holdsLease {
			ok = false // its owner's ticks are enough
		}
		wait := time.Duration(due-p.node.opts.Now().UnixMilli()) * time.Millisecond
		switch {
		case !ok:
			select {
			case <-changed:
				p.pause(ctx, tickPause)
			case <-ctx.Done():
				return
			case <-p.failed.Done():
				return
			}
		case wait > 0:
			p.pause(ctx, min(wait, tickLook))
		default:
			p.tick(ctx)
			p.pause(ctx, tickPause)
		}
		select {
		case <-p.failed.Done():
			return
		default:
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// tick appends one. When it cannot be, or it is unknown whether it was, another
// one follows: the log may be away for a while.
func (p *partition) tick(ctx context.Context) {
	env := eventlog.Envelope{Kind: eventlog.KindTick}
	if err := p.node.stamp(&env); err != nil {
		p.fail(err)
		return
	}
	var out resolver.Outcome
	if err := p.submit(ctx, env, env.Append(nil), &out); err != nil {
		p.log.Debug("no tick", "error", err)
	}
}

// pause waits, less when ctx ends.
func (p *partition) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-p.failed.Done():
	}
}
