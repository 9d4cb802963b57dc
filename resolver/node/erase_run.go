package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The pace of erasures. What is erased is out of reach at once; this is about
// how soon its bytes go.
const (
	erasePause    = 100 * time.Millisecond // between two looks at least
	eraseRetryMax = time.Minute            // after a failure
)

// eraseLoop sees to it that what was erased leaves history, the log and the
// checkpoints. Each erasure is a task in the state until history has confirmed
// it, so that it continues after a crash.
func (p *partition) eraseLoop(ctx context.Context) {
	_, redacts := p.node.opts.Log.(redactingLog)
	wait := erasePause
	older := true // there may be checkpoints from before erasures that are done
	for ctx.Err() == nil {
		changed := p.position.progress.Wait()
		p.mu.RLock()
		b, ok := p.mu.m.NextErasures(p.id, redacts)
		p.mu.RUnlock()
		_, holdsLease := p.lease.held()
		if !holdsLease {
			ok = false // its owner sees to it
		}
		if !ok && holdsLease && older {
			err := p.dropErased(ctx)
			if older = err != nil; older && ctx.Err() == nil {
				wait = min(2*wait, eraseRetryMax)
				p.log.Error("checkpoints from before an erasure are still there; trying again", "retry_in", wait, "error", err)
				p.pause(ctx, wait)
			}
			continue
		}
		if !ok {
			wait = erasePause
			select {
			case <-changed:
				p.pause(ctx, wait)
			case <-ctx.Done():
			case <-p.failed.Done():
				return
			}
			continue
		}
		switch err := p.erase(ctx, &b); {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.eraseFailed.Store(true)
			p.position.progress.Signal()
			wait = min(2*wait, eraseRetryMax)
			p.log.Error("erased persons are not out of all files yet; trying again", "erasures", b.Erasures, "retry_in", wait, "error", err)
			p.pause(ctx, wait)
		default:
			p.eraseFailed.Store(false)
			p.log.Info("erased", "profiles", b.Erasures, "refused_up_to", b.Done().RefusedUpTo)
			wait = erasePause
		}
	}
}

// waitErased waits until what was erased is out of history, the log and all
// checkpoints but the last one that a stop replaces. It returns early when ctx ends,
// when an attempt fails, and where another node sees to it.
func (p *partition) waitErased(ctx context.Context) {
	_, redacts := p.node.opts.Log.(redactingLog)
	for ctx.Err() == nil {
		changed := p.position.progress.Wait()
		pending := false
		p.with(func(m *resolver.Machine) { _, pending = m.NextErasures(p.id, redacts) })
		if _, leads := p.lease.held(); !pending || !leads || p.eraseFailed.Load() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-p.failed.Done():
			return
		case <-p.life.left:
			return
		}
	}
}

// erase does so for a batch. The order matters: the task may go only when history
// is rid of the rows and the log of the texts, and the record by which it goes is
// the one that makes a second checkpoint without the erased possible. With that, the
// last checkpoint that has them is dropped.
func (p *partition) erase(ctx context.Context, b *erasure.Batch) error {
	upTo := b.Query.Cut.UpTo
	if b.Erasures > 0 {
		if err := p.feed.WaitStored(ctx, upTo); err != nil {
			return err
		}
		if err := p.node.opts.History.Erase(ctx, b.Query); err != nil {
			return err
		}
	}
	if log, ok := p.node.opts.Log.(redactingLog); ok {
		if err := p.redact(ctx, log, b); err != nil {
			return fmt.Errorf("redact the log: %w", err)
		}
	}
	if b.Erasures > 0 {
		if err := p.checkpointWithoutRows(ctx, b.Account, upTo); err != nil {
			return err
		}
		if err := p.ckpt.RemoveSetAside(); err != nil { // they may have the erased
			return err
		}
	}
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: b.Account}
	if err := p.node.stamp(&env); err != nil {
		return err
	}
	var out resolver.Outcome
	if err := p.submit(ctx, env, eventlog.AppendCommand(env.Append(nil), erasure.CommandDone, must.JSON(b.Done())), &out); err != nil {
		return err
	}
	if b.Erasures == 0 {
		return nil
	}
	return p.checkpointBeyond(ctx, out.Offset+1)
}

// checkpointWithoutRows makes sure that the newest checkpoint is of the state at the offset
// or a later one, and has no rows below the offset for history, which has them. One of such a
// state may have been frozen before history had them.
func (p *partition) checkpointWithoutRows(ctx context.Context, account uint64, offset int64) error {
	p.checkpoint.Lock() // for one that is being written
	early := p.checkpoint.last.Load() >= offset
	p.checkpoint.Unlock()
	if !early {
		return p.checkpointBeyond(ctx, offset)
	}
	return p.anotherCheckpoint(ctx, account)
}

// anotherCheckpoint makes sure of a checkpoint behind all that there are, by a record that
// changes nothing.
func (p *partition) anotherCheckpoint(ctx context.Context, account uint64) error {
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}
	if err := p.node.stamp(&env); err != nil {
		return err
	}
	var out resolver.Outcome
	if err := p.submit(ctx, env, eventlog.AppendCommand(env.Append(nil), erasure.CommandDone, must.JSON(erasure.Done{})), &out); err != nil {
		return fmt.Errorf("a record for another checkpoint: %w", err)
	}
	return p.checkpointBeyond(ctx, out.Offset+1)
}

// checkpointBeyond makes sure of a checkpoint of the state at the offset or a
// later one.
func (p *partition) checkpointBeyond(ctx context.Context, offset int64) error {
	for p.checkpoint.last.Load() < offset {
		err := p.writeCheckpoint()
		if state.IsFull(err) {
			p.pause(ctx, time.Second)
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		if err != nil && !errors.Is(err, resolver.ErrLagging) {
			p.failCheckpoint(err)
			return err
		}
		if err != nil {
			p.pause(ctx, 10*time.Millisecond)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
