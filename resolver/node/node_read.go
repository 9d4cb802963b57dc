package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/feed"
)

// Barrier makes sure that everything acknowledged before the call is applied,
// by whatever node. A record is acknowledged after it was applied; when no
// other node appends, that was here, and there is nothing to wait for. With
// Options.RemoteLog the log is asked for its end, and what is below it is waited
// for, a few seconds at most. A partition that has failed cannot say. Errors are
// those of [Node.Read].
func (n *Node) Barrier(ctx context.Context, account uint64) error {
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	return p.barrier(ctx)
}

// Read takes the barrier and calls fn with a view of the account. It returns
// fn's error, or one that wraps [resolver.ErrNoAccount], [resolver.ErrNotOwner] or
// [resolver.ErrUnavailable].
func (n *Node) Read(ctx context.Context, account uint64, fn func(*resolver.View) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	return p.read(ctx, account, fn)
}

func (p *partition) read(ctx context.Context, account uint64, fn func(*resolver.View) error) error {
	if err := p.barrier(ctx); err != nil {
		return err
	}
	return p.look(account, fn)
}

// look calls fn with a view of the account as far as it is applied. What fn meets of damaged
// files is [resolver.ErrUnavailable]: the state is rebuilt from the log.
func (p *partition) look(account uint64, fn func(*resolver.View) error) (err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	defer func() {
		met := err
		switch r := recover().(type) {
		case nil:
		case error:
			if met = r; !corrupt(met) {
				panic(r)
			}
		default:
			panic(r)
		}
		if corrupt(met) {
			err = fmt.Errorf("%w: %w", resolver.ErrUnavailable, met)
		}
	}()
	if err := p.readable(); err != nil {
		return err
	}
	v := p.mu.m.View(p, account)
	if v == nil {
		return resolver.ErrNoAccount
	}
	return fn(v)
}

// WaitHistory waits until history holds everything the cut may see. The error
// wraps [resolver.ErrNotOwner] when the cut's partition is not served here (any more): its
// owner knows how far history is.
func (n *Node) WaitHistory(ctx context.Context, cut query.Cut) error {
	p := n.partitions[cut.Partition].Load()
	if p == nil {
		return notOwner(cut.Partition)
	}
	err := p.feed.WaitStored(ctx, cut.UpTo)
	if errors.Is(err, feed.ErrClosed) {
		return p.StopErr()
	}
	return err
}
