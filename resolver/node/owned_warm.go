package node

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"context"
	"errors"
	"fmt"
)

// A partition that is warm follows the log as one that is served does, so that
// [Node.Take] has little left to do. What it may not do, because another node
// serves it:
//
//   - W1: it answers nothing. Requests for it meet [resolver.ErrNotOwner] until Take has
//     returned.
//   - W2: it appends nothing and carries out nothing: no epoch, no tick, no claim.
//   - W3: Take begins an epoch of its own all the same, behind all that the former
//     owner has appended by then.

// Warm prepares for taking a partition that another node serves: it loads the
// newest checkpoint and follows the log. It returns once the state is that of the
// log's end, or leaves nothing behind. Warming what is warm or served here is no
// error.
func (n *Node) Warm(ctx context.Context, partition int) error {
	s, err := n.turn(ctx, partition)
	if err != nil {
		return err
	}
	defer func() { <-s.turn }()
	if s.partition() != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.life, cancel)() // Close waits neither for a long replay nor for the log
	_, err = n.load(ctx, s, partition)
	return err
}

// Cool gives up what [Node.Warm] has prepared. A partition that is served stays,
// and one that is not warm is no error.
func (n *Node) Cool(ctx context.Context, partition int) error {
	s, err := n.turn(ctx, partition)
	if err != nil {
		return err
	}
	defer func() { <-s.turn }()
	p := s.partition()
	if p == nil || n.partitions[partition].Load() != nil {
		return nil
	}
	defer s.set(nil)
	return p.discard()
}

// discard closes a partition that was never served. It writes no checkpoint: who
// serves it does. What was fetched goes with it, since nothing here learns what is
// erased in it from now on.
func (p *partition) discard() error {
	p.life.discarded.Store(true)
	p.leave()
	err := p.close(context.Background()) // nothing is waited for
	what := p.ckpt.Path(checkpoint.DirLive)
	if p.sharing.Stored() >= 0 {
		what = p.ckpt.Root
	}
	if e := p.ckpt.FS.RemoveAll(what); e != nil {
		err = errors.Join(err, fmt.Errorf("remove the files of partition %d: %w", p.id, e))
	}
	return err
}
