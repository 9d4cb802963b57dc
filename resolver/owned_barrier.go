package resolver

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// barrierWait bounds how long a read waits for the log to say its end, and for
	// what is below it to be applied.
	barrierWait = 5 * time.Second
	// replayGap is how many records of others may be missing when a partition
	// begins to answer: reads wait for them, and it is a matter of milliseconds.
	replayGap = 1000
	// replayRounds bounds how often the log is asked again for its end.
	replayRounds = 10
)

// barrier waits until everything acknowledged before the call is applied.
func (p *partition) barrier(ctx context.Context) error {
	select {
	case <-p.failed:
		return fmt.Errorf("%w: %w", ErrUnavailable, p.failure)
	default:
	}
	if !p.node.opts.RemoteLog {
		return nil
	}
	return p.remoteBarrier(ctx)
}

func (p *partition) remoteBarrier(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, barrierWait)
	defer cancel()
	_, end, err := p.node.opts.Log.Bounds(bounded, p.id)
	if err == nil {
		err = p.waitApplied(bounded, end)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotOwner), errors.Is(err, ErrUnavailable):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w: the log does not say where it ends, or it is not applied up to there: %w", ErrUnavailable, err)
}

// replay waits until everything below end is applied, and what others append
// meanwhile, but for a little.
func (p *partition) replay(ctx context.Context, end int64) error {
	for range replayRounds {
		if err := p.waitApplied(ctx, end); err != nil || !p.node.opts.RemoteLog {
			return err
		}
		_, now, err := p.node.opts.Log.Bounds(ctx, p.id)
		if err != nil {
			return err
		}
		if now-end <= replayGap {
			return nil
		}
		end = now
	}
	return nil
}
