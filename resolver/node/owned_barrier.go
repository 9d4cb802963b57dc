package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/resolver"
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
	if err := p.failed.unavailable(); err != nil {
		return err
	}
	if !p.node.opts.RemoteLog {
		return nil
	}
	return p.remoteBarrier(ctx)
}

// recent is how old the state may be that [Node.Recent] is content with. It is
// well under the shortest session: no other node takes over from a node this soon after
// it asked where the log ends, unless that node can reach the log and not the
// group.
const recent = time.Second

// Recent makes sure that the state of the account's partition is no older than a
// second: what any node acknowledged before that is applied. It costs a question
// to the log now and then, where [Node.Barrier] costs one each time. For a log
// that no other node appends to there is nothing to ask. Errors are those of
// [Node.Read].
func (n *Node) Recent(ctx context.Context, account uint64) error {
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	if n.opts.RemoteLog && p.position.isRecent(n.opts.Now().UnixMilli(), recent) {
		return nil
	}
	return p.barrier(ctx)
}

func (p *partition) remoteBarrier(ctx context.Context) error {
	began := p.node.opts.Now().UnixMilli()
	bounded, cancel := context.WithTimeout(ctx, barrierWait)
	defer cancel()
	_, end, err := p.node.opts.Log.Bounds(bounded, p.id)
	if err == nil {
		err = p.waitApplied(bounded, end)
	}
	switch {
	case err == nil:
		p.position.noteBarrier(began)
		return nil
	case errors.Is(err, resolver.ErrNotOwner), errors.Is(err, resolver.ErrUnavailable):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w: the log does not say where it ends, or it is not applied up to there: %w", resolver.ErrUnavailable, err)
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
